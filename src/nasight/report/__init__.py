"""What a run looks like."""

from nasight.report._picture import picture

__all__ = ["picture"]
