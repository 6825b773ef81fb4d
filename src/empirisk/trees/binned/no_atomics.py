"""What a team of one thread needs of `empirisk.trees.binned.atomics`, in plain compiled code.

For versions of Numba whose internals the tests have not seen. The number of threads changes no bit of a tree, so one
thread finds the same trees.
"""

from empirisk.linalg.compiled import plain

#: Threads that may share the counters.
MOST_THREADS = 1


@plain
def let_others_run():
    """Nothing: there are no others."""


@plain
def atomic_add(array, index, amount):
    """Add to a place of an array; what was there before."""
    before = array[index]
    array[index] = before + amount
    return before


@plain
def atomic_swap(array, index, value):
    """Write to a place of an array; what was there before."""
    before = array[index]
    array[index] = value
    return before


@plain
def atomic_load(array, index):
    """What stands in a place of an array."""
    return array[index]


@plain
def fetch(table, row, column):
    """Nothing: asking memory ahead is a matter of speed alone."""
