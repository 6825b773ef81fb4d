"""Small fitted models of every kind that a file holds, each with rows to ask it about."""

from collections.abc import Callable
from operator import attrgetter
from typing import Any

import numpy as np
import polars as pl
from scipy import sparse
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    LabelBinarizer,
    LabelEncoder,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    QuantileTransformer,
    RobustScaler,
    TargetEncoder,
)

import empirisk as er
from empirisk.kernels.strings import Spelled
from empirisk.league.rows.encodings import encoders, pipeline_of
from empirisk.maps.recipes import BoxCox, Logarithm
from empirisk.tables.spread import Errors, learn_spread
from tests import catalog, kernel_catalog
from tests.files.cases import built, fitted, public_estimators, rows, step_pipelines, target, text_steps

FEW = {"n_estimators": 3, "max_leaf_nodes": 4, "max_depth": 3}
TEXTS = ["the cat sat on a mat", "a dog and the cat", "dogs sat on mats", "no cat no mat"] * 4

Subject = Callable[[], tuple[Any, Any]]


def small(estimator: Any) -> Any:
    """An estimator with few and small members, so that its file is small."""
    known = estimator.get_params(deep=False)
    return estimator.set_params(**{name: value for name, value in FEW.items() if name in known})


def three_classes(X: np.ndarray) -> np.ndarray:
    return np.array(["a", "b", "c"])[np.digitize(X[:, 0], [-0.5, 0.5])]


def coloured(n: int = 40) -> pl.DataFrame:
    return pl.DataFrame({"colour": (["red", "blue", "green", None] * n)[:n], "size": np.arange(float(n))})


def by_class(name: str) -> Subject:
    return lambda: (fitted(small(built(attrgetter(name)(er)))), rows(5))


def machine(estimator: Any, y: Callable[[np.ndarray], np.ndarray] | None = None, X: Any = None) -> Subject:
    def build() -> tuple[Any, Any]:
        table = rows(24) if X is None else X
        return estimator.fit(table, target(estimator, table) if y is None else y(rows(24))), table[:5]

    return build


def in_the_midst(estimator: Any, y: Callable[[np.ndarray], Any], **first: Any) -> Subject:
    """After two calls of `partial_fit`."""
    return lambda: (estimator.partial_fit(rows(24), y(rows(24)), **first).partial_fit(rows(24), y(rows(24))), rows(5))


def strings(kernel: Any) -> Subject:
    return lambda: (er.SVM(features=kernel).fit(TEXTS, [0, 1, 0, 1] * 4), TEXTS[:3])


def precomputed() -> tuple[Any, Any]:
    K = er.kernels.Gaussian(2.0)(rows(24))
    return er.SVM(features="precomputed").fit(K, target(er.SVM(), rows(24))), K[:5]


def categories(estimator: Any) -> Subject:
    return lambda: (estimator.fit(coloured(), np.arange(40) % 4 < 2), coloured(6))


def steps(name: str) -> Subject:
    X = rows().round(0)
    return lambda: (fitted(step_pipelines()[name], X), X[:5])


def texts(step: Any) -> Subject:
    return lambda: (step.fit(TEXTS), TEXTS[:3])


def table() -> tuple[Any, Any]:
    from tests.service.serving import table_model

    model, frame = table_model()
    return model, frame.head(5)


def series() -> tuple[Any, Any]:
    """A model in order of time, and days that come after those it learned from."""
    days = np.datetime64("2024-01-01") + np.arange(70)
    y = np.tile([5.0, 4.0, 4.0, 4.0, 5.0, 9.0, 8.0], 10) + np.linspace(0, 2, 70)
    frame = pl.DataFrame({"day": days, "x": np.cos(np.arange(70.0)), "y": y})
    model = er.learn(frame, "y", time_order="day", machines=["ridge"], folds=2).model
    return model, pl.DataFrame({"day": days[:5] + 72, "x": np.zeros(5)})


