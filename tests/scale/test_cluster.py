"""Collections of Dask on two real worker processes: the same answers, and nothing is lost with a worker."""

import gc
import importlib
import json
import os
import signal
import threading
import time
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.utils import check_random_state
from typer.testing import CliRunner

import empirisk as er
from empirisk.cli.main import app
from empirisk.errors import EmpiriskError, Unsuitable
from empirisk.scale import table as scale_table
from empirisk.scale.disk import Disk
from empirisk.solvers.newton import proximal_newton
from empirisk.trees.binned import bins

da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
distributed = pytest.importorskip("distributed")
DaskCluster = importlib.import_module("empirisk.scale.cluster").DaskCluster

random = np.random.default_rng(0)
ROWS, COLUMNS, PART = 8000, 4, 2000
X = random.normal(size=(ROWS, COLUMNS))
scores = X @ random.normal(size=COLUMNS) + random.normal(size=ROWS)
labels = np.where(scores > 0, "yes", "no")

pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(scope="module")
def client():
    import logging

    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0", "memory_limit": 0}
    with (
        distributed.LocalCluster(silence_logs=logging.CRITICAL, **options) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def collection(array, part=PART):
    return da.from_array(array, chunks=(part, *array.shape[1:]))


@pytest.mark.parametrize(
    ("machine", "y"),
    [(er.Ridge(tol=1e-9), scores), (er.LogisticRegression(penalty="l1", C=0.01, tol=1e-9), labels)],
    ids=["ridge", "logistic"],
)
def test_the_answer_is_that_of_the_rows_in_memory(client, machine, y):
    found = machine.fit(collection(X), collection(y)).certificate_
    answers = machine.predict(collection(X))
    assert isinstance(answers, da.Array)
    answers = answers.compute()
    expected = machine.fit(X, y)
    assert found.converged
    assert found.primal == pytest.approx(expected.certificate_.primal, rel=1e-8)
    if y is scores:
        np.testing.assert_allclose(answers, expected.predict(X), atol=1e-6)
    else:
        assert np.mean(answers == expected.predict(X)) > 0.999


@pytest.mark.parametrize(
    ("machine", "learned"),
    [
        (er.LogisticRegression(tol=1e-12), lambda machine: machine.coef_),
        (er.KMeans(3, init=X[:3]), lambda machine: machine.cluster_centers_),
        (er.BoostingClassifier(n_estimators=2), lambda machine: machine.packed_["slot"]),
    ],
    ids=["linear", "k-means", "boosting"],
)
def test_a_worker_that_is_killed_costs_time_and_no_bit(client, machine, learned):
    rows, targets = collection(X), collection(labels)
    expected = learned(machine.fit(rows, targets)).copy()
    victim = next(iter(client.run(os.getpid).values()))
    killer = threading.Timer(0.1, os.kill, (victim, signal.SIGKILL))
    killer.start()
    found = learned(machine.fit(rows, targets))
    killer.join()
    assert victim not in client.run(os.getpid).values()
    np.testing.assert_array_equal(found, expected)


def test_boosted_trees_are_those_of_memory(client):
    """The same splits; the values of leaves are summed in another order, and equal to rounding."""
    classes = np.digitize(scores, [-1, 1])
    weights = random.integers(0, 3, ROWS).astype(float)
    for machine, y in (
        (er.BoostingRegressor(n_estimators=3), scores),
        (er.BoostingClassifier(n_estimators=2), classes),
    ):
        expected = dict(machine.fit(X, y, sample_weight=weights).packed_)
        machine.fit(collection(X), collection(y), sample_weight=collection(weights))
        for name, values in expected.items():
            np.testing.assert_allclose(machine.packed_[name], values, rtol=0, atol=1e-12 if name == "slot" else 0)
        answers = machine.predict(collection(X))
        assert isinstance(answers, da.Array)
        np.testing.assert_array_equal(answers.compute(), machine.predict(X))
    with pytest.raises(Unsuitable, match="must be in memory"):
        er.BoostingRegressor("absolute").fit(collection(X), collection(scores))
    with pytest.raises(Unsuitable, match="early_stopping"):
        er.BoostingRegressor(early_stopping=True).fit(collection(X), collection(scores))
    with pytest.raises(Unsuitable, match="takes no collection of Dask; use boosting"):
        er.ForestRegressor().fit(collection(X), collection(scores))


def test_what_learns_without_targets_is_that_of_memory(client):
    start = X[:3]
    found = er.KMeans(3, init=start).fit(collection(X))
    expected = er.KMeans(3, init=start).fit(X)
    np.testing.assert_allclose(found.cluster_centers_, expected.cluster_centers_, rtol=1e-9)
    np.testing.assert_array_equal(found.predict(collection(X)).compute(), expected.labels_)
    found, expected = er.PCA(2).fit(collection(X)), er.PCA(2).fit(X)
    np.testing.assert_allclose(found.components_, expected.components_, atol=1e-8)
    np.testing.assert_allclose(found.transform(collection(X)).compute(), expected.transform(X), atol=1e-7)
    found = er.GaussianMixture(2, random_state=0, tol=1e-2).fit(collection(X))
    assert found.lower_bound_ == pytest.approx(
        er.GaussianMixture(2, random_state=0, tol=1e-2).fit(X).lower_bound_, abs=1e-2
    )
    assert np.all(np.diff(found.history_["log_likelihood"]) > -1e-9)
    np.testing.assert_allclose(found.predict_proba(collection(X)).compute(), found.predict_proba(X))


def test_explicit_maps(client):
    machine = er.Regressor("squared", er.maps.Polynomial(2), tol=1e-9)
    found = machine.fit(collection(X), collection(scores)).certificate_.primal
    assert found == pytest.approx(machine.fit(X, scores).certificate_.primal, rel=1e-8)


def test_what_comes_to_the_client_does_not_grow_with_the_rows_and_nothing_is_left(client, monkeypatch):
    """Sums, and samples of so many rows at most."""
    for module, name in ((proximal_newton, "SAMPLE_ROWS"), (scale_table, "SAMPLE_ROWS"), (bins, "SAMPLE")):
        monkeypatch.setattr(module, name, 400)
    received = {}
    for rows in (ROWS // 2, ROWS):
        # As many partitions: each result is a sum over all of them.
        part, some = rows // 2, slice(rows)
        classes = np.digitize(scores[some], [-1, 1])
        for name, machine, y in (
            ("ridge", er.Ridge(), scores[some]),
            ("softmax", er.Classifier("softmax", penalty="l1", C=0.01), classes),
            ("k-means", er.KMeans(3, max_iter=1), None),
            ("mixture", er.GaussianMixture(2, max_iter=1), None),
            ("boosting", er.BoostingRegressor(n_estimators=1, max_leaf_nodes=3), scores[some]),
        ):
            before = DaskCluster.received_in_all
            with warnings.catch_warnings(action="ignore"):  # of rounds that were left out
                machine.fit(collection(X[some], part), None if y is None else collection(y, part))
            received[name, rows] = DaskCluster.received_in_all - before
            del machine
    for (name, rows), size in received.items():
        assert size <= 1.2 * received[name, ROWS // 2], (name, rows)
    # Less than a number for each row, whatever the loss.
    assert max(received["ridge", ROWS], received["softmax", ROWS]) < 8 * ROWS
    assert _left(client) == 0


def test_partitions_may_be_larger_than_what_the_client_may_use(client):
    weights = random.integers(0, 3, ROWS).astype(float)
    codes = (labels == "yes").astype(int)
    for machine, y in (
        (er.LogisticRegression(tol=1e-9), codes),
        (er.KMeans(3, init=X[:3], max_iter=5), codes),
        (er.BoostingClassifier(n_estimators=1, max_leaf_nodes=4), codes),
    ):
        with warnings.catch_warnings(action="ignore"):
            expected = machine.fit(X, y, sample_weight=weights).predict(X)
            with er.config(memory=6 * PART * COLUMNS):  # a partition takes 8 bytes a number
                machine.fit(collection(X), collection(y), sample_weight=collection(weights))
        assert np.mean(machine.predict(X) == expected) > 0.999


def _left(client):
    """Tasks that are on the scheduler when all that was dropped has been heard of."""
    gc.collect()
    for _ in range(50):
        left = client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks))
        if not left:
            break
        time.sleep(0.1)
    return left


def test_data_frames_are_answered_in_their_kind(client):
    """Series and frames with the rows' index; columns are known by their names."""
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(COLUMNS)], index=np.arange(ROWS) + 7)
    frame["label"], frame["w"] = labels, random.integers(0, 3, ROWS).astype(float)
    there = dd.from_pandas(frame, npartitions=4, sort=False)
    names = list(frame.columns[:COLUMNS])
    machine = er.LogisticRegression(tol=1e-9).fit(there[names], there["label"], sample_weight=there["w"])
    found, coefficients = machine.certificate_.primal, machine.coef_
    answers = machine.predict(there[names]), machine.predict_proba(there[names])
    assert list(machine.feature_names_in_) == names
    expected = machine.fit(frame[names], frame["label"], sample_weight=frame["w"])
    assert found == pytest.approx(expected.certificate_.primal, rel=1e-8)
    assert list(machine.classes_) == ["no", "yes"]
    assert isinstance(answers[0], dd.Series)
    assert isinstance(answers[1], dd.DataFrame)
    expected.coef_ = coefficients
    classes, shares = (answer.compute() for answer in answers)
    assert np.mean(classes == expected.predict(frame[names])) > 0.999
    np.testing.assert_allclose(shares, expected.predict_proba(frame[names]), atol=1e-3)
    for answer in (classes, shares):
        np.testing.assert_array_equal(answer.index, frame.index)

    def renamed(part, partition_info=None):
        return part.rename(columns={"x1": "z"}) if partition_info and partition_info["number"] == 2 else part

    for enforced, words in ((False, r"has other columns than \['x0', 'x1'"), (True, r"cannot be computed \(.*'x1'")):
        wrong = there[names].map_partitions(renamed, meta=there[names]._meta, enforce_metadata=enforced)
        with pytest.raises(EmpiriskError, match=f"(?s)Partition 2 of X {words}"):
            er.Ridge().fit(wrong, there["w"])


