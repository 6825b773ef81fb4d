"""Views: each function draws one thing and returns the Matplotlib figure.

Names are imported when they are first used, so that nothing loads Matplotlib before it draws.
"""

from importlib import import_module

#: The file of each view.
_HOMES = {
    "activations": "networks",
    "animate": "animation",
    "calibration": "scores",
    "coefficients": "parts",
    "confusion": "scores",
    "dendrogram": "clusters",
    "density": "clusters",
    "descent": "fits",
    "feature_maps": "networks",
    "filters": "networks",
    "gram": "parts",
    "hidden_units": "networks",
    "history": "fits",
    "images": "projections",
    "importance": "parts",
    "learning_curve": "curves",
    "losses": "parts",
    "luck": "curves",
    "margins": "ensembles",
    "outliers": "clusters",
    "precision_recall": "scores",
    "regions": "planes",
    "regression": "lines",
    "residuals": "scores",
    "roc": "scores",
    "rounds": "ensembles",
    "scree": "projections",
    "stems": "lines",
    "tangent": "networks",
    "tickets": "networks",
    "to_svg": "style",
    "training": "networks",
    "tree": "ensembles",
    "validation_curve": "curves",
    "voronoi": "clusters",
    "widths": "networks",
}

__all__ = list(_HOMES)


def __getattr__(name: str):
    if name not in _HOMES:
        raise AttributeError(f"empirisk.plots has no {name!r}; it has {__all__}.", name=name)
    return getattr(import_module(f"empirisk.plots.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(_HOMES)
