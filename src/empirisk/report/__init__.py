"""The report: one HTML file that needs nothing else."""

from empirisk.places import lead_matplotlib

lead_matplotlib()
