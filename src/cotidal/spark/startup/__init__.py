"""For the path of Spark's Python processes: sitecustomize.py says what it does there."""
