"""Random models of every family on hostile rows, in ONNX, Python and SQL: ``python -m tests.exports.sweep``."""

import argparse
import sys
import tempfile
import time
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV

import empirisk as er
from empirisk import kernels, maps
from empirisk.errors import EmpiriskError, Unsuitable
from empirisk.exports.registry import asked
from empirisk.league.candidates.everyone import CLASSIFIERS, REGRESSORS, Size
from empirisk.league.rows.encodings import CODES, NUMBERS
from tests.exports.cases import NETWORKS
from tests.exports.tables import ALL, HOSTILE, TABLE, model_of

#: What numbers may differ by, relative to those above one.
DIGITS = 1e-9
FORMS = (".onnx", ".py")
#: The form that linear machines and single trees have besides.
ALSO = ".sql"
#: Seconds from which a model is named.
SLOW = 10
WORDS = ["good", "bad", "Größe", "cheap", "l'été", "a-b", "42", "ΟΔΟΣ", "ﬁne", "日本語", "x" * 30]
#: Texts as people send them, and as nobody does.
STRANGE_TEXTS = [
    "", None, "good " * 60, "GRÖSSE Gro\u0308ße", "good\0bad", "\u3000good\u2003bad\x85new",
    "½good \uff11\uff14\uff12 ﬁNE",
    "ΟΔΟΣ ΟΔΟΣ'\u0391 ΣΟΦΟΣ", "\U0001f600 42", "NULL", "'; DROP TABLE rows; --", "x" * 400, "\t\n", "N/A",
]  # fmt: skip
SEQUENCES = ["", None, "ACGT" * 40, "acgt", " ACG T", "ACGTN-*", "A", "日本"]


def _kernel(random, columns, depth=0):
    """A kernel at random: of vectors, or made of others."""
    width = float(np.exp(random.uniform(-1.0, 2.0)))
    plain = [
        lambda: kernels.Gaussian(width),
        lambda: kernels.Laplacian(width, int(random.integers(1, 3))),
        lambda: kernels.Polynomial(int(random.integers(1, 4)), float(random.uniform(0, 2))),
        lambda: kernels.Linear(),
        lambda: kernels.Anova(order=int(random.integers(1, 3))),
        lambda: kernels.Gaussian("median"),
    ]
    made = [
        lambda: _kernel(random, columns, depth + 1) + _kernel(random, columns, depth + 1),
        lambda: _kernel(random, columns, depth + 1) * _kernel(random, columns, depth + 1),
        lambda: float(random.uniform(0.1, 2)) * _kernel(random, columns, depth + 1),
        lambda: kernels.Gaussian(width).on([0, columns - 1]),
        lambda: _kernel(random, columns, 2).normalised(),
        lambda: kernels.Centred(kernels.Gaussian(width)),
        lambda: kernels.Gaussian(width) ** 2,
        lambda: kernels.exp(kernels.Linear().normalised()),
        lambda: kernels.polynomial(kernels.Gaussian(width), [1.0, 0.0, 2.0]),
    ]
    return random.choice(plain + made * (depth < 2))()


def _features(random, columns, wide):
    """The slot at random: none, a kernel, or a map; none that has all products of many columns."""
    seed = int(random.integers(100))
    choices = [
        lambda: None,
        lambda: _kernel(random, columns),
        lambda: _kernel(random, columns),
        lambda: maps.Nystrom(_kernel(random, columns), rank=int(random.integers(3, 30)), random_state=seed),
        lambda: maps.RandomFourier(kernels.Gaussian(float(random.uniform(0.5, 4))), rank=20, random_state=seed),
        lambda: maps.Polynomial(1 if wide else int(random.integers(1, 4))),
        lambda: maps.Periodic(2),
        lambda: maps.SeveralKernels([_kernel(random, columns) for _ in range(random.integers(1, 4))]),
        lambda: er.LearnedKernel("gaussian", metric=random.choice(["full", "diagonal"]), rounds=1),
        lambda: clone(NETWORKS[random.integers(2)]),
    ]
    return random.choice(choices)()


