"""Views: each function draws one thing and returns the Matplotlib figure.

Names are imported when they are first used, so that nothing loads Matplotlib before it draws.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from empirisk.plots.animate import animate
    from empirisk.plots.calibration import calibration
    from empirisk.plots.coefficients import coefficients
    from empirisk.plots.confusion import confusion
    from empirisk.plots.descent import descent
    from empirisk.plots.gram import gram
    from empirisk.plots.history import history
    from empirisk.plots.importance import importance
    from empirisk.plots.learning_curve import learning_curve
    from empirisk.plots.losses import losses
    from empirisk.plots.luck import luck
    from empirisk.plots.margins import margins
    from empirisk.plots.networks import (
        activations,
        feature_maps,
        filters,
        hidden_units,
        tickets,
        training,
        widths,
    )
    from empirisk.plots.precision_recall import precision_recall
    from empirisk.plots.regions import regions
    from empirisk.plots.residuals import residuals
    from empirisk.plots.roc import roc
    from empirisk.plots.rounds import rounds
    from empirisk.plots.to_svg import to_svg
    from empirisk.plots.tree import tree
    from empirisk.plots.validation_curve import validation_curve

__all__ = [
    "activations",
    "animate",
    "calibration",
    "coefficients",
    "confusion",
    "descent",
    "feature_maps",
    "filters",
    "gram",
    "hidden_units",
    "history",
    "importance",
    "learning_curve",
    "losses",
    "luck",
    "margins",
    "precision_recall",
    "regions",
    "residuals",
    "roc",
    "rounds",
    "tickets",
    "to_svg",
    "training",
    "tree",
    "validation_curve",
    "widths",
]

#: Views that share a file.
_HOMES = dict.fromkeys(
    ("activations", "feature_maps", "filters", "hidden_units", "tickets", "training", "widths"), "networks"
)


class _Views(ModuleType):
    """This module: importing the file of a view leaves the view here, not the file of the same name."""

    def __setattr__(self, name: str, value: object) -> None:
        is_file = isinstance(value, ModuleType) and name in __all__
        super().__setattr__(name, getattr(value, name) if is_file else value)


sys.modules[__name__].__class__ = _Views


def __getattr__(name: str):
    if name not in __all__:
        raise AttributeError(f"empirisk.plots has no {name!r}; it has {__all__}.", name=name)
    return getattr(import_module(f"empirisk.plots.{_HOMES.get(name, name)}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
