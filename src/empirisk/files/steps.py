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
#: Words or letters in a row: nobody asks for more, and on a long text they would take hours and all memory.
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
    """A pattern of words: the one of scikit-learn, since others may take for ever on some texts."""
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


@rule
def array_type(value: Any, scope: Scope) -> None:
    """A type of arrays that NumPy has."""
    if not isinstance(value, np.dtype):
        raise Mismatch("is no type of an array")


@rule
def seed(value: Any, scope: Scope) -> None:
    """What scikit-learn takes for a random state."""
    if value is not None and not isinstance(value, np.random.RandomState):
        whole(0, 2**32 - 1).test(value, scope)


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
    _stop_words_id=optional(whole()),
    vocabulary_=mapping(whole(below="words")),
    sizes={"words": lambda its: len(its["vocabulary_"]), "width": lambda its: len(its["vocabulary_"])},
)

# --- categories -------------------------------------------------------------------------------------------------------


def wrong_merging(its: Mapping[str, Any]) -> str | None:
    """What is wrong in how an encoder merges rare categories: each goes to a number below the count of categories."""
    if not its["_infrequent_enabled"]:
        return None
    merged = its["_default_to_infrequent_mappings"]
    for mapping_, found, rare in zip(merged, its["categories_"], its["_infrequent_indices"], strict=True):
        if (mapping_ is None) != (rare is None):
            return "_infrequent_indices does not go with the merged categories"
        if mapping_ is not None and (mapping_.shape != (len(found),) or mapping_.max() >= len(found)):
            return "_default_to_infrequent_mappings merges categories that are not there"
        if rare is not None and (not len(rare) or rare.max() >= len(found)):
            return "_infrequent_indices names categories that are not there"
    return None


def wrong_widths(its: Mapping[str, Any]) -> str | None:
    """What is wrong in the widths of the blocks of a one-hot encoder."""
    counts = [len(found) for found in its["categories_"]]
    drops = [None] * len(counts) if its["_drop_idx_after_grouping"] is None else list(its["_drop_idx_after_grouping"])
    if len(drops) != len(counts):
        return "_drop_idx_after_grouping has not one entry for each column"
    for column, count in enumerate(counts):
        merged = its["_default_to_infrequent_mappings"][column] if its["_infrequent_enabled"] else None
        groups = count if merged is None else int(merged.max()) + 1
        drop = drops[column]
        if drop is not None and not (isinstance(drop, (int, np.integer)) and 0 <= drop < groups):
            return "_drop_idx_after_grouping drops a category that is not there"
        if its["_n_features_outs"][column] != groups - (drop is not None):
            return "_n_features_outs is not the number of categories"
    return None


ENCODER = KEEPING | State(
    wrong_merging,
    categories_=categories(),
    _infrequent_enabled=flag(),
    _infrequent_indices=optional(several(maybe(array("i", None, low=0)), "columns")),
    _default_to_infrequent_mappings=optional(several(maybe(array("i", None, low=0)), "columns")),
)
ONE_HOT = ENCODER | State(
    wrong_widths,
    dtype=numbers_type(),
    handle_unknown=text("error", "ignore", "infrequent_if_exist", "warn"),
    sparse_output=flag(),
    _drop_idx_after_grouping=maybe(array("O", "columns")),
    drop_idx_=maybe(array("O", "columns")),
    _n_features_outs=several(whole(), "columns"),
    sizes={"width": lambda its: sum(its["_n_features_outs"])},
)
ORDINAL = ENCODER | State(
    dtype=numbers_type(),
    handle_unknown=text("error", "use_encoded_value"),
    _missing_indices=mapping(whole(), keys=int),
)


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


def monomials(columns: int, least: int, most: int, interactions: bool, constant: bool) -> int:
    """How many monomials there are of degrees ``least`` to ``most``, those of degree 0 only if asked for."""
    if interactions:
        count = sum(math.comb(columns, degree) for degree in range(max(least, 1), min(most, columns) + 1))
    else:
        below = max(least - 1, 0)
        count = math.comb(columns + most, most) - math.comb(columns + below, below)
    return count + constant


def wrong_monomials(its: Mapping[str, Any]) -> str | None:
    """What is wrong in how many monomials an expansion says it has."""
    columns, least, most = its["n_features_in_"], its["_min_degree"], its["_max_degree"]
    given = its["degree"] if isinstance(its["degree"], (tuple, list)) else (0, its["degree"])
    if (least, most) != tuple(given) or least > most:
        return "degree is not the one that was fitted"
    # Beyond this the count itself would take long to work out.
    if min(columns, most) > 64 or (its["interaction_only"] and columns > 10_000):
        return "degree makes too many columns"
    options = bool(its["interaction_only"]), bool(its["include_bias"])
    found = its["n_output_features_"], its["_n_out_full"]
    if found != (monomials(columns, least, most, *options), monomials(columns, 0, most, *options)):
        return "n_output_features_ is not the number of monomials"
    return None if found[1] <= MOST_MONOMIALS else "degree makes too many columns"


