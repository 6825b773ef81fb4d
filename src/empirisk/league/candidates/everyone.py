"""The candidates: kinds of machines, simplest first, each with a few settings to choose from."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial, reduce
from operator import add
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.pipeline import Pipeline

import empirisk as er
from empirisk.errors import EmpiriskError, did_you_mean
from empirisk.extras import missing
from empirisk.kernels.strings import Spelled
from empirisk.league.rows.encodings import CODES, LETTERS, NUMBERS

#: Kernel machines on more rows than this work on Nystrom features: those that factor the whole matrix, and those that
#: look at parts of it. Under a limit of time, which stops them, the latter are tried on more.
EXACT_ROWS, EXACT_SVM_ROWS = 8_000, 20_000
MAX_KERNEL_ROWS = 100_000  # kernel machines on more take minutes even so
METRIC_ROWS = 12_000  # a metric takes some fits of the whole matrix, each of which takes seconds on as many rows
METRIC_LEAF_ROWS = 6_000  # leaves of more rows than that: half of the rows, a quarter of the time of each, little worse
MAX_METRIC_ROWS = 100_000  # some five minutes of a processor
#: Rows from which kernels on strings work on Nystrom features, letters that they count in some seconds, and pairs of
#: letters that are compared in one; landmarks that are enough at the least.
STRING_ROWS, MAX_STRING_LETTERS, MAX_STRING_STEPS, MIN_LANDMARKS = 2_000, 2_000_000, 2e8, 50
LANDMARKS = 300  # Nystrom features: their normal matrix costs about as much as they do
#: Trees look at every entry of a table, zeros too.
MAX_DENSE_ENTRIES = 50_000_000
#: Classes from which fewer settings are tried, no machine is fitted for each of them, and one setting must do.
SOME_CLASSES, MAX_ONE_AGAINST_REST, MANY_CLASSES = 5, 10, 30
LARGE = 100_000  # rows times classes: on fewer, early stopping would take rows away that are needed
REFIT_ROWS = 50_000  # of fewer, the rows that early stopping has taken away are learned from afterwards
TREE_ROWS = 50_000  # enough for a deep tree; the forest sees all rows together
#: Times the median that the mean of amounts is at the least where they have a long tail.
SKEWED = 1.2
#: For numbers, so many rows are enough for boosting with large trees.
DEEP_ROWS = 8_000
DEEP_LEAVES, DEEP_FEATURES = 127, 0.7  # leaves of these trees, and the share of columns that a node looks at
#: Columns, and rows, up to which boosting also plays on combinations of columns: which help is found out in seconds.
MAX_COMBINED, MAX_COMBINED_ROWS = 300, 300_000
#: Combinations of columns: twelve were worse by one to four hundredths on three tables.
COMBINATIONS = 24
#: Leaves and features of the settings that do.
COMBINED_SETTINGS = ((31, None), (DEEP_LEAVES, DEEP_FEATURES))
#: Where time is short: trees of boosting over all classes, the least and the most rounds, and trees of a forest.
QUICK_TREES, QUICK_ROUNDS, QUICK_FOREST = 500, (20, 100), 30
MAX_PRODUCTS = 1000  # columns: their normal matrix is factored in no time
#: Columns from which one that takes few of them plays, and where they are many for the rows.
WIDE_COLUMNS, MIN_WIDE, WIDE_ROWS = 500, 50, 4
MANY_COLUMNS = 50  # of so many a fifth is enough for a small tree
#: Fewer rows teach a network less than they teach trees.
NETWORK_ROWS = 3_000
#: C of logistic regression and of a linear SVM for texts, whose words have small weights: length one together. Other
#: columns have a variance of one each, or one together for the words of a category.
TEXT_C, TEXT_SPREAD = ((10.0, 1.0, 100.0), (1.0, 0.1, 10.0)), 3.0
#: Relative duality gap of the fits: finer ones do not predict better.
TOL = 1e-4


def is_large(rows: int, classes: int) -> bool:
    """Whether fits to so many rows take long, and one fold already tells settings apart."""
    return rows * max(classes, 1) > LARGE


@dataclass(frozen=True)
class Size:
    """What the settings depend on: the shape of the encoded training part, the sum of its variances, the classes.

    ``unit`` is the mean distance of the targets from their median, for numbers: what the strength of a loss that is not
    squared must be measured in, ``codes`` the places of the columns that hold codes of words, ``strings`` those that
    spell each column of sequences, ``coordinates`` those of each latitude and its longitude, ``deviance`` the loss of
    counts or of skewed amounts, where the target holds these, and ``sampled`` whether the rows are a sample of a table
    in files, from all of which the winner is to learn.
    """

    rows: int
    columns: int
    spread: float
    classes: int
    sparse: bool
    seed: int
    unit: float = 1.0
    codes: list[int] = field(default_factory=list)
    strings: list[list[int]] = field(default_factory=list)
    coordinates: list[tuple[int, int]] = field(default_factory=list)
    deviance: str = ""
    sampled: bool = False

    @property
    def texts(self) -> bool:
        """Whether most of it is words of texts."""
        return self.sparse and self.spread < TEXT_SPREAD

    @property
    def large(self) -> bool:
        """Whether fits take long, and one fold already tells settings apart."""
        return is_large(self.rows, self.classes)

    @classmethod
    def of(cls, X: Any, y: Any, classes: int, seed: int) -> "Size":
        """The size of an encoded table and its target."""
        sparse = hasattr(X, "tocsr")
        mean = np.asarray(X.mean(axis=0)).ravel()
        square = np.asarray((X.multiply(X) if sparse else X**2).mean(axis=0)).ravel()
        spread = float(np.maximum(square - mean**2, 0).sum()) or 1.0
        unit = 1.0 if classes else float(np.abs(y - np.median(y)).mean()) or 1.0
        return cls(X.shape[0], X.shape[1], spread, classes, sparse, seed, unit)


def deviance_of(y: Any) -> str:
    """The loss of counts ("poisson"), or of amounts with a long tail upwards ("gamma"); empty for other numbers.

    >>> deviance_of(np.array([0.0, 2.0, 1.0, 0.0])), deviance_of(np.array([90.0, 100.0, 400.0]))
    ('poisson', 'gamma')
    >>> deviance_of(np.arange(-9.0, 9.0))
    ''
    """
    if y.min() < 0:
        return ""
    if y.min() == 0:
        return "poisson" if np.array_equal(y, np.round(y)) else ""
    return "gamma" if y.mean() > SKEWED * np.median(y) else ""


#: When a candidate plays where time is short.
AT_ONCE, EARLY, SOON, LAST = range(4)
#: Processor seconds until the first step of a network: JAX is loaded, and compiles. No clock stops either.
NETWORK_LOADING = 2.0


@dataclass(frozen=True)
class Candidate:
    """A kind of machine.

    Attributes
    ----------
    name, title : str
        The word for it on the command line, and the words for it in a table.
    machines : callable
        From a `Size` to the settings that compete for the name.
    reason_not_to_run : callable
        From a `Size` to why it does not play, as half a sentence; empty if it plays.
    slow : callable
        From a `Size` to whether it plays after the others.
    turn : int
        When it plays where time is short: the strong and the cheap first.
    quick : callable
        From a `Size` to settings that take little time and come first where it is short, if it has any.
    fair : bool
        Whether classes count alike for it already, however many rows they have.
    encoding : str
        What it reads: numbers, with an indicator for each word; codes of words; or sequences letter by letter.
    pairs : bool
        Whether it looks at pairs of rows.
    votes : bool
        Whether it is made of the best of the others.
    loading : float
        Processor seconds that its first fit takes in any case: to load libraries, and what they compile.
    """

    name: str
    title: str
    machines: Callable[[Size], list[Any]]
    reason_not_to_run: Callable[[Size], str] = lambda size: ""
    slow: Callable[[Size], bool] = lambda size: False
    fair: bool = False
    turn: int = LAST
    quick: Callable[[Size], list[Any]] = lambda size: []
    encoding: str = NUMBERS
    pairs: bool = False
    votes: bool = False
    loading: float = 0.0

    @property
    def early(self) -> bool:
        """Whether it is one of the first, for which there must be time."""
        return self.turn <= EARLY

    @property
    def growths(self) -> tuple[float, float]:
        """The least power of the number of rows that the time of its fits grows with, and that until it is known.

        The first is for the refit, which is to be whole; the second is hopeful, so that many rows are tried.
        """
        return 2.0 if self.pairs else 0.5, 1.0 if self.early else 1.5


def _needs_dense(size: Size) -> str:
    huge = size.sparse and size.rows * size.columns > MAX_DENSE_ENTRIES
    return "it needs a dense table, and this one is sparse and too large" if huge else ""


def _many_classes(size: Size) -> str:
    return (
        f"it is slow beyond {MAX_ONE_AGAINST_REST} classes, one against the rest"
        if size.classes > MAX_ONE_AGAINST_REST
        else ""
    )


def _approximated(size: Size) -> bool:
    return size.rows > EXACT_ROWS


def _few_rows(size: Size) -> str:
    return f"it is slow beyond {MAX_KERNEL_ROWS} rows" if size.rows > MAX_KERNEL_ROWS else ""


def _needs_network(size: Size) -> str:
    lacking = missing("it", "nets", "jax", "optax")
    if lacking is not None:
        return lacking
    if size.rows < NETWORK_ROWS:
        return f"it needs at least {NETWORK_ROWS} rows"
    return "it needs a dense table, and this one is sparse" if size.sparse else ""


def _networks(size: Size) -> list[Any]:
    """Networks that stop where the held-out loss does; on large tables one of them."""
    # A tenth dropped and a tenth held out are usual; five epochs without gain are seldom followed by one.
    usual = {"dropout": 0.1, "validation_fraction": 0.1, "n_iter_no_change": 5, "random_state": size.seed}
    return [er.Network(widths, **usual) for widths in ([128, 64], [32])[: 1 if size.large else 2]]


def _gaussian(size: Size, factor: float, most: float) -> Any:
    """A Gaussian of some multiple of the typical distance, exact on so many rows at most."""
    kernel = er.kernels.Gaussian(width=float(factor * np.sqrt(2 * size.spread)))
    if size.rows <= most:
        return kernel
    return er.maps.Nystrom(kernel, rank=min(LANDMARKS, size.rows), random_state=size.seed)


def _gaussian_svms(size: Size) -> list[Any]:
    """Machines of some widths, as multiples of the typical distance, and of some C, the most promising first."""
    smooth, sharp = [(0.7, 1.0), (1.4, 1.0)], [(0.35, 10.0), (0.7, 10.0)]
    # Several classes are often told apart without noise, as letters are.
    pairs = [*(sharp + smooth if size.classes > 2 else smooth + sharp), (0.35, 1.0), (1.4, 10.0)]
    if size.rows > EXACT_SVM_ROWS:
        pairs = [(0.5, 1.0), (0.5, 10.0)]
    return [_gaussian_svm(size, *pair) for pair in pairs[: 2 if size.classes > MANY_CLASSES else None]]


def _gaussian_svm(size: Size, factor: float, C: float, most: float = EXACT_SVM_ROWS) -> Any:
    return er.SVM(C=C, features=_gaussian(size, factor, most), tol=TOL)


def _gaussian_ridges(size: Size) -> list[Any]:
    """Machines of some widths, as multiples of the typical distance, and of some C, the most promising first."""
    few, many = ((0.5, 30.0), (0.5, 1.0)), ((0.5, 30.0), (0.7, 1.0), (0.35, 30.0), (1.4, 30.0), (0.7, 300.0))
    pairs = few if _approximated(size) else many
    return [er.Ridge(C=C, features=_gaussian(size, factor, EXACT_ROWS)) for factor, C in pairs]


def _learned_kernels(size: Size) -> list[Any]:
    """Machines with a kernel that learns its metric, of some C and both kinds of metric, the most promising first."""
    # The kernel is one on its diagonal, so that these C hold the weight of a row to a hundredth and a tenth of itself.
    pairs = ((20.0, "full"), (20.0, "diagonal"), (2.0, "full"))
    make = partial(er.Classifier, loss="squared") if size.classes else er.Ridge
    if size.rows > METRIC_ROWS:
        return [make(C=20.0, features=er.LearnedKernel(leaf_size=METRIC_LEAF_ROWS))]
    return [make(C=C, features=er.LearnedKernel(metric=metric)) for C, metric in pairs]


def _string_kernels(size: Size) -> list[Any]:
    """Machines with a kernel on strings: counts of pieces, and letters in common with gaps, as far as that is quick."""
    spelled = [slice(places[0], places[-1] + 1) for places in size.strings]
    others = np.setdiff1d(np.arange(size.columns), np.concatenate(size.strings)).tolist()
    usual = size.rows if size.rows <= STRING_ROWS else LANDMARKS
    # Kernels of letters with gaps compare each letter with each: on fewer landmarks where strings are long.
    quick = min(usual, int(MAX_STRING_STEPS / (size.rows * _letters(size) ** 2)))
    kernels: list[tuple[Any, int]] = [
        (er.kernels.Spectrum(5, blended=True, normalise=True), usual),
        (er.kernels.Subsequence(4, 0.5, blended=True, normalise=True), quick),
        (er.kernels.Spectrum(3, normalise=True), usual),
    ]

    def machine(kernel: Any, landmarks: int, C: float) -> Any:
        whole = reduce(add, [Spelled(kernel).on(places) for places in spelled])
        # Other columns count as much together as a sequence does.
        whole = whole + (1 / len(others)) * er.kernels.Linear().on(others) if others else whole
        some = landmarks < size.rows
        features = er.maps.Nystrom(whole, rank=landmarks, random_state=size.seed) if some else whole
        return er.SVM(C=C, features=features, tol=TOL) if size.classes else er.Ridge(C=C, features=features)

    able = [(kernel, landmarks) for kernel, landmarks in kernels if landmarks >= min(MIN_LANDMARKS, size.rows)]
    return [machine(*each, C) for C in (10.0, 1.0) for each in able]


def _letters(size: Size) -> int:
    return max(map(len, size.strings), default=0)


def _no_strings(size: Size) -> str:
    if not size.strings:
        return "it is for tables with sequences"
    long = size.rows * _letters(size) > MAX_STRING_LETTERS
    return "so many letters take long to compare" if long else _many_classes(size)


def _too_large_for_metric(size: Size) -> str:
    if size.sparse:
        return "it needs a dense table, and this one is sparse"
    return f"it is slow beyond {MAX_METRIC_ROWS} rows" if size.rows > MAX_METRIC_ROWS else ""


def _usual(size: Size) -> dict[str, Any]:
    """What all trees are told."""
    return {"random_state": size.seed, "categorical_features": size.codes or None}


def _patience(size: Size) -> int:
    """Rounds without a gain on rows held out after which boosting stops: more where these are few.

    >>> [_patience(Size(rows, 10, 10.0, 2, False, 0)) for rows in (1000, 30_000, 10**6)]
    [50, 35, 10]
    """
    # The error of a mean loss falls with the root of its rows.
    return int(np.clip(6000 / np.sqrt(size.rows), 10, 50).round())


def _boosting_settings(size: Size) -> list[dict[str, Any]]:
    """Rounds are counted where rows are few: early stopping would take a tenth of them away."""
    # Half of the usual rate with half of the leaves, on parts of rows and columns, where noise is strong; the usual
    # one; more rounds the slower the rate. Each was the best of some table by folds of its training rows.
    shy = {"learning_rate": 0.05, "max_leaf_nodes": 15, "subsample": 0.8, "max_features": 0.5, **_usual(size)}
    full = {"learning_rate": 0.1, "max_leaf_nodes": 31, **_usual(size)}
    early = {"early_stopping": True, "n_iter_no_change": _patience(size), "refit": size.rows < REFIT_ROWS}
    if size.classes > MANY_CLASSES:  # every round grows a tree for each class
        return [full | early | {"n_estimators": 60, "max_leaf_nodes": 15}]
    if size.rows * max(size.classes, 1) > 300_000:  # a setting takes minutes, so that there is time for one
        return [full | early | {"n_estimators": 200}]
    if size.large or size.classes > SOME_CLASSES:
        return [full | early | {"n_estimators": 400}, shy | early | {"n_estimators": 800}]
    if not size.classes and size.rows > DEEP_ROWS and not size.sparse:
        deep = shy | {"max_features": DEEP_FEATURES, "n_estimators": 500}
        return [
            full | {"n_estimators": 400, "learning_rate": 0.05},
            *(deep | {"max_leaf_nodes": k} for k in (DEEP_LEAVES, 400)),
        ]
    small = [full | {"n_estimators": rounds, "max_leaf_nodes": 7} for rounds in (100, 400)]
    if size.sparse:  # words are many columns, and every tree looks at all of them
        return small
    return [*small, full | {"n_estimators": 400, "learning_rate": 0.05}, shy | {"n_estimators": 400}]


def _with_deviance(size: Size, settings: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The settings, and before them the last one with the loss of counts or amounts, where the target holds these.

    Its mean is the exponential of a sum of trees: what multiplies the target need not be learned level by level.
    """
    return [settings[-1] | {"loss": size.deviance}, *settings] if size.deviance else settings


