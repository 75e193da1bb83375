"""A reduced log in parts on disk, for what does not fit into memory."""
