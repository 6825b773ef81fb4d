"""Nearest neighbours: the search and the machines."""