def cells(values: list[str], estimator: Any, letters: bool = False, **more: Any) -> Subject:
    """A model of a table with one column, about two classes."""

    def build() -> tuple[Any, Any]:
        frame = pl.DataFrame({"x": values, "y": (["yes", "no", "yes", "no", "no"] * len(values))[: len(values)]})
        target, schema = er.tables.Target.of(frame, "y"), er.tables.understand(frame, without=["y"])
        encoder = er.tables.TableEncoder(schema, letters=letters)
        pipeline = make_pipeline(encoder, clone(estimator)).fit(frame, target.values(frame))
        return er.tables.TableModel(schema, pipeline, target, **more), frame.drop("y").head(5)

    return build


def sequences() -> list[str]:
    return ["".join(letters) for letters in np.random.default_rng(0).choice(list("ACGT"), size=(40, 8))]


def with_spread(learn: Callable[..., Errors] | None = None) -> tuple[Any, Any]:
    """A model of numbers that knows how far it is off where: by a forest, or by the prediction alone."""
    random = np.random.default_rng(0)
    x = random.uniform(1, 10, size=300)
    frame = pl.DataFrame({"x": x, "y": x + 0.3 * x * random.normal(size=300)})
    target, schema = er.tables.Target.of(frame, "y"), er.tables.understand(frame, without=["y"])
    pipeline = make_pipeline(er.tables.TableEncoder(schema), er.Ridge()).fit(frame, target.values(frame))
    predicted, truth = pipeline.predict(frame), frame["y"].to_numpy()
    errors = learn(predicted, truth) if learn else learn_spread(pipeline[0].transform(frame), predicted, truth)
    more = {"residuals": np.sort(errors.scaled), "spread": errors.spread, "limits": (0.0, 20.0)}
    return er.tables.TableModel(schema, pipeline, target, **more), frame.drop("y").head(5)


def of_two_encodings() -> tuple[Any, Any]:
    """A vote of a tree, which reads codes of words, and a linear machine, which reads indicators."""
    frame = coloured().with_columns(y=pl.Series(["yes", "no", "yes", "no", "no"] * 8))
    target, schema = er.tables.Target.of(frame, "y"), er.tables.understand(frame, without=["y"])
    vote = er.VoteClassifier([er.TreeClassifier(max_depth=2), er.LogisticRegression()])
    pipeline = pipeline_of(vote, encoders(er.tables.TableEncoder(schema))).fit(frame, target.values(frame))
    return er.tables.TableModel(schema, Pipeline(pipeline.steps), target), frame.drop("y").head(5)


def learned(name: str, target: str, *machines: str) -> Subject:
    """What `learn` writes: with residuals for intervals, a profile of the rows, calibrated probabilities."""

    def build() -> tuple[Any, Any]:
        found = er.learn(er.tables.read(name).head(150), target=target, machines=machines)
        return found.model, er.tables.read(name).head(5)

    return build


def objects(kernel: Any, items: list) -> Subject:
    y = np.arange(len(items)) % 2
    return lambda: (er.SVM(features=kernel).fit(items, y), items[:3])


def vectors(kernel: Any) -> Subject:
    return machine(er.Ridge(features=kernel), lambda X: X[:, 0])


def every_kernel() -> dict[str, Subject]:
    """A machine behind each kernel, and behind each way to make one of others."""
    found = {type(kernel).__name__: vectors(kernel) for kernel in kernel_catalog.VECTOR_KERNELS}
    linear = er.kernels.Linear()
    found |= {name: vectors(make(linear)) for name, make in kernel_catalog.UNARY.items() if name != "times"}
    found |= {name: vectors(make(linear, linear)) for name, make in kernel_catalog.BINARY.items()}
    found |= {type(kernel).__name__: objects(kernel, items) for kernel, items in kernel_catalog.OBJECT_KERNELS}
    return {f"kernels: {name}": subject for name, subject in found.items()}


