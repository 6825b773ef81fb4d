"""Views: each function draws one thing and returns the Matplotlib figure.

Names are imported when they are first used, so that nothing loads Matplotlib before it draws.
"""

from empirisk.extras import need
from empirisk.lazy import lazy_names
from empirisk.places import lead_matplotlib

need("A view", "plots", "matplotlib")
lead_matplotlib()
#: The file of each view; ``make stubs`` tells type checkers.
_HOMES, __getattr__, __dir__ = lazy_names(
    "empirisk.plots",
    {
        "additive_parts": "additive",
        "additive_shapes": "shapes",
        "animation": "animate",
        "clusters": "dendrogram density outliers voronoi",
        "curves": "learning_curve luck validation_curve",
        "ensembles": "margins rounds tree",
        "equation": "coefficients gram importance losses metric",
        "fits": "descent history",
        "formulas": "box_cox impurities kernels",
        "lines": "regression stems",
        "networks": "activations feature_maps filters hidden_units network tangent tickets training widths",
        "planes": "regions",
        "projections": "images projection scree",
        "ranking": "cost_curve gains lift precision_at_k",
        "scores": "calibration confusion precision_recall residuals roc",
        "sliders": "slider",
        "splits": "folds",
        "style": "to_svg",
    },
)

__all__ = list(_HOMES)
