"""Small fitted models of every kind that a file holds, each with rows to ask it about."""

from collections.abc import Callable
from operator import attrgetter
from typing import Any

import numpy as np
import polars as pl
from scipy import sparse
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    QuantileTransformer,
    RobustScaler,
    TargetEncoder,
)

import empirisk as er
from tests.files.cases import built, fitted, public_estimators, rows, step_pipelines, target, text_steps
from tests.service.serving import table_model

FEW = {"n_estimators": 3, "max_leaves": 4, "max_depth": 3}
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
    model, frame = table_model()
    return model, frame.head(5)


def subjects() -> dict[str, Subject]:
    """Every public estimator, and those forms of them that keep other things."""
    kernel = er.kernels.Gaussian("median").on([0, 1]) + 0.5 * er.kernels.Polynomial(2) ** 2
    found: dict[str, Subject] = {name: by_class(name) for name in public_estimators()}
    found |= {
        "kernel SVM": machine(er.SVM(features=kernel)),
        "kernel of columns": machine(er.Ridge(features=er.kernels.Anova(order=2))),
        "several kernels": machine(er.Ridge(features=er.maps.SeveralKernels(["linear", "gaussian"]))),
        "centred": machine(er.Ridge(features=er.kernels.Centred(er.kernels.Laplacian(2.0)))),
        "kernel neighbours": machine(er.KNNClassifier(features=er.kernels.Gaussian(2.0), weights="distance")),
        "sparse neighbours": machine(er.KNNRegressor(k="loo"), lambda X: X[:, 0], sparse.csr_array(rows(24))),
        "one class behind a kernel": machine(er.OneClassSVM(features=er.kernels.Gaussian(1.0)), lambda X: None),
        "softmax": machine(er.LogisticRegression(), three_classes),
        "pairs": machine(er.SVM(multiclass="one_vs_one"), three_classes),
        "targets": machine(er.Ridge(C="loo"), lambda X: X[:, :2]),
        "nystrom": machine(er.SVM(features=er.maps.Nystrom("gaussian", 6, random_state=0))),
        "waves": machine(er.Ridge(features=er.maps.RandomFourier("gaussian", 8, random_state=0))),
        "monomials": machine(er.SVM(features=er.maps.Polynomial(2))),
        "spectrum": strings(er.kernels.Spectrum(2, blended=True)),
        "subsequence": strings(er.kernels.Subsequence(2)),
        "precomputed": precomputed,
        "tree of three": machine(er.TreeClassifier(max_depth=3), three_classes),
        "tree of targets": machine(er.TreeRegressor(max_depth=2), lambda X: X[:, :2]),
        "forest of three": machine(er.ForestClassifier(3, max_depth=3, random_state=0), three_classes),
        "boosting of three": machine(er.BoostingClassifier(n_estimators=2, max_leaves=4), three_classes),
        "adaboost of machines": machine(er.AdaBoostClassifier(er.LogisticRegression(), n_estimators=2)),
        "tree of categories": categories(er.TreeClassifier(max_depth=2)),
        "forest of categories": categories(er.ForestClassifier(2, max_depth=2, random_state=0)),
        "boosting of categories": categories(er.BoostingClassifier(n_estimators=2, max_leaves=3)),
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
        "table": table,
    }
    found |= {f"steps: {name}": steps(name) for name in step_pipelines()}
    found |= {f"texts: {type(step).__name__}": texts(step) for step in text_steps()}
    return found