def every_part() -> dict[str, Subject]:
    """A machine with each loss and each penalty as an object."""
    found = {}
    for loss in (loss for loss in catalog.MARGIN_LOSSES + catalog.JOINT_LOSSES if loss.convex):
        found[f"losses: {type(loss).__name__}"] = machine(er.Classifier(loss=loss), three_classes)
    for loss in catalog.RESIDUAL_LOSSES:
        found[f"losses: {type(loss).__name__}"] = machine(er.Regressor(loss=loss), lambda X: X[:, 0])
    for loss in catalog.DEVIANCES:
        found[f"losses: {type(loss).__name__}"] = machine(er.Regressor(loss=loss), lambda X: np.exp(X[:, 0]))
    for penalty in [*catalog.NORMS, catalog.POSITIVE[0]]:
        found[f"penalties: {type(penalty).__name__}"] = machine(er.Regressor(penalty=penalty), lambda X: X[:, 0])
    return found


def of_portions() -> tuple[Any, Any]:
    X = rows(24)
    network = er.LogisticRegression(features=er.Network([3], random_state=0))
    return network.partial_fit(X, three_classes(X), classes=["a", "b", "c"]), X[:5]


def every_network() -> dict[str, Subject]:
    small = {"epochs": 1, "random_state": 0}
    images = np.random.default_rng(0).normal(size=(24, 6, 6, 1))
    nets = er.nets
    layers = [
        nets.Branch([nets.Conv(1, 3, padding=1), nets.Filter("gaussian", 3)]),
        nets.BatchNorm(),
        nets.MaxPool(2),
        nets.MeanPool(2, 1),
        nets.Activation("tanh"),
        nets.Flatten(),
        nets.Dropout(0.1),
        nets.Dense(8),
        nets.LayerNorm(),
        nets.Residual([4, 8], "gelu"),
        nets.Reshape((2, 2, 2)),
        nets.Upsample(3, 3),
        nets.ConvTranspose(1, 2),
        nets.Dense(3),
    ]
    augment = [nets.Mirror(), nets.Shift(1), nets.Noise(), nets.Masking(), nets.Scale(), nets.Crop()]
    conv = er.Network(layers, shape=(6, 6, 1), augment=augment, **small)
    return {
        "network": machine(er.LogisticRegression(features=er.Network([3], **small))),
        "network of images": machine(er.SVM(features=conv), three_classes, images),
        "network of portions": of_portions,
        "autoencoder": machine(er.PCA(1, er.Network([3], **small)), lambda X: None),
        "tangent": machine(er.Ridge(features=er.kernels.Tangent(er.Network([3], random_state=0))), lambda X: X[:, 0]),
    }


def every_map() -> dict[str, Subject]:
    """Machines behind kernels, maps and learned metrics."""
    kernel = er.kernels.Gaussian("median").on([0, 1]) + 0.5 * er.kernels.Polynomial(2) ** 2
    return {
        "kernel SVM": machine(er.SVM(features=kernel)),
        "kernel of columns": machine(er.Ridge(features=er.kernels.Anova(order=2))),
        "several kernels": machine(er.Ridge(features=er.maps.SeveralKernels(["linear", "gaussian"]))),
        "learned kernel": machine(er.Ridge(features=er.LearnedKernel("gaussian", rounds=1))),
        "learned weights of columns": machine(er.SVM(features=er.LearnedKernel(metric="diagonal", rounds=1))),
        "learned leaves": machine(er.Ridge(features=er.LearnedKernel("gaussian", rounds=1, leaf_size=20))),
        "centred": machine(er.Ridge(features=er.kernels.Centred(er.kernels.Laplacian(2.0)))),
        "kernel neighbours": machine(er.KNNClassifier(features=er.kernels.Gaussian(2.0), weights="distance")),
        "nystrom": machine(er.SVM(features=er.maps.Nystrom("gaussian", 6, random_state=0))),
        "waves": machine(er.Ridge(features=er.maps.RandomFourier("gaussian", 8, random_state=0))),
        "monomials": machine(er.SVM(features=er.maps.Polynomial(2))),
        "spectrum": strings(er.kernels.Spectrum(2, blended=True)),
        "subsequence": strings(er.kernels.Subsequence(2)),
        "precomputed": precomputed,
        "neighbours by a metric": machine(er.KNNClassifier(features=er.LargeMarginMetric(max_iter=2))),
    }


