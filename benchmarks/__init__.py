"""Timings against rivals: ``python -m benchmarks [family ...]``."""
