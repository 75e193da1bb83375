"""A whole service with simulated users, to watch."""
