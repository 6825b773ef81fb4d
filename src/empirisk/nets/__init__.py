"""Networks: a feature map phi_W that is learned with the machine in whose slot ``features`` it stands.

The one room that imports JAX and Optax. Without them the rest of the library works as before.
"""

from empirisk.extras import need
from empirisk.lazy import lazy_names

need("A network", "nets", "jax", "optax")

_HOMES, __getattr__, __dir__ = lazy_names(
    "empirisk.nets",
    {
        "augment": "Crop Masking Mirror Noise Scale Shift",
        "composite": "Branch Residual",
        "enlarging": "ConvTranspose Reshape Upsample",
        "experiments": "Tickets WidthCurve boolean_network double_descent lottery_tickets width_curve",
        "layers": "Activation BatchNorm Conv Dense Dropout Filter Flatten Layer LayerNorm MaxPool MeanPool",
        "tangent": "Tangent",
        "transfer": "read_weights",
    },
)

__all__ = list(_HOMES)
