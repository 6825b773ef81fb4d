"""One name for each parameter: scikit-learn's where it has one. Another name is refused by a sentence with ours."""

from collections.abc import Iterable
from functools import cache
from inspect import Signature, signature
from typing import Any, Self

from sklearn.base import BaseEstimator

from empirisk.errors import UnknownParameter, closest

#: Parameters, and what is learned of them, that had another name before version 0.2; model files of then have it still.
BEFORE_0_2 = {
    "k": "n_neighbors",
    "k_": "n_neighbors_",
    "max_leaves": "max_leaf_nodes",
    "min_gain": "min_impurity_decrease",
    "monotone_constraints": "monotonic_cst",
    "l2": "l2_regularization",
    "patience": "n_iter_no_change",
    "vote": "voting",
    "floor": "reg_covar",
    "distance_limit": "distance_threshold",
    "ratio": "l1_ratio",
    "batch": "batch_size",
    "rate": "learning_rate_init",
    "validation": "validation_fraction",
}

_KERNEL = "it belongs to the kernel"
_STRENGTH = "the strength of the penalty is C, which multiplies the losses, and empirisk.scales converts it"
_NETWORK = "it belongs to the network in features=er.Network(...)"
_THREADS = "er.config(threads=...) sets the number of threads"

#: What scikit-learn, LightGBM, XGBoost and others call it: the parameter of ours that an estimator must have for the
#: sentence to hold ("" for any), and the sentence after "it is called", or a whole one where the name alone misleads.
FOREIGN: dict[str, dict[str, str]] = {
    "alpha": {"C": _STRENGTH, "l2_regularization": ""},
    "alphas": {"Cs": "the values to try are Cs, in the scale of C, and empirisk.scales converts them"},
    "lambda_l2": {"l2_regularization": ""},
    "reg_lambda": {"l2_regularization": ""},
    "reg_alpha": {"C": _STRENGTH},
    "kernel": {"features": ""},
    "metric": {"features": "distances are those of features=: a kernel, a map, or a learned metric"},
    "affinity": {"features": ""},
    "gamma": {
        "width": "it is 1 / (2 width^2); give the width",
        "features": f"{_KERNEL}: Gaussian(width) or Gaussian('scale')",
    },
    "length_scale": {"width": ""},
    "degree": {"features": f"{_KERNEL}: features=er.kernels.Polynomial(degree)"},
    "coef0": {"constant": "", "features": f"{_KERNEL}: features=er.kernels.Polynomial(degree, constant)"},
    "probability": {"features": "probabilities come from sklearn.calibration.CalibratedClassifierCV around it"},
    "decision_function_shape": {"multiclass": ""},
    "multi_class": {"multiclass": ""},
    "dual": {"solver": "the solver decides it"},
    "base_estimator": {"estimator": ""},
    "max_iter": {"n_estimators": "", "epochs": ""},
    "n_iter": {"candidates": "", "max_iter": ""},
    "num_leaves": {"max_leaf_nodes": ""},
    "min_child_samples": {"min_samples_leaf": ""},
    "min_data_in_leaf": {"min_samples_leaf": ""},
    "min_child_weight": {"min_samples_leaf": ""},
    "min_split_gain": {"min_impurity_decrease": ""},
    "min_impurity_split": {"min_impurity_decrease": ""},
    "eta": {"learning_rate": ""},
    "eta0": {"rate": "", "solver": "it belongs to the solver: solver=er.solvers.SGD(rate=...)"},
    "learning_rate_init": {"rate": "", "features": _NETWORK},
    "lr": {"learning_rate_init": "", "learning_rate": "", "rate": ""},
    "colsample_bytree": {"max_features": ""},
    "feature_fraction": {"max_features": ""},
    "bagging_fraction": {"subsample": ""},
    "early_stopping_rounds": {"n_iter_no_change": ""},
    "hidden_layer_sizes": {"layers": "", "features": _NETWORK},
    "activation": {"features": _NETWORK},
    "n_epochs": {"epochs": ""},
    "init_params": {"init": ""},
    "means_init": {"init": ""},
    "n_components": {"n_atoms": "", "rank": "", "n_clusters": ""},
    "n_nonzero_coefs": {"nonzeros": ""},
    "transform_n_nonzero_coefs": {"nonzeros": ""},
    "transform_algorithm": {"coding": ""},
    "fit_algorithm": {"method": ""},
    "contamination": {"nu": "", "quantile": ""},
    "quantile": {"levels": "", "level": ""},
    "quantiles": {"levels": ""},
    "max_k": {"ks": ""},
    "param_grid": {"space": ""},
    "param_distributions": {"space": ""},
    "scoring": {"by": ""},
    "oob_score": {"bootstrap": "it is always there: oob_score_"},
    "seed": {"random_state": ""},
    "n_jobs": {"": _THREADS},
    "n_threads": {"": _THREADS},
    "verbose": {"": "set_callbacks(sklearn.callback.ProgressBar()) shows progress"},
    "copy_X": {"": "X is never written to"},
    "copy_x": {"": "X is never written to"},
    "selection": {"solver": "the solver decides it"},
    "tol": {"": "it ends by itself"},
    "algorithm": {"": "it is chosen by the data"},
    "svd_solver": {"": "it is chosen by the data"},
    "objective": {"loss": ""},
}