def _classifier(random, columns, wide=False):
    slot, C, seed = _features(random, columns, wide), float(np.exp(random.uniform(-3, 3))), int(random.integers(100))
    trees = {"random_state": seed, "max_leaf_nodes": int(random.integers(2, 30))}
    few = {"n_estimators": int(random.integers(1, 9)), "random_state": seed}
    few["splitter"] = str(random.choice(["best", "random"]))
    choices = [
        lambda: er.SVM(C=C, features=slot),
        lambda: er.LogisticRegression(C=C, features=slot),
        lambda: er.LogisticRegression(C=C, features=slot, multiclass="one_vs_rest"),
        lambda: er.SVM(C=C, multiclass="one_vs_one"),
        lambda: er.LeastSquaresClassifier(features=slot, penalty="l2"),
        lambda: er.Classifier(loss=random.choice(["exponential", "squared_hinge", "soft_hinge"]), C=C),
        lambda: er.NearestCentroid(),
        lambda: er.KNNClassifier(int(random.integers(1, 9)), weights=random.choice(["uniform", "distance"])),
        lambda: er.KNNClassifier(3, features=_kernel(random, columns, 2)),
        lambda: er.TreeClassifier(**trees),
        lambda: er.ForestClassifier(**few),
        lambda: er.BoostingClassifier(**few, max_leaf_nodes=trees["max_leaf_nodes"]),
        lambda: er.AdditiveClassifier(max_iter=20, interactions=int(random.integers(3)), random_state=seed),
        lambda: er.AdaBoostClassifier(n_estimators=4, random_state=seed),
        lambda: er.BaggingClassifier(er.TreeClassifier(max_depth=3), 4, random_state=seed),
        lambda: er.BaggingClassifier(er.LogisticRegression(), 3, max_features=0.5, voting="soft", random_state=seed),
        lambda: er.VoteClassifier(
            [er.LogisticRegression(C=C), er.TreeClassifier(**trees), er.KNNClassifier(3)],
            **random.choice([{"voting": "hard"}, {"voting": "soft"}, {"voting": "soft", "temperature": 1.7}]),
            weights=random.uniform(size=3),
        ),
        lambda: CalibratedClassifierCV(er.SVM(C=C), ensemble=bool(random.integers(2)), cv=3),
        lambda: CalibratedClassifierCV(er.ForestClassifier(**few), method="isotonic", cv=3),
        lambda: CalibratedClassifierCV(er.LogisticRegression(C=C), method="temperature", ensemble=False, cv=3),
    ]
    return random.choice(choices)()


def _regressor(random, columns, wide=False):
    slot, C, seed = _features(random, columns, wide), float(np.exp(random.uniform(-3, 3))), int(random.integers(100))
    few = {"n_estimators": int(random.integers(1, 9)), "random_state": seed}
    few["splitter"] = str(random.choice(["best", "random"]))
    choices = [
        lambda: er.Ridge(C=C, features=slot),
        lambda: er.SVR(C=C, features=slot),
        lambda: er.Lasso(C=C),
        lambda: er.Regressor(loss="huber", C=C),
        lambda: er.QuantileRegressor(levels=np.sort(random.uniform(0.1, 0.9, random.integers(1, 4)))),
        lambda: er.KNNRegressor(int(random.integers(1, 9)), weights=random.choice(["uniform", "distance"])),
        lambda: er.TreeRegressor(max_leaf_nodes=int(random.integers(2, 30))),
        lambda: er.ForestRegressor(**few),
        lambda: er.BoostingRegressor(random.choice(["squared", "absolute", "huber"]), **few),
        lambda: er.BoostingRegressor(er.losses.Quantile(float(random.uniform(0.1, 0.9))), **few),
        lambda: er.AdditiveRegressor(max_iter=20, interactions=2, random_state=seed),
        lambda: er.BaggingRegressor(random_state=seed, n_estimators=4),
        lambda: er.VoteRegressor(
            [er.Ridge(C=C), er.KNNRegressor(3), er.ForestRegressor(**few)], weights=random.uniform(size=3)
        ),
    ]
    return random.choice(choices)()


