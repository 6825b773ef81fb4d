"""The report: one HTML file that needs nothing else."""

from empirisk.extras import need
from empirisk.places import lead_matplotlib

need("A report", "learn", "polars", "matplotlib", "jinja2")
lead_matplotlib()
