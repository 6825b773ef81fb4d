"""Steps of scikit-learn made again by scikit-learn: a file keeps what is public of them, `fit` makes the rest.

A step is fitted to a few rows that are made of its public attributes, and then gets these attributes. So nothing here
depends on what scikit-learn calls its private ones: `check_rebuilt` compares them all when a model is saved.
"""

import warnings
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from numbers import Real
from typing import Any, NamedTuple

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray
from sklearn import config_context
from sklearn.base import BaseEstimator

from empirisk.errors import EmpiriskError
from empirisk.extras import need
from empirisk.files.account import COLUMN, Account, Damaged
from empirisk.files.registry import STEP_PLACES, find, name_of
from empirisk.state import COMMON, Scope

CELL = 200  # bytes of memory and of work that an entry of a table to fit may take: Python's objects and lists of them
FIT = 50_000  # work in bytes that a fit to a few rows takes beside them: a millisecond
UNKNOWN = object()  # an entry of a table that is no category
VOLATILE = ("_stop_words_id",)  # where an object of this process lies: no part of a step


class Refit(NamedTuple):
    """The parameters under which a step is fitted again, rows and targets, and the attributes that they do not give."""

    options: Mapping[str, Any]
    X: Any
    y: Any = None
    free: tuple[str, ...] = ()


def _table(account: Account, rows: int, columns: int, entry: Any = 0.0) -> NDArray[Any]:
    """A table of one entry, counted before it is made."""
    account.take(CELL * rows * columns)
    account.add_work(CELL * rows * columns)
    return np.full((rows, columns), entry, dtype=float if isinstance(entry, Real) else object)


def _encoder(its: Mapping[str, Any], account: Account) -> Refit:
    """Rows in which each frequent category is once and no rare one is, so that once is often enough."""
    found, rare = its["categories_"], its.get("infrequent_categories_", ())
    account.add_work(CELL * sum(map(len, found)))
    frequent = [_without(*pair) for pair in zip(found, rare, strict=True)] if rare else []
    classes = its.get("classes_")
    y = np.zeros(2) if classes is None else classes
    X = _table(account, max([len(y), *map(len, frequent)]), len(found), UNKNOWN)
    for column, known in enumerate(frequent):
        X[: len(known), column] = known
    merging = {"min_frequency": 1 if rare else None, "max_categories": None}
    unknown = {"handle_unknown": "ignore"} if "drop" in its else {"handle_unknown": "use_encoded_value"}
    options = {"categories": list(found), "target_type": its.get("target_type_"), "unknown_value": -1}
    return Refit(options | merging | unknown, X, y, ("categories_", "encodings_", "target_mean_"))


def _without(categories: NDArray[Any], rare: NDArray[Any] | None) -> list[Any]:
    """The categories that are not among the rare ones; NaN is one category."""
    left_out = set() if rare is None else {None if x != x else (x,) for x in rare.tolist()}
    return [x for x in categories.tolist() if (None if x != x else (x,)) not in left_out]


def _bins(its: Mapping[str, Any], account: Account) -> Refit:
    """Two rows, which differ in the columns with several bins."""
    bins = np.asarray(its["n_bins_"])
    X = _table(account, 2, len(bins))
    X[1, bins > 1] = 1.0
    options = {"strategy": "uniform", "n_bins": np.maximum(bins, 2), "subsample": None}
    return Refit(options, X, free=("bin_edges_",))


def _missing(its: Mapping[str, Any], account: Account) -> Refit:
    """A row without missing values, and one that misses those of the columns that an indicator has."""
    missing = its["missing_values"]
    numbers = isinstance(missing, Real) and its.get("strategy", "mean") in ("mean", "median")
    X = _table(account, 2, its["n_features_in_"], float(missing == 0)).astype(float if numbers else object)
    X[1, (vars(its["indicator_"]) if its.get("indicator_") is not None else its).get("features_", [])] = missing
    return Refit({}, X, free=("statistics_",))


def _columns(its: Mapping[str, Any], account: Account) -> Refit:
    """A row with the names and the number of the columns, which no step takes."""
    X: Any = _table(account, 1, its["n_features_in_"])
    if "feature_names_in_" in its:
        account.add_work(COLUMN * X.shape[1])
        names = list(its["feature_names_in_"])
        if len(set(names)) < len(names):
            raise Damaged("in its ColumnTransformer, two columns have one name")
        X = nw.from_numpy(X, names, backend=_frame_library()).to_native()
    dropped = [(name, "drop", columns) for name, _, columns in its["transformers"]]
    remainder = its["remainder"] if isinstance(its["remainder"], str) else "drop"
    options = {"transformers": dropped, "remainder": remainder, "transformer_weights": None, "verbose": False}
    return Refit(options, X, free=("transformers_", "output_indices_", "sparse_output_"))


def _frame_library() -> Any:
    """A library of data frames that is installed: scikit-learn reads the names of columns from a frame alone."""
    found = next((name for name in ("polars", "pandas", "pyarrow") if find_spec(name)), None)
    need("A ColumnTransformer that was fitted to a data frame", "learn", found or "polars")
    return found


