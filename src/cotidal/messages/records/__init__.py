"""Records of the logs, a module per family, generated; imported one by one, when needed."""