def _quick_boosting(size: Size) -> list[dict[str, Any]]:
    """Small trees on some of the rows and columns: nearly as good, in a tenth of the time."""
    rounds = int(np.clip(QUICK_TREES // max(size.classes, 1), *QUICK_ROUNDS))
    # A fast rate needs few rounds; parts of rows and columns cost little accuracy, and save their share of the time.
    some = {"subsample": 0.8, "max_features": 0.2 if size.columns > MANY_COLUMNS else 0.5}
    return [{"n_estimators": rounds, "learning_rate": 0.2, "max_leaf_nodes": 8, **_usual(size), **some}]


def _of_combined(size: Size, machine: Any) -> Any:
    """A machine on the columns and on combinations of two of them; of classes they helped on none of the tables."""
    combined = er.selection.CombinedColumns(
        COMBINATIONS,
        categorical_features=size.codes or None,
        coordinates=size.coordinates or None,
        random_state=size.seed,
    )
    return Pipeline([("columns", combined), ("machine", machine)])


def _trees(size: Size) -> int:
    """Trees of a forest: as many as are worth their time and, for numbers, with a leaf for each row, their room."""
    most = 200_000 if size.classes else 5_000  # rows times classes that 300 trees grow on in some seconds
    return 300 if size.rows * max(size.classes, 1) <= most and not size.sparse else 100


def _ridge(size: Size, columns: int, **settings: Any) -> Any:
    """Ridge regression on so many columns; C is chosen, unless that takes long."""
    return er.Ridge(C="loo" if size.rows * columns <= 2e7 else 1.0, **settings)


def _products(size: Size) -> int:
    """Columns, and products of two of them."""
    return size.columns * (size.columns + 3) // 2


def _too_many_products(size: Size) -> str:
    huge = size.sparse or _products(size) > MAX_PRODUCTS or size.rows * _products(size) > MAX_DENSE_ENTRIES
    return "the products of so many columns take too much room" if huge else ""


def _too_long(size: Size) -> str:
    # Twenty million entries: a path of them takes about a minute.
    return "cross-validating its path takes long at this size" if size.rows * size.columns > 2e7 else ""


#: The mean of what the best say: its settings are made of theirs, in the contest.
VOTE = Candidate("vote", "Vote of the best", lambda size: [], votes=True)


def _everyone(
    kind: str, simple: Sequence[Candidate], kernel: Candidate, head: Callable[[Size, Any], Any]
) -> tuple[Candidate, ...]:
    """Those who play for a task, simplest first: those of the task, and those that differ by the end of their names.

    ``head`` makes the machine on top of a network.
    """

    def make(name: str, **settings: Any) -> Any:
        return getattr(er, f"{name}{kind}")(**settings)

    def neighbours(size: Size) -> list[Any]:
        # From one neighbour to many, in steps of about three, the usual one first.
        return [make("KNN", n_neighbors=k) for k in (15, 1, 5, 40) if k == 1 or k < size.rows // 2]

    def pruned(size: Size) -> list[Any]:
        # So few rows in a leaf are noise; the path of pruning decides about the rest.
        prune = {"min_samples_leaf": 5, "ccp_alpha": "cv"}
        return [make("Tree", max_leaf_nodes=leaves, **prune, **_usual(size)) for leaves in (32, 8)]

    def forest(trees: Callable[[Size], int]) -> Callable[[Size], list[Any]]:
        # The share of the rows that a tree sees: enough of them for a deep tree.
        return lambda s: [make("Forest", n_estimators=trees(s), max_samples=min(1.0, TREE_ROWS / s.rows), **_usual(s))]

    def boosting(settings: Callable[[Size], list[dict[str, Any]]]) -> Callable[[Size], list[Any]]:
        return lambda size: [make("Boosting", **each) for each in _with_deviance(size, settings(size))]

    def with_combined(size: Size) -> list[Any]:
        machines = all_rounds(size)
        large = size.columns > MAX_COMBINED or size.rows > MAX_COMBINED_ROWS
        if kind == "Classifier" or size.sparse or size.sampled or large:
            return machines
        usual = [one for one in machines if (one.max_leaf_nodes, one.max_features) in COMBINED_SETTINGS]
        return [*machines, *(_of_combined(size, one) for one in usual)]

    def of_trees(name: str, title: str, machines: Callable[[Size], list[Any]], **others: Any) -> Candidate:
        return Candidate(name, title, machines, _needs_dense, encoding=CODES, **others)

    def additive(**settings: Any) -> Callable[[Size], list[Any]]:
        return lambda size: [make("Additive", **settings, **_usual(size))]

    all_rounds, few_rounds = boosting(_boosting_settings), boosting(_quick_boosting)
    return (
        *simple,
        Candidate("neighbours", "Nearest neighbours", neighbours, _few_rows),
        of_trees("tree", "Pruned tree", pruned, slow=_approximated),
        of_trees(
            "additive", "Additive machine", additive(n_bags=4), quick=additive(interactions=0, n_bags=2, max_iter=100)
        ),
        kernel,
        Candidate(
            "string_kernel",
            "String kernel machine",
            _string_kernels,
            _no_strings,
            turn=SOON,
            encoding=LETTERS,
            pairs=True,
        ),
        Candidate(
            "learned_kernel",
            "Kernel with a learned metric",
            _learned_kernels,
            _too_large_for_metric,
            _approximated,
            pairs=True,
        ),
        of_trees("forest", "Random forest", forest(_trees), turn=SOON, quick=forest(lambda s: QUICK_FOREST)),
        of_trees("boosting", "Gradient boosting", with_combined, turn=EARLY, quick=few_rounds),
        Candidate(
            "network",
            "Network",
            lambda s: [head(s, net) for net in _networks(s)],
            _needs_network,
            lambda s: True,
            loading=NETWORK_LOADING,
        ),
        VOTE,
    )


def _logistic(size: Size) -> list[Any]:
    return [er.LogisticRegression(C=C, tol=TOL) for C in (TEXT_C[0] if size.texts else (0.1, 0.01, 1.0, 10.0))]


def _few_columns(size: Size) -> str:
    wide = size.columns >= WIDE_COLUMNS or (size.columns >= MIN_WIDE and size.columns * WIDE_ROWS > size.rows)
    return _many_classes(size) or _too_long(size) or ("" if wide else "it is for tables with many columns")


def _sparse_logistic(size: Size) -> list[Any]:
    # From the C at which the first columns come in, in steps of about three.
    return [er.LogisticRegression(penalty="l1", C=C, tol=TOL) for C in (0.1, 0.03, 0.3, 1.0)]


def _linear_svms(size: Size) -> list[Any]:
    # In steps of ten around the C at which rows of variance one begin to be told apart, the usual one first.
    return [er.SVM(C=C, tol=TOL) for C in (TEXT_C[1] if size.texts else (0.1, 0.001, 0.01, 1.0))]


def _quadratic(size: Size) -> list[Any]:
    return [_ridge(size, _products(size), features=er.maps.Polynomial(2))]


def _robust(size: Size) -> list[Any]:
    # Of R(w) and the loss, one is in squares of the target's unit and the other in units: C makes up for it.
    return [er.LeastAbsolute(penalty="l2", C=factor * size.unit) for factor in (0.1, 0.001, 10.0)]


CLASSIFIERS = _everyone(
    "Classifier",
    [
        Candidate("baseline", "Always the most frequent class", lambda s: [DummyClassifier()], turn=AT_ONCE),
        Candidate("centroid", "Nearest centroid", lambda s: [er.NearestCentroid()], fair=True),
        Candidate("logistic", "Logistic regression", _logistic, turn=EARLY),
        Candidate("l1_logistic", "Sparse logistic regression", _sparse_logistic, _few_columns, turn=SOON),
        Candidate("svm", "Linear support vector machine", _linear_svms, _many_classes, _approximated),
    ],
    Candidate(
        "kernel_svm",
        "Gaussian support vector machine",
        _gaussian_svms,
        _few_rows,
        _approximated,
        turn=SOON,
        quick=lambda s: [_gaussian_svm(s, 0.35, 10.0, np.inf)] if s.rows > EXACT_SVM_ROWS else [],
        pairs=True,
    ),
    lambda s, network: er.LogisticRegression(C=1.0, features=network, tol=TOL),
)

REGRESSORS = _everyone(
    "Regressor",
    [
        Candidate("baseline", "Always the mean", lambda s: [DummyRegressor()], turn=AT_ONCE),
        Candidate("ridge", "Ridge regression", lambda s: [_ridge(s, s.columns)], turn=EARLY),
        Candidate("quadratic", "Quadratic ridge regression", _quadratic, _too_many_products, turn=EARLY),
        Candidate("lasso", "Lasso", lambda s: [er.Lasso(C="cv", tol=TOL)], _too_long),
        Candidate("robust", "Least absolute deviations", _robust),
    ],
    Candidate("kernel_ridge", "Gaussian ridge regression", _gaussian_ridges, _few_rows, _approximated, turn=SOON),
    # In units of the target the sum of squares is as large as the penalties on the weights allow.
    lambda s, network: er.Ridge(C=1.0 / s.unit**2, features=network, tol=TOL),
)


#: Around the best settings, where time is left: what their numbers are multiplied with, one change at a time.
CHANGES: tuple[dict[str, float], ...] = (
    {"width": 0.7},
    {"width": 1.4},
    {"C": 3.0},
    {"C": 1 / 3},
    {"learning_rate": 0.5, "n_estimators": 2.0},
    {"max_leaf_nodes": 2.0},
    {"max_leaf_nodes": 0.5},
    {"min_samples_leaf": 3.0},
    {"n_neighbors": 2.0},
    {"n_neighbors": 0.5},
)


def around(machine: Any) -> list[Any]:
    """The machine with one of its settings changed, in several ways.

    >>> [changed.C for changed in around(er.SVM(C=1.0))]
    [3.0, 0.3333333333333333]
    """
    found = []
    values = {name: value for name, value in machine.get_params().items() if type(value) in (int, float)}
    for change in CHANGES:
        new = {
            name: type(value)(value * change[word])
            for name, value in values.items()
            if (word := name.rsplit("__", 1)[-1]) in change
        }
        # One leaf is no tree, and one neighbour is among the usual settings.
        if len(new) == len(change) and all(value > 1 or isinstance(value, float) for value in new.values()):
            found.append(clone(machine).set_params(**new))
    return found


def candidates_for(classification: bool, names: Sequence[str] | None = None) -> tuple[Candidate, ...]:
    """Those who play for a task, all or the ones named; the baseline always plays."""
    everyone = CLASSIFIERS if classification else REGRESSORS
    if names is None:
        return everyone
    known = [candidate.name for candidate in everyone]
    for name in names:
        if name not in known:
            hint = did_you_mean(name, known, f"choose from {', '.join(known)}.")
            raise EmpiriskError(f"machines={name!r} is not known; {hint}")
    return tuple(c for c in everyone if c.name in names or c.name == "baseline")
