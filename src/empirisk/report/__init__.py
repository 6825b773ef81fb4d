"""The report: one HTML file that needs nothing else."""

from empirisk.report.page import page, write

__all__ = ["page", "write"]
