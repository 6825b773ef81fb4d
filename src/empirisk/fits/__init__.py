"""From problems to fits: limits, the choice of C, hard margins, equal rows, weights of kernels."""
