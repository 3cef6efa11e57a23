"""The durability lab: what settings cost and keep, measured under the same blows."""
