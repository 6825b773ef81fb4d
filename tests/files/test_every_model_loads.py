"""What is saved loads: `er.save` asks the loader's own rules first, of every machine, map and kind of rows."""

import itertools
import json
import threading
from operator import attrgetter

import numpy as np
import pytest
from scipy import sparse
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import empirisk as er
from empirisk.errors import EmpiriskError
from empirisk.files.encode import ModelEncoder
from tests.files.cases import answers, assert_same, built, fitted, holding, public_estimators, rows, target
from tests.files.subjects import small, subjects

#: Run by `make test-all`.
pytestmark = pytest.mark.long

THIN = np.where(np.abs(rows(24)) > 0.5, rows(24), 0.0)
ROWS = {
    "dense": rows(24),
    "float32": rows(24).astype(np.float32),
    "csr": sparse.csr_array(THIN),
    "csr float32": sparse.csr_matrix(THIN.astype(np.float32)),
    "csc": sparse.csc_array(THIN),
    "wide": rows(8, 30),
}
MAPS = {
    "gaussian": lambda: er.kernels.Gaussian("median"),
    "centred": lambda: er.kernels.Centred(er.kernels.Gaussian(2.0)),
    "sum": lambda: er.kernels.Laplacian(2.0) + 0.5 * er.kernels.Linear(),
    "several": lambda: er.maps.SeveralKernels(["linear", "gaussian"]),
    "nystrom": lambda: er.maps.Nystrom("gaussian", 6, random_state=0),
    "waves": lambda: er.maps.RandomFourier("gaussian", 8, random_state=0),
    "monomials": lambda: er.maps.Polynomial(2),
}
WITH_FEATURES = [name for name in public_estimators() if "features" in attrgetter(name)(er)._get_param_names()]


def answers_the_same(machine, X, path):
    """Whether a machine that takes such rows is the same after a file; one that refuses them is none to save."""
    dense = X.toarray() if sparse.issparse(X) else X
    try:
        machine.fit(X, target(machine, dense))
        before = answers(machine, X)
    except (EmpiriskError, TypeError):  # sparse rows, where a machine takes none
        return
    er.save(machine, path)
    assert_same(before, answers(er.load(path), X))


@pytest.mark.parametrize("kind", ROWS)
@pytest.mark.parametrize("name", public_estimators())
@pytest.mark.filterwarnings("ignore")
def test_every_estimator_from_rows_of_every_kind(name, kind, path):
    answers_the_same(small(built(attrgetter(name)(er))), ROWS[kind], path)


@pytest.mark.parametrize("features", MAPS)
@pytest.mark.parametrize("name", WITH_FEATURES)
@pytest.mark.filterwarnings("ignore")
def test_every_machine_behind_every_map(name, features, path):
    for kind in ("dense", "float32", "csr"):
        machine = small(built(attrgetter(name)(er))).set_params(features=MAPS[features]())
        answers_the_same(machine, ROWS[kind], path)


@pytest.mark.parametrize("seed", range(6))
def test_centred_kernels_have_a_mean_of_zero_but_for_rounding(seed, path):
    """The squared length of the mean is rounding of either sign: a third of such models could not be loaded."""
    X = np.random.default_rng(seed).normal(size=(20, 3))
    machine = er.PCA(2, er.kernels.Centred(er.kernels.Gaussian(2.0))).fit(X)
    er.save(machine, path)
    loaded = er.load(path)
    assert_same(answers(machine, X), answers(loaded, X))
    np.testing.assert_array_equal(machine.reconstruction_error(X), loaded.reconstruction_error(X))


@pytest.mark.parametrize("name", [name for name in subjects() if "learned" not in name])
@pytest.mark.filterwarnings("ignore")
def test_every_subject(name, path):
    model, _ = subjects()[name]()
    er.save(model, path)
    assert type(er.load(path)) is type(model)


# --- what would not load is not saved ---------------------------------------------------------------------------------


