"""Requests and responses, a module per API, generated; imported one by one, when needed."""
