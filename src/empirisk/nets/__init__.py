"""Networks: a feature map phi_W that is learned with the machine in whose slot ``features`` it stands.

The one room that imports JAX and Optax. Without them the rest of the library works as before.
"""

from empirisk.extras import need

need("A network", "nets", "jax", "optax")

from empirisk.nets.augment import Crop, Masking, Mirror, Noise, Scale, Shift
from empirisk.nets.composite import Branch, Residual
from empirisk.nets.enlarging import ConvTranspose, Reshape, Upsample
from empirisk.nets.experiments import (
    Tickets,
    WidthCurve,
    boolean_network,
    double_descent,
    lottery_tickets,
    width_curve,
)
from empirisk.nets.layers import (
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
from empirisk.nets.tangent import Tangent
from empirisk.nets.transfer import read_weights

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
