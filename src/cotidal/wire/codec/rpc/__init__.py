"""Codecs of requests and responses, generated; loaded when first needed."""
