"""The promises of invariants.py, looked after while a simulated cluster runs. They only look."""
