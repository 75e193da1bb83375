"""Web pages: their fields, an index over them, and the text features of the paper."""
