"""Projections: principal components, dictionaries and learned metrics, each a map that machines take too."""
