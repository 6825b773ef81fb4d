"""What the state of scikit-learn's steps may be: they state no rules of their own, and compiled code trusts them."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from empirisk.state import (
    Mismatch,
    Rule,
    Scope,
    State,
    anything,
    array,
    either,
    flag,
    labels,
    mapping,
    maybe,
    number,
    optional,
    part,
    rule,
    several,
    size,
    text,
    whole,
)

#: Columns that polynomials of a row may have: a row of more would be a gigabyte.
MOST_MONOMIALS = 10_000_000
#: The longest n-gram of words or letters that a file may ask for: on a long text more would take hours and all memory.
LONGEST_RUN = 64


#: What columns are divided by: never zero, and never negative.
SCALE = array("f", "columns", low=math.nextafter(0.0, 1.0))
#: A step that gives as many columns as it takes, one that may write into them, and one that divides them.
KEEPING = State(n_features_in_=size("columns"), sizes={"width": lambda its: int(its["n_features_in_"])})
COPYING = KEEPING | State(copy=flag())
SCALING = COPYING | State(n_samples_seen_=number(0), clip=flag(), scale_=SCALE)


@rule
def categories(value: Any, scope: Scope) -> None:
    """The sorted categories of each column, with a missing one at the end, perhaps."""
    several(array("biufUO", None, finite=False), "columns").test(value, scope)
    for found in value:
        if not len(found):
            raise Mismatch("has a column without a category")
        known = found[: len(found) - 1] if found.dtype.kind == "f" and np.isnan(found[-1]) else found
        if found.dtype.kind != "O" and not np.all(known[:-1] < known[1:]):
            raise Mismatch("is not sorted")


# --- texts ------------------------------------------------------------------------------------------------------------


def words_numbered(its: Mapping[str, Any]) -> str | None:
    """The words of a vectorizer are numbered from 0 on, none left out."""
    places = list(its["vocabulary_"].values())
    return None if sorted(places) == list(range(len(places))) else "vocabulary_ is not numbered in a row"


def pattern() -> Rule:
    """A pattern of words: the one of scikit-learn, since others may take exponential time on some texts."""
    return text(r"(?u)\b\w\w+\b", r"(?u)\b\w+\b", r"\b\w\w+\b", r"\b\w+\b", r"\w+", r"\S+", r"[^\s]+")


@rule
def nothing(value: Any, scope: Scope) -> None:
    """What no file can hold, such as a function."""
    raise Mismatch("is something that no file holds")


@rule
def numbers_type(value: Any, scope: Scope) -> None:
    """A type of numbers that NumPy has."""
    if not (isinstance(value, (type, np.dtype)) and np.dtype(value).kind in "iuf"):
        raise Mismatch("is no type of numbers")


VECTORIZER = State(
    words_numbered,
    lambda its: "token_pattern is missing" if its["token_pattern"] is None and its["analyzer"] == "word" else None,
    input=text("content"),
    ngram_range=several(whole(1, LONGEST_RUN), 2),
    token_pattern=maybe(pattern()),
    analyzer=text("word", "char", "char_wb"),
    dtype=numbers_type(),
    strip_accents=maybe(text("ascii", "unicode")),
    lowercase=flag(),
    preprocessor=maybe(nothing()),
    tokenizer=maybe(nothing()),
    decode_error=text("strict", "ignore", "replace"),
    encoding=text("utf-8"),
    stop_words=either(maybe(text("english")), several(text())),
    fixed_vocabulary_=flag(),
    vocabulary_=mapping(whole(below="words")),
    sizes={"words": lambda its: len(its["vocabulary_"]), "width": lambda its: len(its["vocabulary_"])},
)

# --- categories -------------------------------------------------------------------------------------------------------


def one_hot_width(its: Mapping[str, Any]) -> int:
    """The columns that a one-hot encoder gives: the rare categories of a column are one, those dropped none."""
    merged = sum(len(rare) - 1 for rare in its.get("infrequent_categories_", ()) if rare is not None)
    dropped = 0 if its["drop_idx_"] is None else sum(drop is not None for drop in its["drop_idx_"])
    return sum(map(len, its["categories_"])) - merged - dropped


ENCODER = KEEPING | State(categories_=categories())
MERGING = ENCODER | State(
    dtype=numbers_type(),
    infrequent_categories_=optional(several(maybe(array("biufUO", None, finite=False)), "columns")),
)
ONE_HOT = MERGING | State(
    handle_unknown=text("error", "ignore", "infrequent_if_exist", "warn"),
    sparse_output=flag(),
    drop_idx_=maybe(array("O", "columns")),
    sizes={"width": one_hot_width},
)
ORDINAL = MERGING | State(handle_unknown=text("error", "use_encoded_value"))


def wrong_encodings(its: Mapping[str, Any]) -> str | None:
    """What is wrong in the means of a target encoder: one for each category, of each class where there are several."""
    classes = len(its["classes_"]) if its["target_type_"] == "multiclass" else 1
    counts = [len(found) for found in its["categories_"]]
    wanted = [count for count in counts for _ in range(classes)]
    if len(its["encodings_"]) != len(wanted) or [len(means) for means in its["encodings_"]] != wanted:
        return "encodings_ has not one number for each category"
    fits = np.shape(its["target_mean_"]) == ((classes,) if its["target_type_"] == "multiclass" else ())
    return None if fits else "target_mean_ has not one number for each class"


# --- numbers ----------------------------------------------------------------------------------------------------------


def too_many_monomials(its: Mapping[str, Any]) -> str | None:
    """What is wrong in a degree of which there are too many monomials; scikit-learn makes those of all lower ones."""
    columns, most = its["n_features_in_"], int(np.max(its["degree"]))
    # Beyond this the count itself would take long to work out.
    if min(columns, most) > 64 or (its["interaction_only"] and columns > 10_000):
        return "degree makes too many columns"
    if its["interaction_only"]:
        count = sum(math.comb(columns, degree) for degree in range(min(most, columns) + 1))
    else:
        count = math.comb(columns + most, most)
    return None if count <= MOST_MONOMIALS else "degree makes too many columns"


def wrong_bins(its: Mapping[str, Any]) -> str | None:
    """What is wrong in the edges of bins."""
    edges = its["bin_edges_"]
    for found, bins in zip(edges, its["n_bins_"], strict=True):
        rising = isinstance(found, np.ndarray) and found.dtype.kind == "f" and found.shape == (int(bins) + 1,)
        if not rising or np.any(np.isnan(found)) or np.any(np.diff(found) < 0):
            return "bin_edges_ does not rise"
    return None


def rising(name: str) -> Any:
    """A relation: there are rows of an array, and they do not fall."""
    return lambda its: None if len(its[name]) and np.all(np.diff(its[name], axis=0) >= 0) else f"{name} falls"


NUMBERS = {
    "preprocessing.StandardScaler": COPYING
    | State(
        with_mean=flag(),
        with_std=flag(),
        n_samples_seen_=either(number(0), array("iuf", "columns", low=0)),
        mean_=maybe(array("f", "columns")),
        var_=maybe(array("f", "columns", finite=False)),
        scale_=maybe(SCALE),
    ),
    "preprocessing.MinMaxScaler": SCALING
    | State(
        min_=array("f", "columns"),
        data_min_=array("f", "columns"),
        data_max_=array("f", "columns"),
        data_range_=array("f", "columns"),
    ),
    "preprocessing.MaxAbsScaler": SCALING | State(max_abs_=array("f", "columns")),
    "preprocessing.RobustScaler": COPYING
    | State(
        with_centering=flag(),
        with_scaling=flag(),
        center_=maybe(array("f", "columns")),
        scale_=maybe(SCALE),
    ),
    "preprocessing.Normalizer": COPYING | State(norm=text("l1", "l2", "max")),
    "feature_selection.VarianceThreshold": State(
        lambda its: None if np.any(its["variances_"] > its["threshold"]) else "variances_ leaves no column",
        threshold=number(0),
        n_features_in_=size("columns"),
        variances_=array("f", "columns"),
        sizes={"width": lambda its: int(np.sum(its["variances_"] > its["threshold"]))},
    ),
    "preprocessing.PolynomialFeatures": State(
        too_many_monomials,
        degree=either(whole(), several(whole(), 2)),
        n_features_in_=size("columns"),
        n_output_features_=size("width"),
    ),
    "preprocessing.PowerTransformer": COPYING
    | State(
        method=text("box-cox", "yeo-johnson"),
        lambdas_=array("f", "columns"),
    ),
    "preprocessing.QuantileTransformer": KEEPING
    | State(
        rising("quantiles_"),
        rising("references_"),
        output_distribution=text("uniform", "normal"),
        n_quantiles_=size("quantiles"),
        references_=array("f", "quantiles", low=0, high=1),
        quantiles_=array("f", "quantiles", "columns"),
    ),
    "preprocessing.KBinsDiscretizer": State(
        wrong_bins,
        n_features_in_=size("columns"),
        bin_edges_=array("O", "columns"),
        n_bins_=array("i", "columns", low=1),
        sizes={"width": lambda its: int(len(its["n_bins_"]) if its["encode"] == "ordinal" else np.sum(its["n_bins_"]))},
    ),
    "impute.SimpleImputer": State(
        lambda its: None if its["add_indicator"] == (its["indicator_"] is not None) else "indicator_ does not fit",
        n_features_in_=size("columns"),
        statistics_=array("biufUO", "columns", finite=False),
        indicator_=maybe(part(columns="columns")),
    ),
    "impute.MissingIndicator": State(
        n_features_in_=size("columns"),
        features_=array("i", "width", below="columns"),
    ),
}

# --- machines ---------------------------------------------------------------------------------------------------------


def wrong_priors(its: Mapping[str, Any]) -> str | None:
    """What is wrong in a classifier that looks at no row: the probabilities of its classes."""
    # Shares written in single precision add up to one within this.
    return None if abs(float(its["class_prior_"].sum()) - 1) < 1e-6 else "class_prior_ does not add up to one"


def wrong_calibrators(its: Mapping[str, Any]) -> str | None:
    """What is wrong where there is not one calibrator for two classes or for all, and one for each of several."""
    wanted = 1 if len(its["classes"]) == 2 or its["method"] == "temperature" else len(its["classes"])
    return None if len(its["calibrators"]) == wanted else "calibrators are not one for each class"


MACHINES = {
    "calibration.CalibratedClassifierCV": State(
        lambda its: None if its["calibrated_classifiers_"] else "calibrated_classifiers_ is empty",
        classes_=labels("classes"),
        calibrated_classifiers_=several(part(has="predict_proba", classes="classes", columns="columns")),
    ),
    "calibration._CalibratedClassifier": State(
        wrong_calibrators,
        estimator=part(has="predict", classes="classes", columns="columns"),
        calibrators=several(part(has="predict")),
        classes=labels("classes"),
        method=text("sigmoid", "isotonic", "temperature"),
    ),
    "calibration._SigmoidCalibration": State(a_=number(), b_=number()),
    "calibration._TemperatureScaling": State(beta_=number()),
    "isotonic.IsotonicRegression": State(
        rising("X_thresholds_"),  # they are looked up by halving
        out_of_bounds=text("nan", "clip", "raise"),
        increasing_=flag(),
        X_min_=number(),
        X_max_=number(),
        X_thresholds_=array("f", "steps"),
        y_thresholds_=array("f", "steps"),
    ),
    "dummy.DummyClassifier": State(
        wrong_priors,
        sparse_output_=flag(),
        n_outputs_=whole(1),
        n_classes_=whole(1),
        classes_=labels("classes"),
        class_prior_=array("f", "classes", low=0),
    ),
    "dummy.DummyRegressor": State(n_outputs_=size("outputs"), constant_=array("f", 1, "outputs")),
    "frozen.FrozenEstimator": State(estimator=part(columns="columns", classes="classes", width="width")),
    "compose.TransformedTargetRegressor": State(
        transformer_=part(has="inverse_transform"),
        regressor_=part(has="predict", columns="columns"),
    ),
    "preprocessing.LabelBinarizer": State(
        neg_label=whole(-(2**31), 2**31),
        pos_label=whole(-(2**31), 2**31),
        y_type_=text("binary", "multiclass"),
        sparse_input_=flag(),
        classes_=labels("classes"),
    ),
    "preprocessing.LabelEncoder": State(classes_=labels("classes", least=0)),
}

# --- steps in a row and side by side ----------------------------------------------------------------------------------


def _named(value: Any, parts: int) -> list[Any]:
    """Steps with their names, and with their columns where they are three parts."""
    if not isinstance(value, list) or (not value and parts == 2):
        raise Mismatch("is no list of steps")
    for named in value:
        if not isinstance(named, (tuple, list)) or len(named) != parts or not isinstance(named[0], str):
            raise Mismatch("holds a step without a name" if parts == 2 else "holds a step without a name or columns")
    return value


@rule
def chain(value: Any, scope: Scope) -> None:
    """Named steps in a row: what one gives, the next takes."""
    given: int | None = None
    for number_, (_, made) in enumerate(_named(value, 2)):
        inner = scope.inner(made)
        if inner is None:
            maybe(text("passthrough")).test(made, scope)
            continue
        if number_ < len(value) - 1 and not hasattr(made, "transform"):
            raise Mismatch("has a step before its last that transforms nothing")
        scope.fitted = inner.fitted if number_ == 0 else scope.fitted and inner.fitted
        takes = inner.sizes.get("columns")
        if given is not None and takes is not None and takes != given:
            raise Mismatch(f"gives {given} columns to a step that takes {takes}")
        if number_ == 0 and takes is not None:
            scope.bind("columns", takes)
        given = inner.sizes.get("width")
        if "classes" in inner.sizes and number_ == len(value) - 1:
            scope.bind("classes", inner.sizes["classes"])
    if given is not None:
        scope.bind("width", given)


@rule
def beside(value: Any, scope: Scope) -> None:
    """Named steps side by side: all take the same columns, and what they give is joined."""
    widths: list[int | None] = []
    for _, made in _named(value, 2):
        inner = scope.inner(made)
        if inner is None:
            text("passthrough", "drop").test(made, scope)
            widths.append(None if made == "passthrough" else 0)
            continue
        scope.fitted = scope.fitted and inner.fitted
        if "columns" in inner.sizes:
            scope.bind("columns", inner.sizes["columns"])
        widths.append(inner.sizes.get("width"))
    if None not in widths:
        scope.bind("width", sum(width or 0 for width in widths))


@rule
def chosen_columns(value: Any, scope: Scope) -> None:
    """Fitted steps, each with its own columns."""
    for _, made, columns in _named(value, 3):
        inner, listed = scope.inner(made), isinstance(columns, (list, np.ndarray))
        if inner is None:
            text("passthrough", "drop").test(made, scope)
        elif not hasattr(made, "transform"):
            raise Mismatch("holds a step that transforms nothing")
        elif not inner.fitted and np.size(columns):
            raise Mismatch("holds a step that is not fitted")
        elif "columns" in inner.sizes and listed:
            scope.bind(len(columns), inner.sizes["columns"])
        for column in columns if listed else ():
            either(whole(below="columns"), text()).test(column, scope)


#: The steps that files may hold, by the module of scikit-learn that exports them. None of them runs what a file says.
STEPS = {
    **NUMBERS,
    **MACHINES,
    "feature_extraction.text.CountVectorizer": VECTORIZER,
    "feature_extraction.text.TfidfVectorizer": VECTORIZER | State(norm=maybe(text("l1", "l2"))),
    "feature_extraction.text.TfidfTransformer": KEEPING
    | State(
        norm=maybe(text("l1", "l2")),
        use_idf=flag(),
        idf_=optional(array("f", "columns")),
    ),
    "preprocessing.OneHotEncoder": ONE_HOT,
    "preprocessing.OrdinalEncoder": ORDINAL,
    "preprocessing.TargetEncoder": ENCODER
    | State(
        wrong_encodings,
        target_type_=text(),
        classes_=maybe(labels("classes")),
        target_mean_=either(number(), array("f", None)),
        encodings_=several(array("f", None)),
    ),
    "compose.ColumnTransformer": State(
        n_features_in_=size("columns"),
        n_jobs=maybe(whole(1, 1)),
        transformer_weights=maybe(mapping(number())),
        verbose=flag(),
        transformers_=chosen_columns(),
        sparse_output_=flag(),
        output_indices_=anything(),
    ),
    "pipeline.FeatureUnion": State(
        n_jobs=maybe(whole(1, 1)),
        transformer_list=beside(),
        transformer_weights=maybe(mapping(number())),
        verbose=flag(),
        verbose_feature_names_out=flag(),
    ),
    "pipeline.Pipeline": State(memory=maybe(text()), steps=chain(), verbose=flag()),
    # Only the identity, which a column passed through becomes: functions are refused.
    "preprocessing.FunctionTransformer": State(
        func=maybe(nothing()),
        inverse_func=maybe(nothing()),
        kw_args=maybe(mapping(anything())),
        inv_kw_args=maybe(mapping(anything())),
        validate=flag(),
        check_inverse=flag(),
        n_features_in_=optional(size("columns")),
    ),
    **{
        f"model_selection.{name}": State(n_splits=whole(1), shuffle=flag())
        for name in ("GroupKFold", "KFold", "StratifiedKFold", "TimeSeriesSplit")
    },
    "model_selection.ShuffleSplit": State(n_splits=whole(1)),
}
