"""Rows that are not arrays in memory: on an accelerator, in files, on a cluster."""
