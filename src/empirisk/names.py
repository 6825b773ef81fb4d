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
_STRENGTH = "the strength of the penalty is C, which multiplies the losses: "
_STRENGTH += "C=er.scales.from_ridge(alpha), from_lasso(alpha, n) or another of er.scales"
_NETWORK = "it belongs to the network in features=er.Network(...)"
_PERCEPTRON = "a perceptron has no penalty; er.SVM has one"
_PASSES = "it ends when a pass makes no error, or after max_iter passes"
_OPTIMISER = "steps of the optimiser are those of its paper; optimiser= and learning_rate_init= choose them"
_INNER = "it belongs to the machine inside: estimator=er.Regressor(...)"
_SOLVER = "the solver decides it"
_SGD = "it belongs to the solver: solver=er.solvers.SGD(...)"
_EARLY = "it belongs to the solver: solver=er.solvers.EarlyStopping(...)"
_EXACT = "the decomposition is exact"
_PROGRESS = "set_callbacks(sklearn.callback.ProgressBar()) shows progress"
_THREADS = "er.config(threads=...) sets the number of threads"
_DEVICE = "er.config(device=...) chooses the device"
_NO_L1 = "leaves have no l1 penalty; l2_regularization, min_impurity_decrease and max_leaf_nodes keep trees small"
_HELD_OUT = "the loss of the held-out rows decides"
_RESUMED = "every fit begins anew"
_FROM_FIT = "weights are given to fit: fit(X, y, sample_weight=...)"

