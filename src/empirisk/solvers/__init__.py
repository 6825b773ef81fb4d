"""Solvers: how the equation is minimised. Each is usable by name; the default is picked by `choose`."""
