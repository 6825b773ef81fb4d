"""Trees on binned columns: one way to grow them, on two schedules.

A node, its histogram, the best split that a column offers it, the order of categories, the division of rows and the
value of a leaf are those of `splits` for all. What differs is who works on what: trees of a forest are many and look at
few columns, so each is grown by one thread, column by column (`alone`); trees of boosting come one after the other and
look at all columns, so a team grows each, row by row, and subtracts histograms (`together`, with any number of threads
from one on).
"""
