"""Descent on a function of one's own: its values and derivatives, the line through a point, and the methods."""