def test_a_state_that_the_rules_refuse_leaves_the_old_file(path):
    machine = fitted(er.SVM())
    er.save(machine, path)
    before = path.read_bytes()
    coef = machine.coef_
    machine.coef_ = coef[..., :1]
    with pytest.raises(EmpiriskError, match=r"SVM is not saved, since it would not load: in its SVM, coef_"):
        er.save(machine, path)
    machine.coef_ = np.full_like(coef, np.nan)
    with pytest.raises(EmpiriskError, match=r"coef_ holds numbers that are not finite"):
        er.save(machine, path)
    assert path.read_bytes() == before


def test_saving_leaves_arrays_as_they_are(path):
    machine = fitted(er.SVM())
    er.save(machine, path)
    assert machine.coef_.flags.writeable


def test_numbers_too_long_for_text_are_a_sentence(path):
    with pytest.raises(EmpiriskError, match="number too long"):
        er.save(er.SVM(random_state=10**5000), path)


# --- another thread ---------------------------------------------------------------------------------------------------


class Waiting:
    """Rows that are there only when they are told: the fit is in its midst until then."""

    def __init__(self, X):
        self.X, self.asked, self.told = X, threading.Event(), threading.Event()

    def __array__(self, dtype=None, copy=None):
        self.asked.set()
        self.told.wait(30)
        return np.asarray(self.X, dtype)


def test_a_machine_in_the_midst_of_a_fit_is_not_saved(path):
    machine = fitted(er.SVM())
    er.save(machine, path)
    before, X = path.read_bytes(), Waiting(rows())
    refit = threading.Thread(target=lambda: machine.fit(X, target(machine, rows())))
    refit.start()
    try:
        assert X.asked.wait(30)
        with pytest.raises(EmpiriskError, match="SVM is being fitted by another thread; save it when"):
            er.save(machine, path)
        with pytest.raises(EmpiriskError, match=r"Pipeline\.steps.* is being fitted by another thread"):
            er.save(make_pipeline(StandardScaler(), machine), path)
    finally:
        X.told.set()
        refit.join()
    assert path.read_bytes() == before
    er.save(machine, path)
    assert_same(answers(machine, rows()), answers(er.load(path), rows()))


def test_what_is_saved_while_fits_come_and_go_is_of_one_of_them(path):
    """Each fit learns another number of columns: parts of two fits would not go together."""
    machine, done = fitted(make_pipeline(StandardScaler(), er.Ridge())), threading.Event()

    def refit():
        for columns in itertools.cycle((2, 3, 4)):
            machine.fit(rows(30, columns), rows(30)[:, 0])
            if done.wait(0.003):
                return

    thread = threading.Thread(target=refit)
    thread.start()
    said, saved = set(), 0
    try:
        for _ in range(60):
            try:
                er.save(machine, path)
            except EmpiriskError as error:
                said.add(str(error))
                continue
            saved += 1
            loaded = er.load(path)
            steps = {step.n_features_in_ for _, step in loaded.steps if hasattr(step, "n_features_in_")}
            assert len(steps) == 1
            assert loaded.predict(rows(3, *steps)).shape == (3,)
    finally:
        done.set()
        thread.join()
    assert saved
    assert all("another thread" in one.lower() or "Pipeline is not saved" in one for one in said), said


def test_lists_and_tables_that_change_meanwhile_are_noticed():
    values = [1, {"a": 2}]
    for change in (lambda: values.append(3), lambda: values.__setitem__(0, 7), lambda: values[1].update(b=1)):
        encoder = ModelEncoder()
        encoder.value(holding(values), "x")
        assert not encoder.changed()
        change()
        assert encoder.changed()


@pytest.mark.parametrize("often", [1, 10**6])
def test_what_changes_while_it_is_written_is_written_again_or_refused(often, path, monkeypatch):
    values, dumps = [0], json.dumps

    def meanwhile(tree, **options):
        if len(values) <= often:
            values.append(len(values))
        return dumps(tree, **options)

    monkeypatch.setattr("json.dumps", meanwhile)
    if often > 1:
        with pytest.raises(EmpiriskError, match="Another thread changes the FunctionTransformer while it is saved"):
            er.save(holding(values), path)
        return
    er.save(holding(values), path)
    assert er.load(path).kw_args["value"] == [0, 1]
