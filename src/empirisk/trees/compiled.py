"""How loops of this folder are compiled: once, kept on disk, without Python's lock; x / 0 is infinite, as in NumPy."""

from numba import njit

loop = njit(cache=True, nogil=True, error_model="numpy")
