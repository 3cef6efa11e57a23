"""The other world: obeys a node's effects with a simulated network, disk and clock; one seed."""
