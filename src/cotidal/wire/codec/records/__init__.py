"""Codecs of records, generated; loaded when first needed."""
