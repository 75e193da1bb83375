"""Click models: what users see and like, read off a click log."""
