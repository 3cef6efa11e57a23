"""Clients as small state machines that speak the protocol, and the history of what they saw."""
