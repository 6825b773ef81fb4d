"""Whether the internals of another package may be used: only in versions with which that was tested.

Some packages can be made faster through internals that they may change in any version. Each such place has a plain
twin that keeps to what the package documents, with the same results; a version that is newer than the tests gets that.
"""

import os
from functools import cache

#: The newest minor version of each package whose internals the tests have seen.
NEWEST_TESTED = {"numba": (0, 68), "threadpoolctl": (3, 8)}


@cache
def internals_known(package: str, version: str) -> bool:
    """Whether this version of the package is none that is newer than the tests.

    The environment variable EMPIRISK_PLAIN lists packages, separated by commas, whose internals are left alone in any
    version: for tests, and for whoever suspects them.

    >>> internals_known("numba", "0.68.1"), internals_known("numba", "0.69.0")
    (True, False)
    """
    if package in os.environ.get("EMPIRISK_PLAIN", "").split(","):
        return False
    major, minor = version.split(".")[:2]
    return (int(major), int(minor)) <= NEWEST_TESTED[package]
