"""Trees on binned columns: one way to grow them, on two schedules.

A node, the best split that a column offers it, the order of categories, the division of rows and the value of a leaf
are those of `splits` for all. What differs is who works on what. Trees of a forest are many and look at few columns:
each is grown by one thread, column by column (`alone`). Trees of boosting, which come one after the other and look at
all columns, are grown row by row, which keeps the histograms to subtract them, on large tables by a team (`together`).
"""
