"""The playground: one machine on a few points, and everything that can be seen of it."""
