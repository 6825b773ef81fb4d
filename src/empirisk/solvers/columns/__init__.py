"""Coordinate descent: one column at a time."""
