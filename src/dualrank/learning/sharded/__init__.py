"""Training on a log in shards: lists are drawn from what is mapped, and nothing is held whole."""
