"""What a click is worth: the correction of clicks for how they were shown, one a file."""
