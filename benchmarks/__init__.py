"""Speed as ratios inside one run, so that they mean the same on every machine."""
