"""The coordinator of transactions. Pure. docs/spec/transactions.md first, then coordinator.py."""
