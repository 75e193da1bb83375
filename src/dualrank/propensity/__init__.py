"""How examination is estimated."""
