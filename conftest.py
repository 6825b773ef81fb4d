"""What every test shares: the names that examples use, and repeatable random examples."""

import os
import signal
import threading

import hypothesis

# Read by SciPy at import: without it scikit-learn skips its check of array-API input.
os.environ.setdefault("SCIPY_ARRAY_API", "1")

import numpy as np
import pytest

import empirisk as er
from empirisk.linalg import threads

# Bits must not depend on the number of threads: tests have as many as they ask for, however few cores there are.
threads.CORES = 64
# A shell that starts the tests in the background makes them, and every child of theirs, deaf to Ctrl-C.
if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# The first call of a compiled loop takes seconds, so examples have no deadline; the same examples on every run, so
# that a red test stays red.
hypothesis.settings.register_profile("repeatable", deadline=None, derandomize=True)
hypothesis.settings.load_profile("repeatable")


@pytest.fixture(autouse=True)
def _names_in_examples(doctest_namespace):
    doctest_namespace["np"] = np
    doctest_namespace["er"] = er