def wrong_bins(its: Mapping[str, Any]) -> str | None:
    """What is wrong in the edges of bins."""
    edges = its["bin_edges_"]
    for found, bins in zip(edges, its["n_bins_"], strict=True):
        rising = isinstance(found, np.ndarray) and found.dtype.kind == "f" and found.shape == (int(bins) + 1,)
        if not rising or np.any(np.isnan(found)) or np.any(np.diff(found) < 0):
            return "bin_edges_ does not rise"
    if (its["encode"] == "ordinal") != ("_encoder" not in its):
        return "_encoder does not go with encode"
    for found, bins in zip(its["_encoder"].categories_ if "_encoder" in its else (), its["n_bins_"], strict=False):
        if not np.array_equal(found, np.arange(bins)):
            return "_encoder has other bins"
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
        wrong_monomials,
        degree=either(whole(), several(whole(), 2)),
        interaction_only=flag(),
        include_bias=flag(),
        order=text("C", "F"),
        n_features_in_=size("columns"),
        _min_degree=whole(),
        _max_degree=whole(),
        n_output_features_=size("width"),
        _n_out_full=whole(),
    ),
    "preprocessing.PowerTransformer": COPYING
    | State(
        lambda its: None if its["standardize"] == ("_scaler" in its) else "_scaler does not go with standardize",
        method=text("box-cox", "yeo-johnson"),
        standardize=flag(),
        lambdas_=array("f", "columns"),
        _scaler=optional(part(columns="columns")),
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
        encode=text("onehot", "onehot-dense", "ordinal"),
        dtype=maybe(numbers_type()),
        n_features_in_=size("columns"),
        bin_edges_=array("O", "columns"),
        n_bins_=array("i", "columns", low=1),
        _encoder=optional(part(columns="columns", width="width")),
    ),
    "impute.SimpleImputer": State(
        lambda its: None if its["add_indicator"] == (its["indicator_"] is not None) else "indicator_ does not fit",
        strategy=text("mean", "median", "most_frequent", "constant"),
        add_indicator=flag(),
        keep_empty_features=flag(),
        copy=flag(),
        n_features_in_=size("columns"),
        statistics_=array("biufUO", "columns", finite=False),
        indicator_=maybe(part(columns="columns")),
        _fit_dtype=array_type(),
        _fill_dtype=array_type(),
    ),
    "impute.MissingIndicator": State(
        features=text("missing-only", "all"),
        n_features_in_=size("columns"),
        _precomputed=flag(),
        _n_features=size("columns"),
        features_=array("i", "width", below="columns"),
    ),
}

# --- machines ---------------------------------------------------------------------------------------------------------


def wrong_priors(its: Mapping[str, Any]) -> str | None:
    """What is wrong in a classifier that looks at no row: one probability for each class."""
    if its["n_outputs_"] != 1 or len(its["classes_"]) != its["n_classes_"]:
        return "n_classes_ is not the number of classes"
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
        strategy=text("most_frequent", "prior", "stratified", "uniform", "constant"),
        random_state=seed(),
        _strategy=text("most_frequent", "prior", "stratified", "uniform", "constant"),
        sparse_output_=flag(),
        n_outputs_=whole(1),
        n_classes_=whole(1),
        classes_=labels("classes"),
        class_prior_=array("f", "classes", low=0),
    ),
    "dummy.DummyRegressor": State(n_outputs_=size("outputs"), constant_=array("f", 1, "outputs")),
    "frozen.FrozenEstimator": State(estimator=part(columns="columns", classes="classes", width="width")),
    "compose.TransformedTargetRegressor": State(
        func=maybe(text()),  # functions are refused when a model is saved
        inverse_func=maybe(text()),
        _training_dim=whole(1, 2),
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
    "feature_extraction.text.TfidfVectorizer": VECTORIZER
    | State(norm=maybe(text("l1", "l2")), _tfidf=part(columns="words")),
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
        target_type_=text("binary", "multiclass", "continuous"),
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
        _columns=anything(),
        _transformer_to_input_indices=anything(),
        _remainder=anything(),
        sparse_output_=flag(),
        output_indices_=anything(),
        _name_to_fitted_passthrough=optional(anything()),
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
