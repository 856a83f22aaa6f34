"""The report of a run: one HTML file that holds everything it shows and asks for nothing else."""

from nasight.report.page._deep import deepen
from nasight.report.page._page import page, write_page
from nasight.report.page._report import Report, report

__all__ = ["Report", "deepen", "page", "report", "write_page"]
