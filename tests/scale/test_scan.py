"""Tables in files: the same problem, the same answer and the same words as in memory."""

import gc

import numpy as np
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.model_selection import KFold
from sklearn.utils import check_random_state

import empirisk as er
from empirisk.errors import EmpiriskError, TooLarge, Unsuitable
from empirisk.scale import clusters
from empirisk.scale.disk import Disk, Folder
from empirisk.trees.binned.together import TeamGrower
from tests import catalog
from tests.callbacks import Watching

random = np.random.default_rng(0)
ROWS, COLUMNS = 6000, 4
X = random.normal(size=(ROWS, COLUMNS)).round(4) + np.arange(COLUMNS)
scores = X @ random.normal(size=COLUMNS) + random.normal(size=ROWS)
scores -= np.median(scores)
NAMES = [f"x{j}" for j in range(COLUMNS)]
TARGETS = {
    "number": scores,
    "count": np.floor(np.exp(scores / 3)),
    "label": np.where(scores > 0, 1, 0),
    "class": np.array(["no", "perhaps", "yes"])[np.digitize(scores, [-1, 1])],
}
WEIGHTS = random.integers(0, 3, ROWS).astype(float)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Three files for each target, and a budget that makes several blocks of each."""
    path = tmp_path_factory.mktemp("parts")
    for name, target in TARGETS.items():
        frame = pl.DataFrame(X, schema=NAMES).with_columns(pl.Series(name, target), pl.Series("w", WEIGHTS))
        for part, rows in enumerate(np.array_split(np.arange(ROWS), 3)):
            frame[rows].write_parquet(path / f"{name}-{part}.parquet")
    with er.config(memory="4MB"):
        yield path


MACHINES = [
    (er.Ridge(), "number"),
    (er.Lasso(C=0.01), "number"),
    (er.ElasticNet(C=0.01), "number"),
    (er.LeastSquares(), "number"),
    (er.LeastAbsolute(C=0.1), "number"),
    (er.SVR(C=0.1), "number"),
    (er.Regressor("huber", penalty="group_l1", C=0.01), "number"),
    (er.Regressor("poisson"), "count"),
    (er.Regressor("squared", er.maps.Polynomial(2)), "number"),
    (er.LogisticRegression(), "label"),
    (er.LogisticRegression(penalty="l1", C=0.01), "class"),
    (er.LogisticRegression(class_weight="balanced"), "class"),
    (er.Classifier("exponential", penalty="none"), "label"),
    (er.Classifier("softmax", penalty="none"), "class"),
    (er.Classifier("crammer_singer", penalty="none", fit_intercept=False), "class"),
    (er.SVM(C=0.1), "label"),
    (er.SVM(C=0.1, multiclass="one_vs_one"), "class"),
    (er.Classifier("squared_hinge", fit_intercept=False), "class"),
    (er.Classifier("hinge", penalty="l1", C=0.01), "label"),
    (er.Regressor("epsilon_insensitive", penalty="l1", C=0.01), "number"),
]


@pytest.mark.parametrize(("machine", "name"), MACHINES, ids=repr)
def test_the_answer_is_that_of_the_table_in_memory(folder, machine, name):
    machine.set_params(tol=1e-9)
    table = er.scan(folder / f"{name}-*.parquet", target=name, weight="w")
    found = machine.fit(table).certificate_
    scanned = np.asarray(machine.predict(table))
    expected = machine.fit(X, TARGETS[name], sample_weight=WEIGHTS)
    assert found.converged
    assert found.primal == pytest.approx(expected.certificate_.primal, rel=1e-8)
    assert "passes over" in found.reason
    if name in ("number", "count"):
        np.testing.assert_allclose(scanned, expected.predict(X), rtol=1e-3, atol=1e-3)
    else:
        assert np.mean(scanned == expected.predict(X)) > 0.999


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:.*has learned nothing, w = 0", "ignore:.*did not reach tol")
@pytest.mark.parametrize("loss", [loss for loss in catalog.LOSSES if loss.convex], ids=repr)
def test_every_loss_with_every_penalty_is_that_of_the_table_in_memory(tmp_path, loss):
    """The objective, to 1e-8; what is proven of it may end a little above a tol of 1e-9, where losses have corners."""
    rows = np.random.default_rng(0).normal(size=(900, 6)).round(3) + np.arange(6)
    scores = rows @ np.array([1.0, -1.0, 0.5, 0.0, 0.3, -0.2]) + 2 * np.random.default_rng(1).normal(size=900)
    scores -= np.median(scores)
    weights = np.random.default_rng(2).integers(0, 3, 900).astype(float)
    make = er.Classifier if loss in catalog.MARGIN_LOSSES + catalog.JOINT_LOSSES else er.Regressor
    if loss in catalog.MARGIN_LOSSES:
        y = (scores > 0).astype(float)
    elif loss in catalog.JOINT_LOSSES:
        y = np.digitize(scores, [-2, 2]).astype(float)
    elif loss in catalog.DEVIANCES:
        y = np.exp(scores / 8)
    else:
        y = scores
    frame = pl.DataFrame(rows, schema=[f"x{j}" for j in range(6)]).with_columns(y=y, w=weights)
    for part in range(3):
        frame[300 * part : 300 * part + 300].write_parquet(tmp_path / f"{part}.parquet")
    table = er.scan(tmp_path, target="y", weight="w")
    for penalty in catalog.PENALTIES:
        machine = make(loss, penalty=penalty, C=0.05, tol=1e-9)
        found, expected = machine.fit(table).certificate_, machine.fit(rows, y, sample_weight=weights).certificate_
        assert found.primal == pytest.approx(expected.primal, rel=1e-8), penalty
        assert found.relative_gap <= 1e-7, penalty


def test_every_format_is_the_same_table(folder, tmp_path):
    frame = pl.DataFrame(X, schema=NAMES).with_columns(y=pl.Series(scores))
    frame.write_csv(tmp_path / "a.csv")
    frame.write_csv(tmp_path / "a.tsv", separator="\t")
    frame.write_ipc(tmp_path / "a.arrow")
    frame.write_parquet(tmp_path / "a.parquet")
    fits = [er.Ridge().fit(er.scan(tmp_path / f"a.{end}", target="y")) for end in ("csv", "tsv", "arrow", "parquet")]
    for fit in fits[1:]:
        np.testing.assert_array_equal(fit.coef_, fits[0].coef_)
    assert list(fits[0].feature_names_in_) == NAMES


def test_the_same_bits_on_any_number_of_threads(folder):
    table = er.scan(folder / "label-*.parquet", target="label")
    with er.config(threads=1):
        one = er.LogisticRegression().fit(table)
    with er.config(threads=2):
        two = er.LogisticRegression().fit(table)
    np.testing.assert_array_equal(one.coef_, two.coef_)


def test_a_saved_machine_predicts_like_the_scanned_one(folder, tmp_path):
    table = er.scan(folder / "class-*.parquet", target="class", weight="w")
    machine = er.LogisticRegression().fit(table)
    er.save(machine, tmp_path / "a.model")
    again = er.load(tmp_path / "a.model")
    assert list(again.classes_) == ["no", "perhaps", "yes"]
    np.testing.assert_array_equal(np.asarray(machine.predict_proba(table)), np.asarray(again.predict_proba(table)))


def test_answers_are_written_block_by_block(folder, tmp_path):
    table = er.scan(folder / "number-*.parquet", target="number", weight="w")
    machine = er.Ridge().fit(table)
    answers = machine.predict(table)
    assert len(list(answers)) > 1
    for end, read in (("csv", pl.read_csv), ("parquet", pl.read_parquet)):
        written = read(answers.write(tmp_path / f"answers.{end}"))
        np.testing.assert_array_equal(written["prediction"].to_numpy(), np.asarray(answers))
    assert answers.frame().height == len(answers) == ROWS
    with pytest.raises(EmpiriskError, match=r"\.csv or \.parquet"):
        answers.write(tmp_path / "answers.xlsx")


def test_a_value_that_is_missing_is_named_by_file_and_row(tmp_path):
    frame = pl.DataFrame({"a": [1.0, 2.0, 3.0], "y": [1.0, 2.0, 3.0]})
    frame.write_parquet(tmp_path / "1.parquet")
    frame.with_columns(a=pl.Series([1.0, None, 3.0])).write_parquet(tmp_path / "2.parquet")
    with pytest.raises(EmpiriskError, match=r"2\.parquet, row 2 holds no value in the column 'a'"):
        er.Ridge().fit(er.scan(tmp_path, target="y"))
    frame.with_columns(y=pl.Series([1.0, 2.0, float("nan")])).write_parquet(tmp_path / "2.parquet")
    with pytest.raises(EmpiriskError, match=r"2\.parquet, row 3 has no usable target in the column 'y'"):
        er.Ridge().fit(er.scan(tmp_path, target="y"))


@pytest.mark.parametrize("end", ["parquet", "csv"])
def test_a_value_is_named_in_whichever_block_it_stands(tmp_path, end):
    good = pl.DataFrame({"a": np.arange(70_000.0), "b": np.ones(70_000), "y": np.ones(70_000)})
    wrong = good.with_columns(b=pl.when(pl.col("a") == 54_320).then(None).otherwise(pl.col("b")))
    for number, frame in enumerate((good, wrong)):
        getattr(frame, f"write_{end}")(tmp_path / f"{number}.{end}")
    with er.config(memory="4MB"), pytest.raises(EmpiriskError, match=rf"1\.{end}, row 54321 holds no value in .* 'b'"):
        er.Ridge().fit(er.scan(tmp_path, target="y"))


def test_files_with_other_columns_are_named(tmp_path):
    pl.DataFrame({"a": [1.0], "y": [1.0]}).write_parquet(tmp_path / "1.parquet")
    pl.DataFrame({"b": [1.0], "y": [1.0]}).write_parquet(tmp_path / "2.parquet")
    with pytest.raises(EmpiriskError, match=r"2\.parquet lacks a, unlike .*1\.parquet"):
        er.scan(tmp_path / "*.parquet")
    pl.DataFrame({"a": ["x"], "y": [1.0]}).write_parquet(tmp_path / "2.parquet")
    with pytest.raises(EmpiriskError, match=r"2\.parquet holds String in the column 'a'"):
        er.scan(tmp_path / "*.parquet")
    with pytest.raises(EmpiriskError, match="target='z' is no column"):
        er.scan(tmp_path / "1.parquet", target="z")
    with pytest.raises(EmpiriskError, match="no file"):
        er.scan(tmp_path / "none-*.parquet")
    with pytest.raises(EmpiriskError, match="holds String, no numbers"):
        er.Ridge().fit(er.scan(tmp_path / "2.parquet", target="y"))


def test_what_needs_all_rows_says_so(folder):
    table = er.scan(folder / "label-*.parquet", target="label")
    with pytest.raises(Unsuitable, match="Nystrom"):
        er.SVM(features=er.kernels.Gaussian()).fit(table)
    with pytest.raises(EmpiriskError, match="y is missing"):
        er.LogisticRegression().fit(er.scan(folder / "label-*.parquet"))
    with pytest.raises(Unsuitable, match="it needs all rows in memory"):
        er.SVM(solver="dual_ascent").fit(table)


def test_a_fit_ends_in_time_and_leaves_no_files(folder, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    table = er.scan(folder / "label-*.parquet", target="label")
    with pytest.warns(match="max_time"):
        machine = er.SVM(max_time=1e-3, tol=1e-13).fit(table)
    assert machine.stopped_ == "max_time"
    assert list(tmp_path.iterdir())
    del machine, table
    gc.collect()
    assert not list(tmp_path.iterdir())


def test_k_means_from_given_means_are_those_of_memory(folder):
    table = er.scan(folder / "number-*.parquet", target="number", weight="w")
    start = X[[0, 100, 200]]
    found = er.KMeans(3, init=start).fit(table)
    expected = er.KMeans(3, init=start).fit(X, sample_weight=WEIGHTS)
    np.testing.assert_allclose(found.cluster_centers_, expected.cluster_centers_, rtol=1e-9)
    assert found.inertia_ == pytest.approx(expected.inertia_, rel=1e-9)
    np.testing.assert_array_equal(np.asarray(found.predict(table)), expected.labels_)
    chosen = er.KMeans(3, random_state=0).fit(table)
    assert chosen.inertia_ <= 1.01 * er.KMeans(3, random_state=0).fit(X, sample_weight=WEIGHTS).inertia_


def test_a_mixture_climbs_to_that_of_memory(folder):
    table = er.scan(folder / "number-*.parquet", target="number", weight="w")
    found = er.GaussianMixture(2, random_state=0, tol=1e-7).fit(table)
    expected = er.GaussianMixture(2, random_state=0, tol=1e-7).fit(X, sample_weight=WEIGHTS)
    assert found.lower_bound_ == pytest.approx(expected.lower_bound_, abs=1e-4)
    assert np.all(np.diff(found.history_["log_likelihood"]) > -1e-9)
    np.testing.assert_allclose(
        np.asarray(found.predict_proba(table)), found.predict_proba(pl.DataFrame(X, schema=NAMES))
    )


class EndsAfter(Watching):
    """Ends a fit after some rounds, and keeps what they knew."""

    def __init__(self, rounds):
        self.rounds, self.known = rounds, []

    def on_fit_task_end(self, estimator, context, *, fitted_estimator):
        if context.task_name == "round":
            self.known.append(fitted_estimator)
        return len(self.known) >= self.rounds


ROUNDS = [
    (er.KMeans(3, init=X[:3]), "cluster_centers_"),
    (er.GaussianMixture(2, random_state=0, tol=0.0), "means_"),
]


@pytest.mark.parametrize(("machine", "name"), ROUNDS, ids=["k-means", "mixture"])
def test_rounds_are_told_to_callbacks_and_can_be_gone_on_with(folder, machine, name):
    table, frame = er.scan(folder / "number-*.parquet", target="number", weight="w"), pl.DataFrame(X, schema=NAMES)
    callback = EndsAfter(3)
    part = clone(machine).set_callbacks(callback).fit(table)
    assert part.stopped_ == "callback"
    assert len(callback.known) == part.n_iter_ == 3
    np.testing.assert_array_equal(callback.known[-1].predict(frame), part.predict(frame))
    whole = clone(machine).set_callbacks(EndsAfter(6)).fit(table)
    part.set_params(warm_start=True).set_callbacks(EndsAfter(4)).fit(table)
    np.testing.assert_allclose(getattr(part, name), getattr(whole, name), rtol=1e-12)


@pytest.mark.parametrize(("machine", "name"), ROUNDS, ids=["k-means", "mixture"])
def test_a_round_is_given_up_when_a_fit_is_stopped(folder, monkeypatch, machine, name):
    """In the middle of the third pass: what the second one knew is kept. In the first there is nothing to keep."""
    table, blocks, rounds = er.scan(folder / "number-*.parquet", weight="w", target="number"), [], []

    def note(function):
        return lambda *given: blocks.append(1) or function(*given)

    for round_of in ("_round_of", "_expectation_of"):
        made = getattr(clusters, round_of)
        monkeypatch.setattr(clusters, round_of, lambda *given, made=made: rounds.append(1) or note(made(*given)))
    table.table()
    with er.config(stop=lambda: len(rounds) == 3, interrupt="keep", threads=1), pytest.warns(match="interrupted"):
        found = clone(machine).fit(table)
    assert (found.stopped_, found.n_iter_) == ("interrupted", 2)
    assert len(rounds) == 3
    assert len(blocks) == 2 * len(table.table().place.lengths)
    with er.config(stop=lambda: len(rounds) == 4, threads=1), pytest.raises(er.errors.Interrupted, match="as it was"):
        clone(machine).fit(table)


def test_reading_the_files_can_be_stopped(folder):
    table = er.scan(folder / "number-*.parquet", target="number")
    with er.config(stop=lambda: True), pytest.raises(er.errors.Interrupted, match="as it was"):
        er.Ridge().fit(table)
    assert er.Ridge().fit(table).certificate_.converged


def test_means_that_do_not_suit_are_refused(folder):
    table = er.scan(folder / "number-*.parquet", target="number")
    with pytest.raises(EmpiriskError, match=r"init has shape \(3, 2\)"):
        er.KMeans(3, init=X[:3, :2]).fit(table)
    with pytest.raises(Unsuitable, match="needs the rows in memory"):
        er.KMeans(3, init=np.zeros(ROWS, dtype=int)).fit(table)


@pytest.mark.parametrize("center", [True, False])
def test_principal_directions_are_those_of_memory(folder, center):
    table = er.scan(folder / "number-*.parquet", target="number", weight="w")
    found = er.PCA(3, center=center).fit(table)
    expected = er.PCA(3, center=center).fit(X, sample_weight=WEIGHTS)
    np.testing.assert_allclose(found.components_, expected.components_, atol=1e-8)
    np.testing.assert_allclose(found.explained_variance_, expected.explained_variance_, rtol=1e-9)
    np.testing.assert_allclose(np.asarray(found.transform(table)), expected.transform(X), atol=1e-7)


def test_principal_directions_of_a_sample_where_the_time_is_over(folder):
    table = er.scan(folder / "number-*.parquet", target="number", weight="w")
    with pytest.warns(match="max_time"):
        found = er.PCA(2, max_time=1e-9).fit(table)
    assert found.stopped_ == "max_time"
    whole = er.PCA(2).fit(table)
    np.testing.assert_allclose(found.explained_variance_, whole.explained_variance_, rtol=0.1)


@pytest.mark.parametrize(
    ("machine", "name"),
    [
        (er.LogisticRegression(Cs=5), "class"),
        (er.SVM(Cs=[0.01, 0.1, 1], multiclass="one_vs_one"), "class"),
        (er.Lasso(Cs=5, rule="1se"), "number"),
        (er.Ridge(features=er.maps.Polynomial(2), Cs=5, random_state=3), "number"),
    ],
    ids=repr,
)
def test_C_is_chosen_by_folds_of_all_rows(folder, machine, name):
    """The table of losses is that of the same folds in memory, which are dealt out class by class."""
    machine.set_params(C="cv", cv=3, tol=1e-7)
    table = er.scan(folder / f"{name}-*.parquet", target=name, weight="w")
    found = clone(machine).fit(table)
    counting = np.flatnonzero(WEIGHTS > 0)
    classes, codes = np.unique(TARGETS[name], return_inverse=True) if name == "class" else ([0], np.zeros(ROWS, int))
    place = Disk([700, 1, len(counting) - 701])  # the folds are the same for any blocks
    seed = check_random_state(machine.random_state or 0).randint(2**31)
    folds = place.gathered(place.dealt(place.scattered(codes[counting]), len(classes), 3, seed))
    for code in range(len(classes)):
        assert np.ptp(np.bincount(folds[codes[counting] == code])) <= 1
    splits = [(counting[folds != k], counting[folds == k]) for k in range(3)]
    expected = clone(machine).set_params(cv=splits).fit(X, TARGETS[name], sample_weight=WEIGHTS)
    np.testing.assert_allclose(found.choice_.values, expected.choice_.values, rtol=1e-9)
    np.testing.assert_allclose(found.choice_.losses, expected.choice_.losses, rtol=1e-3)
    np.testing.assert_allclose(found.choice_.error, expected.choice_.error, rtol=0.05)
    assert found.C_ == found.choice_.chosen == pytest.approx(expected.C_)
    assert "passes over" in found.certificate_.reason


@pytest.mark.parametrize("machine", [er.Ridge(), er.Ridge(fit_intercept=False, rule="1se")], ids=repr)
def test_leaving_out_each_row_of_files_is_that_of_memory(folder, machine):
    table = er.scan(folder / "number-*.parquet", target="number", weight="w")
    found = clone(machine).set_params(C="loo").fit(table)
    expected = clone(machine).set_params(C="loo").fit(X, scores, sample_weight=WEIGHTS)
    for name in ("values", "mean", "error"):
        np.testing.assert_allclose(getattr(found.choice_, name), getattr(expected.choice_, name), rtol=1e-8)
    np.testing.assert_allclose(found.C_, expected.C_)
    several = er.Classifier("squared", C="loo", multiclass="one_vs_rest")
    table = er.scan(folder / "class-*.parquet", target="class", weight="w")
    found = clone(several).fit(table).choice_
    expected = several.fit(X, TARGETS["class"], sample_weight=WEIGHTS).choice_
    np.testing.assert_allclose(found.mean, expected.mean, rtol=1e-8)
    with pytest.raises(Unsuitable, match="multiclass='one_vs_rest'"):
        er.Classifier("squared", C="loo", multiclass="one_vs_one").fit(table)


def test_leaving_out_few_rows_of_many_features_is_that_of_memory(tmp_path):
    pl.DataFrame(X[:300], schema=NAMES).with_columns(y=pl.Series(scores[:300])).write_parquet(tmp_path / "few.parquet")
    machine = er.Ridge(features=er.maps.Polynomial(5), C="loo", Cs=5)
    found = clone(machine).fit(er.scan(tmp_path / "few.parquet", target="y")).choice_
    np.testing.assert_allclose(found.mean, machine.fit(X[:300], scores[:300]).choice_.mean, rtol=1e-6)


def test_folds_that_need_rows_in_memory_say_so(folder):
    table = er.scan(folder / "number-*.parquet", target="number")
    with pytest.raises(Unsuitable, match="divides rows in memory; give a number of folds"):
        er.Ridge(C="cv", cv=KFold(3)).fit(table)
    with pytest.raises(EmpiriskError, match="give two folds or more"):
        er.Ridge(C="cv", cv=1).fit(table)


def test_learn_learns_from_all_rows_of_a_table_that_is_larger_than_memory(tmp_path):
    """Words, dates and missing values are encoded in blocks; rows of the test, and their copies, are left out."""
    rows = 30_000
    days = pl.date_range(pl.date(2015, 1, 1), pl.date(2040, 1, 1), eager=True)[random.integers(0, 9000, rows).tolist()]
    x = random.normal(size=rows)
    town = np.array(["Oslo", "Bergen", "Bodo"])[random.integers(0, 3, rows)]
    amount = 2 * x + (town == "Oslo") + random.normal(size=rows)
    frame = pl.DataFrame({"x": x, "town": town, "day": days, "sold": np.where(amount > 0, "yes", "no")})
    frame = frame.with_columns(pl.when(pl.col("x") < 1.5).then(pl.col("x")).alias("x"))
    for part in range(3):
        frame[part::3].write_parquet(tmp_path / f"part-{part}.parquet")
    with er.config(memory="2MB"):
        found = er.learn(str(tmp_path / "*.parquet"), target="sold", machines=["logistic"])
    whole = er.learn(str(tmp_path / "*.parquet"), target="sold", machines=["logistic"])
    assert rows - 20 <= found.train_rows + len(found.test.truth) <= rows
    assert f"The model learned from the {found.train_rows:,} rows" in " ".join(found.warnings)
    assert found.test.scores[0].value == pytest.approx(whole.test.scores[0].value, abs=0.05)
    with er.config(memory="2MB"):
        trees = er.learn(str(tmp_path / "*.parquet"), target="sold", machines=["tree"])
    assert "The model learned from the sample alone" in " ".join(trees.warnings)


def test_learn_takes_a_sample_of_a_table_that_is_larger_than_memory(folder):
    with er.config(memory="600KB"):
        found = er.learn(str(folder / "label-*.parquet"), target="label", machines=["logistic"], drop=["w"])
    assert any("larger than the memory budget" in warning for warning in found.warnings)
    assert found.test.scores[0].value > 0.7
    whole = er.learn(str(folder / "label-*.parquet"), target="label", machines=["logistic"], drop=["w"])
    assert whole.train_rows == int(0.8 * ROWS)


def test_a_mapped_file_is_deleted_with_its_array():
    folder = Folder()
    room = folder.mapped(100, "It")
    part = room[10:]
    part[:] = 7
    del room
    (file,) = folder.path.iterdir()
    assert file.read_bytes() == bytes(10) + b"\7" * 90
    del part
    assert not file.exists()
    with pytest.raises(TooLarge, match=r"It needs 1000000\.0 GB of disk"):
        folder.mapped(10**15, "It")


def bins_in_files(monkeypatch):
    """The files of bins that are made from now on."""
    made, mapped = [], Folder.mapped

    def note(folder, size, what):
        room = mapped(folder, size, what)
        made.append(folder.path / str(folder._number))
        return room

    monkeypatch.setattr(Folder, "mapped", note)
    return made


@pytest.mark.parametrize(
    "machine", [er.BoostingClassifier(n_estimators=5), er.BoostingRegressor(n_estimators=5)], ids=repr
)
def test_boosted_trees_are_those_of_memory(tmp_path, monkeypatch, machine):
    rows = random.normal(size=(140_000, 3))
    assert TeamGrower.shares(*rows.shape) > 1  # else they are kept in memory
    y = (rows[:, 0] + random.normal(size=len(rows)) > 0).astype(int)
    pl.DataFrame(rows, schema=["a", "b", "c"]).with_columns(y=y).write_parquet(tmp_path / "rows.parquet")
    expected = machine.fit(pl.DataFrame(rows, schema=["a", "b", "c"]), y).packed_
    table = er.scan(tmp_path / "rows.parquet", target="y")
    made = bins_in_files(monkeypatch)
    for memory, files in (("12MB", 0), ("9.4MB", 2)):  # the bins fit; they are in files, by row and by column
        with er.config(memory=memory):
            machine.fit(table)
            answers = np.asarray(machine.predict(table))
        assert len(made) == files
        for name, values in expected.items():
            np.testing.assert_array_equal(machine.packed_[name], values)
    with er.config(memory="4MB"):  # they stay in files, and leaves are summed in another order
        machine.fit(table)
    for name, values in expected.items():
        np.testing.assert_allclose(machine.packed_[name], values, rtol=0, atol=1e-12 if name == "slot" else 0)
    machine.packed_ = expected
    np.testing.assert_array_equal(answers, machine.predict(pl.DataFrame(rows, schema=["a", "b", "c"])))


@pytest.mark.parametrize("machine", [er.ForestClassifier(5, random_state=0), er.ForestRegressor(5, random_state=0)])
def test_forests_are_those_of_memory(tmp_path, monkeypatch, machine):
    """Where the rows do not fit their bins do: the same trees, judged on the same rows outside their samples."""
    rows = np.tile(X, 5).round(1) + random.normal(size=(ROWS, 20)).round(2)
    rows[::7, 3] = 0.0
    y = np.rint(rows[:, 0] + rows[:, 1]).clip(0, 3)
    names = [f"x{j}" for j in range(20)]
    frame = pl.DataFrame(rows, schema=names)
    for part, some in enumerate(np.array_split(np.arange(ROWS), 3)):
        frame.with_columns(y=y, w=WEIGHTS)[some].write_parquet(tmp_path / f"{part}.parquet")
    table = er.scan(tmp_path, target="y", weight="w")
    with er.config(memory="1MB", threads=1):
        machine.fit(table)
        answers = np.asarray(machine.predict(table))
    found, rises = machine.packed_, machine.oob_importances_
    kept = WEIGHTS > 0
    expected = clone(machine).fit(frame.filter(kept), y[kept], sample_weight=WEIGHTS[kept])
    for key, values in expected.packed_.items():
        np.testing.assert_array_equal(found[key], values)
    np.testing.assert_array_equal(rises, expected.oob_importances_)
    np.testing.assert_array_equal(answers, expected.predict(frame))
    made = bins_in_files(monkeypatch)
    with er.config(memory="700KB", threads=1):  # nor do the bins, which are in a file
        machine.fit(table)
    for key, values in expected.packed_.items():
        np.testing.assert_array_equal(machine.packed_[key], values)
    np.testing.assert_array_equal(machine.oob_importances_, expected.oob_importances_)
    assert len(made) == 1
    with er.config(memory="500KB"), pytest.raises(TooLarge, match=r"rows beside their bins .* use boosting"):
        machine.fit(table)
