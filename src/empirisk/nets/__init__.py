"""Networks: a feature map phi_W that is learned with the machine in whose slot ``features`` it stands.

The one room that imports JAX and Optax. Without them the rest of the library works as before.
"""

from importlib.util import find_spec

from empirisk.errors import MissingExtra

_missing = [name for name in ("jax", "optax") if find_spec(name) is None]
if _missing:
    raise MissingExtra(f"Networks need {' and '.join(_missing)}; install with: pip install 'empirisk[nets]'.")

from empirisk.nets.augment import Crop, Masking, Mirror, Noise, Scale, Shift  # noqa: E402
from empirisk.nets.composite import Branch, Residual  # noqa: E402
from empirisk.nets.enlarging import ConvTranspose, Reshape, Upsample  # noqa: E402
from empirisk.nets.experiments import (  # noqa: E402
    Tickets,
    WidthCurve,
    boolean_network,
    double_descent,
    lottery_tickets,
    width_curve,
)
from empirisk.nets.layers import (  # noqa: E402
    Activation,
    BatchNorm,
    Conv,
    Dense,
    Dropout,
    Filter,
    Flatten,
    Layer,
    LayerNorm,
    MaxPool,
    MeanPool,
)
from empirisk.nets.tangent import Tangent  # noqa: E402
from empirisk.nets.transfer import read_weights  # noqa: E402

__all__ = [
    "Activation",
    "BatchNorm",
    "Branch",
    "Conv",
    "ConvTranspose",
    "Crop",
    "Dense",
    "Dropout",
    "Filter",
    "Flatten",
    "Layer",
    "LayerNorm",
    "Masking",
    "MaxPool",
    "MeanPool",
    "Mirror",
    "Noise",
    "Reshape",
    "Residual",
    "Scale",
    "Shift",
    "Tangent",
    "Tickets",
    "Upsample",
    "WidthCurve",
    "boolean_network",
    "double_descent",
    "lottery_tickets",
    "read_weights",
    "width_curve",
]