def _target(its: Mapping[str, Any], account: Account) -> Refit:
    """Targets of one axis, or of two where several are transformed."""
    y = np.zeros((2, 2) if getattr(its["transformer_"], "n_features_in_", 1) > 1 else 2)
    mean: Any = find("sklearn.DummyRegressor")
    options = {"regressor": mean(), "transformer": None, "func": None, "inverse_func": None}
    return Refit(options, y.reshape(2, -1), y, ("transformer_", "regressor_"))


def _classes(its: Mapping[str, Any], account: Account) -> Refit:
    """A row of each class."""
    return Refit({}, _table(account, len(its["classes_"]), 1), its["classes_"], ("class_prior_", "sparse_output_"))


#: How the steps with private attributes are fitted again, by the name that files use.
FITS: dict[str, Callable[[Mapping[str, Any], Account], Refit]] = {
    "sklearn.OneHotEncoder": _encoder,
    "sklearn.OrdinalEncoder": _encoder,
    "sklearn.TargetEncoder": _encoder,
    "sklearn.KBinsDiscretizer": _bins,
    "sklearn.SimpleImputer": _missing,
    "sklearn.MissingIndicator": _missing,
    "sklearn.PolynomialFeatures": lambda its, account: Refit({}, _table(account, 1, its["n_features_in_"])),
    "sklearn.ColumnTransformer": _columns,
    "sklearn.TransformedTargetRegressor": _target,
    "sklearn.DummyClassifier": _classes,
    # The power of a constant column is not searched for.
    "sklearn.PowerTransformer": lambda its, account: Refit(
        {"method": "yeo-johnson"}, [[1.0], [1.0]], free=("lambdas_",)
    ),
    "sklearn.TfidfVectorizer": lambda its, account: Refit(
        {"vocabulary": {"a": 0}}, ["a"], free=("vocabulary_", "fixed_vocabulary_")
    ),
}


def is_public(key: str) -> bool:
    """Whether an attribute of a step is public, or one that every estimator of scikit-learn may have."""
    return not key.startswith("_") or key in COMMON.rules


def is_kept(key: str, value: Any) -> bool:
    """Whether a file keeps an attribute: what is public, and what no fit to a few rows gives: a type, a plain step."""
    if is_public(key) or isinstance(value, np.dtype):
        return True
    return isinstance(value, BaseEstimator) and name_of(type(value)) in STEP_PLACES.keys() - FITS.keys()


def rebuilt(
    cls: type, name: str, state: dict[str, Any], private: dict[str, Any], scope: Scope, account: Account
) -> BaseEstimator:
    """A fitted step with this state; of its private attributes only types and plain steps are taken from the file."""
    account.add_work(FIT)
    asked = FITS[name](state, account)
    made: Any = object.__new__(cls)
    parameters = {key: state[key] for key in cls._get_param_names()}
    vars(made).update(parameters | {key: item for key, item in asked.options.items() if key in parameters})
    with warnings.catch_warnings(), config_context(transform_output="default", skip_parameter_validation=False):
        warnings.simplefilter("ignore")
        made.fit(asked.X, asked.y)
    for key in state.keys() - parameters.keys() - COMMON.rules.keys() - set(asked.free):
        if isinstance(state[key], BaseEstimator):
            vars(state[key]).update(vars(getattr(made, key)))
        elif not same(getattr(made, key), state[key]):
            raise Damaged(f"in its {cls.__name__}, {key} is not what scikit-learn makes of the rest")
    given = {key: item for key, item in vars(made).items() if not is_public(key)}
    for key in [key for key, item in given.items() if is_kept(key, item)]:
        item, inner = private.get(key), scope.inner(private.get(key))
        if isinstance(given[key], np.dtype):
            fits = isinstance(item, np.dtype) and item.kind in "iufO"
        else:
            fits = type(item) is type(given[key]) and inner and inner.sizes.get("columns") == scope.sizes["width"]
        if not fits:
            raise Damaged(f"in its {cls.__name__}, {key} does not go with the rest")
        given[key] = item
    made.__setstate__({key: item for key, item in state.items() if key != "infrequent_categories_"} | given)
    return made


def same(one: Any, other: Any) -> bool:
    """Whether two values are equal, NaN and NaN too; the steps inside a step are compared on their own."""
    if isinstance(one, BaseEstimator) or isinstance(other, BaseEstimator):
        return True
    one, other = (value.tolist() if isinstance(value, np.ndarray) else value for value in (one, other))
    if isinstance(one, dict):
        return isinstance(other, dict) and same([*one.items()], [*other.items()])
    if isinstance(one, (list, tuple)):
        return isinstance(other, (list, tuple)) and len(one) == len(other) and all(map(same, one, other))
    return bool(one == other) or (one != one and other != other)


def check_rebuilt(step: BaseEstimator, made: BaseEstimator) -> None:
    """Raise unless a step that was made again has the private attributes of the one that is saved."""
    for key, item in step.__getstate__().items():
        compared = not is_public(key) and key not in VOLATILE and "callback" not in key
        if compared and not same(item, vars(made).get(key, UNKNOWN)):
            raise EmpiriskError(
                f"{type(step).__name__} is not saved, since scikit-learn does not make its {key} again from what is "
                "public of it; fit it anew with the parameters that it has now, or put another step in its place."
            )
