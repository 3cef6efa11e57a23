"""Small models of what cotidal is not, for comparison only. Nothing of the product uses them."""
