"""The public names of empirisk.plots, and where they live."""

from empirisk.plots.additive_parts import additive as additive
from empirisk.plots.additive_shapes import shapes as shapes
from empirisk.plots.animation import animate as animate
from empirisk.plots.clusters import dendrogram as dendrogram
from empirisk.plots.clusters import density as density
from empirisk.plots.clusters import outliers as outliers
from empirisk.plots.clusters import voronoi as voronoi
from empirisk.plots.curves import learning_curve as learning_curve
from empirisk.plots.curves import luck as luck
from empirisk.plots.curves import validation_curve as validation_curve
from empirisk.plots.ensembles import margins as margins
from empirisk.plots.ensembles import rounds as rounds
from empirisk.plots.ensembles import tree as tree
from empirisk.plots.equation import coefficients as coefficients
from empirisk.plots.equation import gram as gram
from empirisk.plots.equation import importance as importance
from empirisk.plots.equation import losses as losses
from empirisk.plots.equation import metric as metric
from empirisk.plots.fits import descent as descent
from empirisk.plots.fits import history as history
from empirisk.plots.lines import regression as regression
from empirisk.plots.lines import stems as stems
from empirisk.plots.networks import activations as activations
from empirisk.plots.networks import feature_maps as feature_maps
from empirisk.plots.networks import filters as filters
from empirisk.plots.networks import hidden_units as hidden_units
from empirisk.plots.networks import tangent as tangent
from empirisk.plots.networks import tickets as tickets
from empirisk.plots.networks import training as training
from empirisk.plots.networks import widths as widths
from empirisk.plots.planes import regions as regions
from empirisk.plots.projections import images as images
from empirisk.plots.projections import scree as scree
from empirisk.plots.ranking import cost_curve as cost_curve
from empirisk.plots.ranking import gains as gains
from empirisk.plots.ranking import lift as lift
from empirisk.plots.ranking import precision_at_k as precision_at_k
from empirisk.plots.scores import calibration as calibration
from empirisk.plots.scores import confusion as confusion
from empirisk.plots.scores import precision_recall as precision_recall
from empirisk.plots.scores import residuals as residuals
from empirisk.plots.scores import roc as roc
from empirisk.plots.sliders import slider as slider
from empirisk.plots.style import to_svg as to_svg

__all__: list[str]
