"""Seeds of feature maps that draw at random."""

from typing import Any

from sklearn.base import clone

from empirisk.protocols import FeatureMap


def seeded_clone(features: FeatureMap, random_state: Any) -> FeatureMap:
    """A fresh copy of a map; one that draws at random and has no seed of its own takes that of the machine.

    >>> seeded_clone(er.maps.Nystrom(rank=2), 7).get_params()["random_state"]
    7
    """
    copy: Any = clone(features)
    if random_state is not None and getattr(copy, "random_state", random_state) is None:
        copy.set_params(random_state=random_state)
    return copy
