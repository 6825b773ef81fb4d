"""The public names of empirisk.nets, and where they live."""

from empirisk.nets.augment import Crop as Crop
from empirisk.nets.augment import Masking as Masking
from empirisk.nets.augment import Mirror as Mirror
from empirisk.nets.augment import Noise as Noise
from empirisk.nets.augment import Scale as Scale
from empirisk.nets.augment import Shift as Shift
from empirisk.nets.composite import Branch as Branch
from empirisk.nets.composite import Residual as Residual
from empirisk.nets.enlarging import ConvTranspose as ConvTranspose
from empirisk.nets.enlarging import Reshape as Reshape
from empirisk.nets.enlarging import Upsample as Upsample
from empirisk.nets.experiments import Tickets as Tickets
from empirisk.nets.experiments import WidthCurve as WidthCurve
from empirisk.nets.experiments import boolean_network as boolean_network
from empirisk.nets.experiments import double_descent as double_descent
from empirisk.nets.experiments import lottery_tickets as lottery_tickets
from empirisk.nets.experiments import width_curve as width_curve
from empirisk.nets.layers import Activation as Activation
from empirisk.nets.layers import BatchNorm as BatchNorm
from empirisk.nets.layers import Conv as Conv
from empirisk.nets.layers import Dense as Dense
from empirisk.nets.layers import Dropout as Dropout
from empirisk.nets.layers import Filter as Filter
from empirisk.nets.layers import Flatten as Flatten
from empirisk.nets.layers import Layer as Layer
from empirisk.nets.layers import LayerNorm as LayerNorm
from empirisk.nets.layers import MaxPool as MaxPool
from empirisk.nets.layers import MeanPool as MeanPool
from empirisk.nets.tangent import Tangent as Tangent
from empirisk.nets.transfer import read_weights as read_weights

__all__: list[str]
