"""Tables, figures and one self-contained HTML page."""