def of_trees() -> dict[str, Subject]:
    """Trees, what is made of many of them, and of other machines."""
    return {
        "tree of three": machine(er.TreeClassifier(max_depth=3), three_classes),
        "tree of targets": machine(er.TreeRegressor(max_depth=2), lambda X: X[:, :2]),
        "forest of three": machine(er.ForestClassifier(3, max_depth=3, random_state=0), three_classes),
        "boosting of three": machine(er.BoostingClassifier(n_estimators=2, max_leaf_nodes=4), three_classes),
        "adaboost of machines": machine(er.AdaBoostClassifier(er.LogisticRegression(), n_estimators=2)),
        "tree of categories": categories(er.TreeClassifier(max_depth=2)),
        "forest of categories": categories(er.ForestClassifier(2, max_depth=2, random_state=0)),
        "additive of categories": categories(er.AdditiveClassifier(n_bags=2, max_iter=2, min_samples_leaf=1)),
        "additive of three": machine(er.AdditiveClassifier(n_bags=2, max_iter=2, min_samples_leaf=1), three_classes),
        "boosting of categories": categories(er.BoostingClassifier(n_estimators=2, max_leaf_nodes=3)),
        "tree of labels": machine(er.TreeClassifier(max_depth=2), lambda X: (X[:, :2] > 0).astype(int)),
        "forest of labels": machine(
            er.ForestClassifier(2, max_depth=2, random_state=0), lambda X: (X[:, :2] > 0).astype(int)
        ),
        "forest of targets": machine(er.ForestRegressor(2, max_depth=2, random_state=0), lambda X: X[:, :2]),
        "boosting of targets": machine(er.BoostingRegressor(n_estimators=2, max_leaf_nodes=3), lambda X: X[:, :2]),
        "boosting of lines": machine(er.BoostingRegressor(n_estimators=2, max_leaf_nodes=3, leaves="linear")),
        "bag of targets": machine(er.BaggingRegressor(n_estimators=2, random_state=0), lambda X: X[:, :2]),
        "boosting of labels": machine(er.BoostingClassifier(n_estimators=2), lambda X: (X[:, :2] > 0).astype(int)),
        "bagging of labels": machine(
            er.BaggingClassifier(n_estimators=2, random_state=0), lambda X: (X[:, :2] > 0).astype(int)
        ),
    }


def of_tables() -> dict[str, Subject]:
    """Models of tables, as `learn` writes them, with what they know besides."""
    return {
        "table": table,
        "series": series,
        "several values in a cell": cells(["a;b", "b", "a;b;c", "c", ""] * 8, er.NearestCentroid()),
        "spelled": cells(sequences(), er.SVM(features=Spelled(er.kernels.Spectrum(2)).on(slice(0, 8))), letters=True),
        "rows behind with missing words": cells(
            ["a", "b", "", "c"] * 9, er.KNNClassifier(1), behind=np.full((2, 1), np.nan)
        ),
        "sequences": cells(sequences(), er.LogisticRegression(), threshold=(1, 0.4)),
        "two encodings": of_two_encodings,
        "spread": with_spread,
        "spread by prediction": lambda: with_spread(Errors.by_prediction),
        "learned classes": learned("iris", "species", "tree", "centroid"),
        "learned numbers": learned("diabetes", "progress", "tree", "ridge"),
    }