def test_C_is_chosen_by_all_rows(client):
    """By the rows left out as in memory, and by the same folds as in files."""
    found = er.Ridge(C="loo").fit(collection(X), collection(scores)).choice_
    np.testing.assert_allclose(found.mean, er.Ridge(C="loo").fit(X, scores).choice_.mean, rtol=1e-8)
    codes = (labels == "yes").astype(int)
    place = Disk([ROWS])
    folds = place.gathered(place.dealt(place.scattered(codes), 2, 2, check_random_state(0).randint(2**31)))
    machine = er.LogisticRegression(C="cv", Cs=2, cv=2)
    found = machine.fit(collection(X), collection(labels)).choice_
    splits = [(np.flatnonzero(folds != k), np.flatnonzero(folds == k)) for k in range(2)]
    expected = machine.set_params(cv=splits).fit(X, labels).choice_
    np.testing.assert_allclose(found.losses, expected.losses, rtol=1e-3)


def test_folds_settings_and_contestants_go_to_the_workers(client):
    part, y = X[:300], labels[:300]
    space = {"C": [0.01, 1.0], "penalty": ["l1", "l2"]}

    def found():
        score = er.evaluate(er.SVM(features=er.kernels.Gaussian(2.0)), part, y, random_state=0).score
        search = er.selection.Search(er.LogisticRegression(), space, random_state=0).fit(part, y)
        learned = er.learn(part, y, machines=["centroid", "logistic"], folds=2)
        board = learned.leaderboard.drop("seconds")
        return score.value, search.cv_results_["mean_test_score"].tolist(), board.rows(), learned.test.scores[0].value

    here = found()
    with er.config(cluster="current"):
        there = found()
    assert there == here
    assert _left(client) == 0
    with pytest.raises(EmpiriskError, match="must be 'local', 'current', 'none' or an address"):
        er.config(cluster="nowhere")