def _other(random, columns):
    seed, count = int(random.integers(100)), int(random.integers(1, 5))
    form = random.choice(["full", "diagonal", "spherical", "tied"])
    choices = [
        lambda: er.KMeans(count, random_state=seed),
        lambda: er.KMeans(count, features=_kernel(random, columns, 2), random_state=seed),
        lambda: er.GaussianMixture(count, covariance_type=form, random_state=seed),
        lambda: er.GaussianDensity(),
        lambda: er.PCA(min(count, columns), whiten=bool(random.integers(2))),
        lambda: er.PCA(2, features=_kernel(random, columns, 2)),
        lambda: er.OneClassSVM(features=_kernel(random, columns, 2)),
        lambda: clone(NETWORKS[random.integers(2)]),
    ]
    return random.choice(choices)()


#: Machines that take missing values.
TAKES_MISSING = ("Tree", "Forest", "Boosting", "Additive")


#: A few roundings of a number of size one, by which rows are moved to see which digits of their answers are known.
ROUNDING, MOVES = 2.0**-49, 3
#: Distances tie that agree to this share.
TIE = 1e-12


def of_a_matrix(random):
    """A machine of random rows, and new ones: near, equal to those that it knows, far, zeros, and missing values."""
    rows, columns = int(random.integers(30, 120)), int(random.integers(2, 6))
    X = random.normal(size=(rows, columns)) * np.exp(random.uniform(-2, 2, columns))
    if random.random() < 0.3:
        X = np.round(X)
    y = X @ random.normal(size=columns) + X[:, 0] * X[:, -1] + 0.3 * random.normal(size=rows)
    make = random.choice([_classifier, _classifier, _regressor, _other])
    machine = make(random, columns)
    if make is _classifier:
        count = int(random.integers(2, 5))
        y = np.digitize(y, np.quantile(y, np.linspace(0, 1, count + 1)[1:-1]))
        y = y if random.random() < 0.5 else np.array(["ä", "b c", "O'Hara", ""])[y]
    size = np.abs(X).max()
    new = np.vstack([random.normal(size=(20, columns)) * size, X[:10], np.zeros((1, columns)), -0.0 * X[:1]])
    far = [1e3, 1e6, 1e-320] + [1e15, 1e300] * (type(machine).__name__.startswith(TAKES_MISSING))
    new = np.vstack([new, [size * each * random.normal(size=columns) for each in far]])
    if type(machine).__name__.startswith(TAKES_MISSING):
        X[random.random(X.shape) < 0.1] = np.nan
        new[random.random(new.shape) < 0.2] = np.nan
        new[0] = np.nan
    machine = machine.fit(X) if make is _other else machine.fit(X, y)
    return machine, new[steady(machine, new, lambda rows: _said(machine, rows), random)]