#: Values that others, or older versions, spell in another way than we do, by the parameter: both spellings are taken.
SPELLINGS: dict[str, dict[Any, str]] = {
    "voting": {"majority": "hard", "mean": "soft"},
    "covariance_type": {"diag": "diagonal"},
    "criterion": {"squared_error": "squared", "absolute_error": "absolute", "log_loss": "entropy"},
    "init": {"kmeans": "k-means", "random_from_data": "random"},
    "class_weight": {"balanced_subsample": "balanced"},
    "loss": {"squared_error": "squared", "absolute_error": "absolute", "log_loss": "logistic"},
    "penalty": {"elasticnet": "elastic_net"},
    "kernel": {"rbf": "gaussian", "poly": "polynomial"},
    "features": {"rbf": "gaussian", "poly": "polynomial"},
}


def spelled(parameter: str, value: Any) -> Any:
    """The value of a parameter in our spelling; what is no other spelling comes back as it is.

    >>> spelled("voting", "majority"), spelled("voting", "soft")
    ('hard', 'soft')
    """
    return SPELLINGS.get(parameter, {}).get(value, value) if isinstance(value, str) else value


class _ConstructorSignature:
    """The signature of a class is that of its constructor: Python would take that of ``__new__``."""

    def __get__(self, instance: Any, owner: type) -> Signature:
        if owner.__init__ is object.__init__:
            return Signature()
        own = signature(owner.__init__)
        return own.replace(parameters=list(own.parameters.values())[1:])


class Estimator(BaseEstimator):
    """An estimator of scikit-learn that answers a parameter it does not have with the name of the one that was meant.

    >>> er.KNNClassifier(k=3)
    Traceback (most recent call last):
    ...
    empirisk.errors.UnknownParameter: KNNClassifier has no parameter 'k'; it is called n_neighbors.
    """

    __signature__ = _ConstructorSignature()

    def __new__(cls, *args: Any, **parameters: Any) -> Self:
        """An object whose constructor knows these parameters."""
        if parameters:
            check_names(cls, parameters)
        return super().__new__(cls)

    def set_params(self, **parameters: Any) -> Self:
        check_names(type(self), [name.partition("__")[0] for name in parameters])
        return super().set_params(**parameters)


@cache
def names_of(cls: type[BaseEstimator]) -> frozenset[str]:
    """The parameters of an estimator."""
    return frozenset(cls._get_param_names())


def check_names(cls: type[BaseEstimator], given: Iterable[str]) -> None:
    """Raise `UnknownParameter` for the first name that is no parameter of the class."""
    known = names_of(cls)
    for name in given:
        if name not in known:
            raise UnknownParameter(f"{cls.__name__} has no parameter {name!r}; {meant(name, known)}.")


def meant(name: str, known: Iterable[str]) -> str:
    """What a name that is not known stands for, among those that are.

    >>> meant("num_leaves", ["max_depth", "max_leaf_nodes"])
    'it is called max_leaf_nodes'
    >>> meant("alpha", ["C", "features"])
    'the strength of the penalty is C, which multiplies the losses, and empirisk.scales converts it'
    """
    here = set(known)
    if BEFORE_0_2.get(name) in here:
        return f"it is called {BEFORE_0_2[name]}"
    for ours, sentence in FOREIGN.get(name, {}).items():
        if not ours or ours in here:
            return sentence or f"it is called {ours}"
    close = closest(name, here)
    if close is not None:
        return f"the closest one is {close}"
    return f"its parameters are {', '.join(sorted(here))}" if here else "it has none"
