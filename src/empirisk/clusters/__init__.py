"""Clusters and densities: k-means, linkage, Gaussian mixtures."""
