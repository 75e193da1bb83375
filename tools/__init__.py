"""What maintainers run, and users never: building what is released, and the oldest versions."""
