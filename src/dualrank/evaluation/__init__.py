"""How good a ranking is, and whether a difference is real."""