def of_a_frame(random):
    """Trees of a frame with words in two columns, few and many, and rows with words that they have not met."""
    rows, seed = int(random.integers(60, 300)), int(random.integers(100))
    levels = [f"{random.choice(WORDS)} {k}" for k in range(int(random.integers(5, 60)))]
    levels[0] = random.choice(["", " ", "O'Hara", "NULL", "nan", "a\0b"])
    many, few = random.integers(len(levels), size=rows), random.integers(3, size=rows)
    size = np.where(random.random(rows) < 0.1, np.nan, random.normal(size=rows))
    y = random.normal(size=len(levels))[many] + 0.5 * few + np.nan_to_num(size)
    usual = {"random_state": seed, "max_leaf_nodes": int(random.integers(2, 30))}
    some = usual | {"n_estimators": int(random.integers(1, 9)), "splitter": str(random.choice(["best", "random"]))}
    means = random.choice(["auto", True, False])
    means = means if means == "auto" else means == "True"
    kind = random.choice(["Classifier", "Regressor"])
    choices = [
        lambda: getattr(er, f"Tree{kind}")(**usual),
        lambda: getattr(er, f"Forest{kind}")(**some),
        lambda: getattr(er, f"Boosting{kind}")(**some, target_encoding=means),
        lambda: getattr(er, f"Boosting{kind}")(**some, target_encoding=means),
        lambda: getattr(er, f"Additive{kind}")(max_iter=20, interactions=2, random_state=seed),
    ]
    machine = random.choice(choices)()
    if kind == "Classifier":
        y = np.digitize(y, np.quantile(y, [0.5] if random.random() < 0.5 else [0.3, 0.6]))
    frame = {"size": size, "many": [levels[k] for k in many], "few": np.array(["a", "b", "c"])[few]}
    gaps = random.random(rows) < 0.1
    frame["many"] = [None if gap else word for gap, word in zip(gaps, frame["many"], strict=True)]
    machine = machine.fit(pl.DataFrame(frame), y)
    words = [*levels, *WORDS, "never met", None, "'; DROP TABLE rows; --", "nan", "None"]
    new = {
        "size": random.choice([0.0, -0.0, np.nan, 1e300, -1e15, *size[:20]], 60),
        "many": [words[k] for k in random.integers(len(words), size=60)],
        "few": [["a", "b", "c", "d", None][k] for k in random.integers(5, size=60)],
    }
    return machine, pl.DataFrame(new)


def steady(machine, X, said, random):
    """Which rows have answers that their own rounding does not change: no program knows the other digits of the rest.

    Terms of a million that cancel to a score of one, classes that tie, and neighbours at equal distances.
    """
    told, rows = said(X), X.shape[0]
    kept = np.ones(rows, dtype=bool)
    for _ in range(MOVES):
        moved = X.copy()
        numbers = moved.data if issparse(X) else moved
        numbers += ROUNDING * (np.abs(numbers) + 1.0) * random.normal(size=numbers.shape)
        for first, second in zip(told, said(moved), strict=True):
            kept &= _alike(first.reshape(rows, -1), second.reshape(rows, -1))
    if hasattr(machine, "kneighbors"):
        squares = machine.kneighbors(X, machine.n_neighbors + 1)[0] ** 2
        kept &= squares[:, -1] - squares[:, -2] > TIE * squares[:, -1]
    if hasattr(machine, "predict_proba"):  # the last bit of exp decides between two classes that all but tie
        shares = np.sort(np.asarray(machine.predict_proba(X)), axis=1)
        lead = shares[:, -1] - shares[:, -2] if shares.shape[1] > 1 else np.ones(rows)
        kept &= (lead == 0) | (lead > TIE)
    if not kept.any():
        raise EmpiriskError("The rounding of the rows decides on all answers.")
    return kept


def _said(machine, X):
    """All that a machine says of rows."""
    return [np.asarray(answers) for answers in asked(machine, X).values()]


def _alike(first, second):
    if first.dtype.kind != "f":
        return (first == second).all(axis=1)
    with np.errstate(invalid="ignore"):
        gaps = np.abs(first - second) / np.maximum(np.abs(first), 1.0)
    return ((gaps < DIGITS / 4) | (first == second) | (np.isnan(first) & np.isnan(second))).all(axis=1)