#: What scikit-learn, LightGBM, XGBoost and others call it: the parameter of ours that an estimator must have for the
#: sentence to hold ("" for any), and the sentence after "it is called", or a whole one where the name alone misleads.
FOREIGN: dict[str, dict[str, str]] = {
    "alpha": {
        "C": _STRENGTH,
        "n_iter_no_change": "levels belong to the loss, er.losses.Quantile(level) or Huber(delta), and the ridge of "
        "leaves is l2_regularization",
        "average": _PERCEPTRON,
        "center": "inverse_transform needs no strength",
        "layers": "the strength of the penalty is decay",
        "levels": _INNER,
    },
    "l1_ratio": {
        "penalty": "it belongs to the penalty: penalty=er.penalties.ElasticNet(l1_ratio)",
        "average": _PERCEPTRON,
        "positive": "er.ElasticNet has it",
    },
    "penalty": {"average": _PERCEPTRON},
    "intercept_scaling": {"fit_intercept": "the intercept is never penalised, so nothing is to be scaled"},
    **{
        name: {"Cs": "the values to try are Cs, in the scale of C, and empirisk.scales converts them"}
        for name in ("alphas", "n_alphas")
    },
    "lambda_l2": {"l2_regularization": ""},
    "reg_lambda": {"l2_regularization": ""},
    **{name: {"C": _STRENGTH, "l2_regularization": _NO_L1} for name in ("reg_alpha", "lambda_l1")},
    "l2_leaf_reg": {"l2_regularization": ""},
    "kernel": {"features": ""},
    "metric": {"features": "distances are those of features=: a kernel, a map, or a learned metric"},
    "affinity": {"features": ""},
    "kernel_params": {"": f"{_KERNEL}, which is an object with parameters"},
    "metric_params": {"features": "distances are those of features=: a kernel, a map, or a learned metric"},
    "p": {"features": "distances are Euclidean, or those of features=: a kernel, a map, or a learned metric"},
    "gamma": {
        "kernel": f"{_KERNEL}: kernel=er.kernels.Gaussian(width)",
        "width": "it is 1 / (2 width^2); give the width",
        "features": f"{_KERNEL}: Gaussian(width) or Gaussian('scale')",
        "min_impurity_decrease": "",
    },
    "length_scale": {"width": ""},
    "degree": {
        "kernel": f"{_KERNEL}: kernel=er.kernels.Polynomial(degree)",
        "features": f"{_KERNEL}: features=er.kernels.Polynomial(degree)",
    },
    "coef0": {
        "constant": "",
        "kernel": f"{_KERNEL}: kernel=er.kernels.Polynomial(degree, constant)",
        "features": f"{_KERNEL}: features=er.kernels.Polynomial(degree, constant)",
    },
    "probability": {"features": "probabilities come from sklearn.calibration.CalibratedClassifierCV around it"},
    "loss": {
        "epsilon": "it is max(0, |y - f| - epsilon); er.Regressor(loss=...) takes others",
        "multiclass": "it is that of the machine's name; er.Classifier(loss=...) takes others",
    },
    "break_ties": {"multiclass": "predict is always the class of the largest score"},
    "decision_function_shape": {"multiclass": ""},
    "multi_class": {"multiclass": ""},
    "dual": {"solver": _SOLVER},
    "shrinking": {"solver": _SOLVER},
    "cache_size": {"solver": "er.config(memory=...) sets the memory"},
    "precompute": {"solver": _SOLVER},
    "solver_options": {
        "levels": _INNER,
        "solver": "options belong to the solver, which may be an object: solver=er.solvers.SGD(...)",
    },
    "shuffle": {"solver": _SGD, "average": "rows come in their order", "layers": "rows are shuffled in every epoch"},
    "power_t": {"solver": _SGD, "schedule": ""},
    "early_stopping": {
        "solver": _EARLY,
        "average": _PASSES,
        "validation_fraction": "validation_fraction asks for it",
    },
    "epsilon": {
        "loss": "it belongs to the loss: er.losses.Huber(delta) or er.losses.EpsilonInsensitive(epsilon)",
        "optimiser": _OPTIMISER,
    },
    "splitter": {"max_features": "splits are the best of the columns that max_features draws"},
    "criterion": {"max_bins": "splits of this machine reduce the squared error, or the loss that is boosted"},
    "ccp_alpha": {"max_leaf_nodes": "single trees are pruned; here max_leaf_nodes and min_samples_leaf limit trees"},
    "monotonic_cst": {"max_leaf_nodes": "boosting has it: er.BoostingRegressor(monotonic_cst=...)"},
    "bootstrap_features": {"max_features": "columns are drawn without replacement"},
    "flatten_transform": {"voting": "there is no transform; predict_proba of the members is in named_estimators_"},
    "base_estimator": {"estimator": ""},
    "max_iter": {"n_estimators": "", "epochs": "", "center": _EXACT},
    "solver": {"optimiser": "", "levels": _INNER},
    "fit_intercept": {"levels": _INNER},
    "power": {"loss": "it belongs to the loss: er.losses.Tweedie(power)"},
    "link": {"loss": "it follows from the loss, the logarithm for deviances"},
    **{name: {"optimiser": _OPTIMISER} for name in ("momentum", "nesterovs_momentum", "beta_1", "beta_2", "max_fun")},
    "warm_start": {
        "layers": "the machine around the network has it",
        **dict.fromkeys(("features", "max_leaf_nodes", "estimator", "estimators"), _RESUMED),
    },
    "normalize": dict.fromkeys(("C", "features"), "a step before scales columns: make_pipeline(StandardScaler(), ...)"),
    "sample_weight": dict.fromkeys(("features", "max_leaf_nodes", "estimator", "estimators"), _FROM_FIT),
    "positive": {"penalty": "it belongs to the penalty: penalty=er.penalties.Positive('l2')"},
    **{name: {"n_iter_no_change": "it begins with the best constant"} for name in ("init", "base_score")},
    "n_iter": {"candidates": "", "max_iter": ""},
    "num_leaves": {"max_leaf_nodes": ""},
    "min_child_samples": {"min_samples_leaf": ""},
    "min_data_in_leaf": {"min_samples_leaf": ""},
    "min_child_weight": {"min_samples_leaf": ""},
    "min_sum_hessian_in_leaf": {"min_samples_leaf": ""},
    **{name: {"min_impurity_decrease": ""} for name in ("min_split_gain", "min_split_loss", "min_gain_to_split")},
    "min_impurity_split": {"min_impurity_decrease": ""},
    "eta": {"learning_rate": ""},
    "eta0": {"rate": "", "solver": _SGD, "average": "the rate of a perceptron changes the length of w alone"},
    "learning_rate": {"solver": _SGD, "schedule": ""},
    "validation_fraction": {"solver": _EARLY, "average": _PASSES},
    "average": {"solver": _SGD},
    "learning_rate_init": {"rate": "", "features": _NETWORK},
    "lr": {"learning_rate_init": "", "learning_rate": "", "rate": ""},
    "colsample_bytree": {"max_features": ""},
    "feature_fraction": {"max_features": ""},
    **{name: {"max_features": ""} for name in ("colsample_bylevel", "colsample_bynode", "feature_fraction_bynode")},
    **{name: {"n_estimators": ""} for name in ("num_iterations", "num_boost_round", "iterations")},
    **{name: {"max_bins": ""} for name in ("max_bin", "border_count")},
    **{name: {"categorical_features": ""} for name in ("cat_features", "categorical_feature", "enable_categorical")},
    **{name: {"class_weight": ""} for name in ("scale_pos_weight", "is_unbalance", "auto_class_weights")},
    **{
        name: {"subsample": "subsample below 1 draws rows for each tree"} for name in ("subsample_freq", "bagging_freq")
    },
    **{name: {"max_leaf_nodes": "every member is a tree"} for name in ("boosting_type", "booster")},
    "grow_policy": {"max_leaf_nodes": "trees grow at the leaf that gains most; max_depth limits them"},
    "tree_method": {"max_bins": "cuts are sought between max_bins bins of each column"},
    "max_delta_step": {"learning_rate": "learning_rate and l2_regularization keep steps small"},
    "max_cat_to_onehot": {
        "target_encoding": "trees split by sets of categories, and target_encoding looks at means of many"
    },
    "missing": {"max_leaf_nodes": "NaN is a missing value, for which each split learns a side"},
    "depth": {"max_depth": ""},
    "od_wait": {"n_iter_no_change": ""},
    "bagging_fraction": {"subsample": ""},
    "min_samples_split": {"min_samples_leaf": ""},
    "min_weight_fraction_leaf": {"min_samples_leaf": ""},
    "n_iter_no_change": {"solver": _EARLY, "average": _PASSES},
    "early_stopping_rounds": {"n_iter_no_change": ""},
    "hidden_layer_sizes": {"layers": "", "features": _NETWORK},
    "activation": {"features": _NETWORK},
    "n_epochs": {"epochs": ""},
    "init_params": {"init": ""},
    "means_init": {"init": ""},
    "weights_init": {"init": "init takes the first means; weights and covariances follow from them"},
    "precisions_init": {"init": "init takes the first means; weights and covariances follow from them"},
    "dict_init": {"init": ""},
    "code_init": {"init": "codes follow from the first atoms, which init takes"},
    "transform_alpha": {"C": "transform has the C of fit"},
    "transform_max_iter": {"max_iter": ""},
    "callback": {"": "set_callbacks takes scikit-learn's callbacks"},
    "split_sign": {"n_atoms": "codes keep their signs; np.maximum(codes, 0) and np.maximum(-codes, 0) are the halves"},
    "positive_code": {"n_atoms": "codes may have any sign"},
    "positive_dict": {"n_atoms": "atoms may have any sign"},
    "n_components": {"n_atoms": "", "rank": "", "n_clusters": ""},
    "n_nonzero_coefs": {"nonzeros": ""},
    "transform_n_nonzero_coefs": {"nonzeros": ""},
    "transform_algorithm": {"coding": ""},
    "fit_algorithm": {"method": ""},
    "contamination": {"nu": "", "quantile": ""},
    "quantile": {"levels": "", "level": "", "loss": "it belongs to the loss: er.losses.Quantile(level)"},
    "quantiles": {"levels": ""},
    "max_k": {"ks": ""},
    "param_grid": {"space": ""},
    "param_distributions": {"space": ""},
    "scoring": {"by": "", "early_stopping": _HELD_OUT},
    "eval_metric": {"early_stopping": _HELD_OUT},
    "seed": {"random_state": ""},
    "n_jobs": {"": _THREADS},
    **{name: {"": _THREADS} for name in ("n_threads", "nthread", "num_threads")},
    **{name: {"": _DEVICE} for name in ("device", "device_type", "task_type")},
    **{name: {"": _PROGRESS} for name in ("verbose", "verbose_interval", "verbosity", "silent")},
    "copy": {"": "X is never written to"},
    "copy_X": {"": "X is never written to"},
    "copy_x": {"": "X is never written to"},
    "selection": {"solver": _SOLVER},
    "tol": {"n_iter_no_change": "n_iter_no_change rounds without a smaller loss end it", "": "it ends by itself"},
    "leaf_size": {"": "it is chosen by the data"},
    "memory": {"linkage": "er.config(memory=...) sets the memory"},
    "connectivity": {"linkage": "any two clusters may be joined"},
    "compute_full_tree": {"linkage": "the whole tree is always there: children_ and distances_"},
    "compute_distances": {"linkage": "the whole tree is always there: children_ and distances_"},
    "shrink_threshold": {"class_weight": "centroids are means; er.Classifier(penalty='l1') leaves columns out"},
    "priors": {"class_weight": ""},
    "iterated_power": {"center": _EXACT},
    "n_oversamples": {"center": _EXACT},
    "power_iteration_normalizer": {"center": _EXACT},
    "random_state": {"center": _EXACT},
    "eigen_solver": {"center": _EXACT},
    "fit_inverse_transform": {"center": "inverse_transform is there for features=None"},
    "remove_zero_eig": {"center": "directions without variance are always left out"},
    "include_bias": {"interaction_only": "there is no column of ones: machines have an intercept of their own"},
    "order": {"interaction_only": "arrays are stored by row"},
    "algorithm": {"": "it is chosen by the data"},
    "svd_solver": {"": "it is chosen by the data"},
    **{name: {"loss": ""} for name in ("objective", "loss_function")},
}


