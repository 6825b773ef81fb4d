"""
Into a page
===========

``to_svg`` gives a figure as text for HTML: self-contained, the same for the same figure, and with ids that differ from
those of other figures.
"""

import empirisk as er

figure = er.plots.losses(["hinge", "squared_hinge"])
page = f"<html><body>{er.plots.to_svg(figure)}</body></html>"
figure
