"""Neural architecture search with shared weights, and the insight to trust what it finds."""

__version__ = "0.1.0"
