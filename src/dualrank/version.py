"""The version of dualrank."""

__version__ = "0.2.0"