def without_targets() -> dict[str, Subject]:
    """Clusters, mixtures and projections."""
    return {
        "Hierarchical": machine(er.Hierarchical(n_clusters=2), lambda X: None),
        "mini-batches": machine(er.KMeans(2, batch_size=8, random_state=0), lambda X: None),
        "kernel k-means": machine(er.KMeans(2, er.kernels.Gaussian(2.0), random_state=0), lambda X: None),
        "diagonal mixture": machine(er.GaussianMixture(2, covariance_type="diagonal", random_state=0), lambda X: None),
        "tied mixture": machine(er.GaussianMixture(2, covariance_type="tied", random_state=0), lambda X: None),
        "kernel components": machine(er.PCA(2, er.kernels.Gaussian(2.0)), lambda X: None),
        "sparse codes": machine(er.Dictionary(4, coding="omp", nonzeros=2, random_state=0), lambda X: None),
        "clusters in the midst": in_the_midst(er.KMeans(2, random_state=0), lambda X: None),
        "mixture in the midst": in_the_midst(er.GaussianMixture(2, random_state=0), lambda X: None),
        "one class behind a kernel": machine(er.OneClassSVM(features=er.kernels.Gaussian(1.0)), lambda X: None),
    }


def by_others() -> dict[str, Subject]:
    """Steps and models of scikit-learn, and ours that stand beside them."""
    return {
        "scalers": machine(
            make_pipeline(
                MinMaxScaler(),
                RobustScaler(),
                MaxAbsScaler(),
                QuantileTransformer(n_quantiles=8),
                Normalizer(),
                er.Ridge(),
            ),
            lambda X: X[:, 0],
        ),
        "target encoder": machine(make_pipeline(TargetEncoder(), er.Ridge()), lambda X: X[:, 0], rows(24).round(0)),
        "powers": machine(make_pipeline(BoxCox(), er.Ridge()), lambda X: X[:, 0], np.exp(rows(24))),
        "logarithms": machine(make_pipeline(Logarithm(), er.Ridge()), lambda X: X[:, 0], np.exp(rows(24))),
        "temperature": lambda: (fitted(CalibratedClassifierCV(er.SVM(), method="temperature", cv=3)), rows(5)),
        "numbers of labels": lambda: (LabelEncoder().fit(TEXTS), TEXTS[:3]),
        "columns of labels": lambda: (LabelBinarizer().fit(TEXTS), TEXTS[:3]),
    }


def of_the_equation() -> dict[str, Subject]:
    """Forms of linear machines and of neighbours."""
    return {
        "sparse neighbours": machine(er.KNNRegressor(n_neighbors="loo"), lambda X: X[:, 0], sparse.csr_array(rows(24))),
        "softmax": machine(er.LogisticRegression(), three_classes),
        "pairs": machine(er.SVM(multiclass="one_vs_one"), three_classes),
        "targets": machine(er.Ridge(C="loo"), lambda X: X[:, :2]),
        "constraint": machine(er.Ridge(C=er.Constraint(0.5)), lambda X: X[:, 0]),
        "several losses": machine(er.Regressor(loss=["squared", "absolute"]), lambda X: X[:, :2]),
        "several labels": machine(er.LogisticRegression(), lambda X: (X[:, :2] > 0).astype(int)),
        "neighbours with labels": machine(er.KNNClassifier(3), lambda X: (X[:, :2] > 0).astype(int)),
        "numbers in the midst": in_the_midst(er.Ridge(), lambda X: X[:, 0]),
        "classes in the midst": in_the_midst(er.SVM(), three_classes, classes=["a", "b", "c"]),
        "groups": machine(er.Regressor(penalty=er.penalties.GroupL1([0, 0, 1]), C=10.0), lambda X: X[:, 0]),
        "early stopping": machine(er.LogisticRegression(solver=er.solvers.EarlyStopping(er.solvers.Newton()))),
    }


def subjects() -> dict[str, Subject]:
    """Every public estimator, and those forms of them that keep other things."""
    found: dict[str, Subject] = {name: by_class(name) for name in public_estimators()}
    for room in (of_the_equation, every_map, of_trees, of_tables, without_targets, by_others):
        found |= room()
    found |= every_kernel() | every_part() | every_network()
    found |= {f"steps: {name}": steps(name) for name in step_pipelines()}
    found |= {f"texts: {type(step).__name__}": texts(step) for step in text_steps()}
    return found
