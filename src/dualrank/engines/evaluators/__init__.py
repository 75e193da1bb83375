"""Engines' rules for scoring, as small programs that read what was written for them."""