#: Values that others, or older versions, spell in another way than we do, by the parameter: both spellings are taken.
SPELLINGS: dict[str, dict[Any, str]] = {
    "voting": {"majority": "hard", "mean": "soft"},
    "covariance_type": {"diag": "diagonal"},
    "criterion": {"squared_error": "squared", "absolute_error": "absolute", "log_loss": "entropy"},
    "init": {"kmeans": "k-means", "k-means++": "k-means", "random_from_data": "random"},
    "class_weight": {"balanced_subsample": "balanced"},
    "loss": {"squared_error": "squared", "absolute_error": "absolute", "log_loss": "logistic"},
    "penalty": {"elasticnet": "elastic_net"},
    "kernel": {"rbf": "gaussian", "poly": "polynomial"},
    "features": {"rbf": "gaussian", "poly": "polynomial"},
    # Every solver ends at the same certified minimum: where ours has no such name, the table chooses.
    "solver": dict.fromkeys(("cholesky", "lbfgs", "liblinear", "lsqr", "sag", "saga", "sparse_cg", "svd"), "auto")
    | dict.fromkeys(("highs", "highs-ds", "highs-ipm", "newton-cg", "newton-cholesky"), "auto"),
}

#: scikit-learn's classes that have another name here, and what one writes for them.
CLASSES = {
    "AgglomerativeClustering": "Hierarchical",
    "DecisionTreeClassifier": "TreeClassifier",
    "DecisionTreeRegressor": "TreeRegressor",
    "DictionaryLearning": "Dictionary",
    "ExtraTreesClassifier": "ForestClassifier(splitter='random', bootstrap=False)",
    "ExtraTreesRegressor": "ForestRegressor(splitter='random', bootstrap=False)",
    "GammaRegressor": "Regressor(loss='gamma')",
    "GradientBoostingClassifier": "BoostingClassifier",
    "GradientBoostingRegressor": "BoostingRegressor",
    "HistGradientBoostingClassifier": "BoostingClassifier",
    "HistGradientBoostingRegressor": "BoostingRegressor",
    "HuberRegressor": "Regressor(loss='huber')",
    "KNeighborsClassifier": "KNNClassifier",
    "KNeighborsRegressor": "KNNRegressor",
    "KernelPCA": "PCA(features=kernel)",
    "KernelRidge": "Ridge(features=kernel)",
    "LinearRegression": "LeastSquares",
    "LinearSVC": "SVM",
    "LinearSVR": "SVR",
    "MLPClassifier": "LogisticRegression(features=er.Network(...))",
    "MLPRegressor": "Ridge(features=er.Network(...))",
    "Nystroem": "maps.Nystrom",
    "PoissonRegressor": "Regressor(loss='poisson')",
    "PolynomialFeatures": "maps.Polynomial",
    "RBFSampler": "maps.RandomFourier",
    "RandomForestClassifier": "ForestClassifier",
    "RandomForestRegressor": "ForestRegressor",
    "RidgeClassifier": "LeastSquaresClassifier(penalty='l2')",
    "SGDClassifier": "Classifier(solver='sgd')",
    "SGDRegressor": "Regressor(solver='sgd')",
    "SVC": "SVM",
    "TweedieRegressor": "Regressor(loss='tweedie')",
    "VotingClassifier": "VoteClassifier",
    "VotingRegressor": "VoteRegressor",
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
    empirisk.errors.UnknownParameter: KNNClassifier has no parameter 'k'; it is called n_neighbors. [ER016]
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
    >>> meant("gamma", ["C", "features"])
    "it belongs to the kernel: Gaussian(width) or Gaussian('scale')"
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
