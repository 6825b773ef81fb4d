"""Gradients and proxes: descent, proximal and primal-dual methods."""