def test_errors_name_the_partition(client):
    wrong = X.copy()
    wrong[PART + 3, 1] = np.nan
    with pytest.raises(EmpiriskError, match="Partition 1 of X, row 4, holds nan in the column 1;"):
        er.Ridge().fit(collection(wrong), collection(scores))
    wrong = scores.copy()
    wrong[PART + 3] = np.inf
    with pytest.raises(EmpiriskError, match="Partition 1 of y, row 4, holds inf; fill it in"):
        er.Ridge().fit(collection(X), collection(wrong))
    with pytest.raises(EmpiriskError, match="give both as collections"):
        er.Ridge().fit(collection(X), scores)


@pytest.mark.skipif(os.name == "nt", reason="no process sends itself Ctrl-C there")
def test_ctrl_c_cancels_the_tasks(client):
    """Pressed as soon as the scheduler has work of the fit."""
    ended = threading.Event()

    def press():
        while not ended.wait(0.02):
            if client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks)):
                os.kill(os.getpid(), signal.SIGINT)
                return

    presses = threading.Thread(target=press)
    presses.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            er.BoostingClassifier(n_estimators=1000).fit(collection(X), collection(labels))
    finally:
        ended.set()
        presses.join()
    assert _left(client) == 0


def test_a_fit_ends_in_time(client):
    with pytest.warns(match="max_time"):
        machine = er.SVM(max_time=0.05, tol=1e-13).fit(collection(X), collection(labels))
    assert machine.stopped_ == "max_time"
    with pytest.warns(match="max_time"):
        machine = er.BoostingClassifier(max_time=0.5).fit(collection(X), collection(labels))
    assert machine.stopped_ == "max_time"
    assert _left(client) == 0


