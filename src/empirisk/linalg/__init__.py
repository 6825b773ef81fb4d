"""Linear algebra: data behind one interface, sums over blocks of rows, factorisations."""