def of_a_table(random):
    """A model as `learn` makes them, from columns of every kind, and rows of what people and programs send."""
    rows = len(TABLE["spam"])
    table = dict(TABLE)
    table["text"] = [" ".join(random.choice(WORDS, random.integers(0, 9))) for _ in range(rows)]
    table["text"] = [f"{text} {random.choice(['good', 'bad'])} {k}" for k, text in enumerate(table["text"])]
    table["gene"] = ["".join(random.choice(list("ACGT"), random.integers(8, 10))) for _ in range(rows)]
    every = [*ALL, "text", "gene"]
    columns = [name for name in every if name == "size" or random.random() < 0.5]
    classes = random.random() < 0.6
    target = "spam" if classes else "price"
    if random.random() < 0.6:
        size = Size(rows, 40, 10.0, 2 if classes else 0, False, int(random.integers(100)), unit=50.0)
        playing = [one for one in (CLASSIFIERS if classes else REGRESSORS) if one.encoding in (NUMBERS, CODES)]
        playing = [one for one in playing if not (one.votes or one.name == "network")]
        candidate = random.choice(playing)
        machines = candidate.machines(size)
        machine, trees = clone(machines[random.integers(len(machines))]), candidate.encoding == CODES
    else:
        machine, trees = (_classifier if classes else _regressor)(random, 4, wide=True), False
    model = model_of(machine, target, columns, table, trees)
    if classes and model.has_probabilities and random.random() < 0.3:
        model = replace(model, threshold=(int(random.integers(2)), float(random.uniform(0.1, 0.5))))
    cells = {name: [*HOSTILE.get(name, []), *table[name][:40]] for name in columns}
    cells["size"] += [1e308, -1e308, 1e-320, float("nan"), -0.0]
    for name, more in (("text", STRANGE_TEXTS), ("gene", SEQUENCES)):
        if name in cells:
            cells[name] += more
    rows = {name: [values[k] for k in random.integers(len(values), size=60)] for name, values in cells.items()}
    if trees:  # codes are whole numbers
        return model, rows
    kept = steady(model.pipeline[-1], model.encode(rows), lambda X: _said_of_a_table(model, X), random)
    return model, {
        name: [value for value, one in zip(values, kept, strict=True) if one] for name, values in rows.items()
    }


def _said_of_a_table(model, X):
    return [np.asarray(model.predict_encoded(X)), *_said(model.pipeline[-1], X)]


#: How models are made, in turn.
MADE = (of_a_table, of_a_matrix, of_a_matrix, of_a_table, of_a_matrix, of_a_frame)


def judged(seed, folder):
    """What is wrong with one model: a line for each form, and how it was refused."""
    random = np.random.default_rng(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            model, rows = MADE[seed % len(MADE)](random)
        except (EmpiriskError, TypeError) as error:  # no such fit: a combination without a meaning, or a sparse table
            return "", f"no fit: {error}"
        name = " ".join(repr(model).split())
        for ending in (*FORMS, ALSO):
            try:
                exported = er.export(model, Path(folder) / f"model{ending}", rows)
            except Unsuitable as error:
                return "", "" if ending == ALSO else f"{name}: {error}"
            except Exception as error:  # noqa: BLE001 - a line of the list
                return f"{seed} {ending} {name}: {type(error).__name__} {error}", ""
            if exported.labels or not exported.difference < DIGITS:
                return f"{seed} {ending} {name}: {exported}", ""
    return "", ""


def sweep(first, count, seconds=np.inf):
    """Seeds from the first on: how many were judged, what was wrong, and what was refused."""
    wrong, refused, end = [], [], time.monotonic() + seconds
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(first, first + count):
            if time.monotonic() > end:
                return seed - first, wrong, refused
            begun = time.monotonic()
            bad, not_written = judged(seed, folder)
            if time.monotonic() - begun > SLOW:
                print(f"{seed}: {time.monotonic() - begun:.0f} s", flush=True)
            wrong += [bad] * bool(bad)
            refused += [not_written] * bool(not_written)
            if bad:
                print(bad[:400], flush=True)
    return count, wrong, refused


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=10**6)
    parser.add_argument("--seconds", type=float, default=300)
    given = parser.parse_args()
    done, wrong, refused = sweep(given.first, given.count, given.seconds)
    print(f"{done} models, {len(wrong)} wrong, {len(refused)} without a fit or refused")
    for line in sorted(set(refused)):
        print("  ", line[:200])
    sys.exit(bool(wrong))
