"""Additive machines: sums of shapes of one column and of pairs of columns, boosted in turn on bins."""