def test_the_shell_sends_contestants_to_a_cluster(client, tmp_path, monkeypatch):
    """`--cluster tcp://...`: the same leaderboard as here; an address where nobody answers is a sentence."""
    monkeypatch.chdir(tmp_path)
    pd.DataFrame(X[:200]).assign(sold=labels[:200]).to_csv("sales.csv", index=False)
    words = ["learn", "sales.csv", "--target", "sold", "--machines", "centroid,logistic", "--json", "--force"]
    here = CliRunner().invoke(app, words)
    assert here.exit_code == 0, here.output
    there = CliRunner().invoke(app, [*words, "--cluster", client.scheduler.address])
    assert there.exit_code == 0, there.output
    assert _scores(there) == _scores(here)
    assert _left(client) == 0
    monkeypatch.setattr("empirisk.scale.workers.CONNECT_SECONDS", 0.2)
    nobody = CliRunner().invoke(app, [*words, "--cluster", "tcp://127.0.0.1:9"])
    assert nobody.exit_code != 0
    assert "gives no scheduler that answers" in nobody.output


@pytest.mark.long
def test_the_shell_starts_workers_for_itself(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pd.DataFrame(X[:200]).assign(sold=labels[:200]).to_csv("sales.csv", index=False)
    words = ["learn", "sales.csv", "--target", "sold", "--machines", "centroid,logistic", "--json", "--force"]
    here, there = (CliRunner().invoke(app, [*words, *more]) for more in ([], ["--cluster", "local", "--jobs", "2"]))
    assert there.exit_code == 0, there.output
    assert _scores(there) == _scores(here)
    assert not importlib.import_module("empirisk.scale.workers")._clients


def _scores(result):
    found = json.loads(result.stdout[result.stdout.index("{") :])
    return [(row["name"], row["score"]) for row in found["league"]]
