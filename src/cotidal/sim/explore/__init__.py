"""Small worlds of the production machines, searched completely."""
