"""The commands. Everything heavy is imported inside them, so that `--help` answers at once."""
