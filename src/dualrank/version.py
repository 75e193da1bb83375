"""The version of dualrank."""

__version__ = "0.1.0"
