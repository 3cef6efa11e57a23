"""What is done to a cluster, and undone again."""
