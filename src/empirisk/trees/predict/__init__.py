"""Fast sums over many trees."""
