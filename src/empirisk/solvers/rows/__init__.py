"""The dual: one row, or a working set of rows, at a time."""
