"""What was displayed and what users did: kept on disk, and made into a click log."""
