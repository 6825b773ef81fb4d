"""The playground's answers: what is computed of a question."""

import base64
import threading
from itertools import pairwise
from urllib.parse import parse_qs, urlsplit

import numpy as np
import pytest

import empirisk as er
from empirisk.errors import EmpiriskError
from empirisk.league.records import as_json
from empirisk.studio.playground import fitting
from empirisk.studio.playground.address import link
from empirisk.studio.playground.controls import FAMILIES, SOLVERS
from empirisk.studio.playground.expressions import evaluate, kernel_text
from empirisk.studio.playground.fitting import fit
from empirisk.studio.playground.path import path
from empirisk.studio.playground.picture import GRID, SIDE, answer
from empirisk.studio.playground.points import DATASETS, dataset
from empirisk.studio.playground.question import Question
from empirisk.studio.playground.script import script
from empirisk.studio.playground.steps import film, told
from tests.studio.studios import ask, enter, running

POINTS = {task: dataset(task, next(iter(found)), 80, 0.2, 0) for task, found in DATASETS.items()}
WAYS = [(family.name, task) for family in FAMILIES.values() for task in family.tasks]


def asked(task="classes", family="equation", held=0.3, points=None, **settings):
    points = POINTS[task] if points is None else points
    return Question.from_dict({"task": task, "family": family, "held": held, "points": points, "settings": settings})


def scores(grid):
    rows = [np.frombuffer(base64.b64decode(row), "<i2") for row in grid["scores"]]
    return np.array(rows) * grid["reach"] / 32767


def test_loops_are_loaded_while_the_studio_answers(tmp_path, monkeypatch):
    """A kernel machine and a forest are fitted at the start, and nobody waits for them."""
    fitted, go_on = [], threading.Event()

    def fit_later(question):
        assert go_on.wait(60)
        fitted.append(fit(question).machine)

    monkeypatch.setattr(fitting, "fit", fit_later)
    with running(tmp_path) as studio:
        assert ask(studio[0], "/playground/about", enter(studio))[0] == 200
        assert fitted == []
        go_on.set()
        (loading,) = [one for one in threading.enumerate() if one.name == "loops"]
        loading.join(120)
    kernel_machine, forest = fitted
    assert isinstance(kernel_machine.features, er.kernels.Kernel)
    assert isinstance(forest, er.ForestClassifier)


@pytest.mark.parametrize(("family", "task"), WAYS)
def test_every_family_is_fitted_and_drawn(family, task):
    question = asked(task, family)
    found = as_json(answer(question, fit(question)))
    assert found["code"] == question.expression
    assert len(found["held"]) == question.is_held.sum()
    if task == "numbers":
        X = np.linspace(-3, 3, 200)[:, None]
        assert found["curve"] == pytest.approx(fit(question).machine.predict(X), abs=1e-4)
    elif family != "hierarchical":
        codes = scores(found["grid"])
        said = (codes[0] > 0).astype(int) if len(codes) == 1 else codes.argmax(axis=0)
        sure = np.abs(codes).min(axis=0) > 1e-3  # ties may go either way
        assert np.array_equal(said[sure], fit(question).machine.predict(GRID)[sure])
        assert sure.mean() > 0.9
        assert codes.shape[1] == SIDE**2 <= 5000


@pytest.mark.parametrize(("family", "task"), [way for way in WAYS if FAMILIES[way[0]].play])
def test_every_family_plays_its_steps(family, task):
    question = asked(task, family)
    steps = film(question)
    assert len(steps) > 1
    shown = as_json(told(steps))
    assert len(shown["labels"]) == len(steps)
    last, whole = as_json(steps[-1].draw()), as_json(answer(question, fit(question)))
    if "grid" in last and family != "mixture":  # which plays one start of several
        assert np.mean(np.sign(scores(last["grid"])) == np.sign(scores(whole["grid"]))) > 0.99
    elif "curve" in last:
        assert last["curve"] == pytest.approx(whole["curve"], abs=1e-2)


#: Every way of the equation to its minimum that can be played, with a loss, a penalty and features that suit it.
PLAYED = {
    "newton": {"loss": "logistic"},
    "gradient_descent": {"loss": "logistic"},
    "coordinate_descent": {"loss": "logistic", "penalty": "l1", "features": "polynomial"},
    "dual_ascent": {},
    "decomposition": {"features": "kernel"},
    "proximal": {},
    "sgd": {"loss": "logistic"},
    "closed_form": {"loss": "squared"},
}


def test_every_solver_plays_its_steps():
    assert {"auto", *PLAYED} == set(SOLVERS)
    for solver, settings in PLAYED.items():
        question = asked(solver=solver, **settings)
        steps = film(question)
        name = solver.replace("_", " ")
        assert [steps[0].label, steps[-1].label] == [f"{name}: start", f"{name}: solution"]
        primal = [step.values["primal"] for step in steps]
        assert primal[-1] < primal[0]
        assert primal[-1] == pytest.approx(fit(question).machine.certificate_.primal, rel=1e-3), solver


def test_decomposition_plays_pairs():
    """Steps move at most two pairs of dual variables, and say which; those held out never move."""
    question = asked(features="kernel", solver="decomposition")
    steps = [step.draw() for step in film(question)][2:]
    for before, after in pairwise(steps):
        changed = {k for k, pair in enumerate(zip(before["duals"], after["duals"], strict=True)) if pair[0] != pair[1]}
        assert changed <= set(np.flatnonzero(~question.is_held))
    marked = [set(step["moved"]) for step in steps if "moved" in step]
    assert len(marked) > len(steps) / 2
    assert all(1 <= len(one) <= 4 and not one & set(np.flatnonzero(question.is_held)) for one in marked)


def test_a_network_plays_its_epochs():
    question = asked(loss="logistic", features="network", layers="4", epochs=80)
    labels = [step.label for step in film(question)]
    assert labels[:2] == ["epoch 2", "epoch 4"]
    assert "epoch 80" in labels
    assert labels[-1] == "last layer solved"
    last, whole = (scores(one["grid"]) for one in (film(question)[-1].draw(), answer(question, fit(question))))
    assert np.mean(np.sign(last) == np.sign(whole)) > 0.99


def test_duals_gaps_and_errors_are_those_of_the_machine():
    question = asked(C=2.0, features="kernel", kernel="Gaussian(0.5)")
    found = as_json(answer(question, fit(question)))
    X, y = question.data()
    machine = er.SVM(C=2.0, features=er.kernels.Gaussian(0.5)).fit(X, y)
    taught = [size for size, held in zip(found["duals"], question.is_held, strict=True) if not held]
    expected = np.zeros(len(X))
    expected[machine.support_] = np.abs(machine.dual_coef_[0])
    assert taught == pytest.approx(expected, abs=0.02)
    assert found["certificate"]["primal"] == pytest.approx(machine.certificate_.primal, rel=1e-5)
    assert found["certificate"]["converged"]
    tests = question.data(held=True)
    assert found["errors"]["test"]["wrong"] == np.sum(machine.predict(tests[0]) != tests[1])
    low, high = found["errors"]["test"]["low"], found["errors"]["test"]["high"]
    assert low <= found["errors"]["test"]["value"] <= high
    assert found["loss"]["at"] == pytest.approx((2 * y - 1) * machine.decision_function(X), abs=1e-2)


def test_the_path_meets_the_fit():
    question = asked(loss="logistic", C=1.0)
    along = path(question)
    here = int(np.argmin(np.abs(along["C"] - 1.0)))
    found = answer(question, fit(question))["errors"]
    assert along["train"][here] == pytest.approx(found["train"]["value"], abs=1e-9)
    assert along["test"][here] == pytest.approx(found["test"]["value"], abs=1e-9)


def test_the_copied_script_draws_the_same(tmp_path, monkeypatch, capsys):
    """Run, the script gives the boundary, the curve or the clusters of the page; one of each task is drawn too."""
    monkeypatch.chdir(tmp_path)
    settings = [
        {"features": "kernel"},
        {"features": "polynomial"},
        {"features": "network", "layers": "4", "epochs": 40},
    ]
    ways = [("equation", "classes", one) for one in settings] + [(*way, {}) for way in WAYS]
    drawn = set()
    for family, task, chosen in ways:
        question, names = asked(task, family, **chosen), {}
        code = script(question)
        exec(compile(code if task not in drawn else code.partition("\nfigure")[0], "copied", "exec"), names)
        drawn.add(task)
        here, copied = fit(question).machine, names["machine"]
        rows = GRID[:, :1] if task == "numbers" else GRID
        if family == "hierarchical":
            assert copied.labels_.tolist() == here.labels_.tolist()
        elif hasattr(here, "decision_function") and task == "classes":
            assert copied.decision_function(rows) == pytest.approx(here.decision_function(rows), abs=1e-3), family
        else:
            assert np.array_equal(copied.predict(rows), here.predict(rows)) or task == "numbers", family
            assert task != "numbers" or copied.predict(rows) == pytest.approx(here.predict(rows), abs=1e-6), family
        if task in drawn:
            assert (tmp_path / "playground.png").stat().st_size > 1000


@pytest.mark.long
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("__import__('os').system('true')", "cannot be read"),
        ("er.load('x')", "cannot be read"),
        ("er.kernels.Gaussian.__init__(1)", "cannot be read"),
        ("er.Classifier(C=1e99)", "cannot be read"),
        ("er.Classifier(wrong=1)", "cannot be read"),
        ("(lambda: 1)()", "cannot be read"),
        ("1 +", "no expression"),
        ("9" * 500, "longer than"),
    ],
)
def test_only_machines_are_read(text, words):
    with pytest.raises(EmpiriskError, match=words):
        evaluate(text)


def test_kernels_as_people_type_them():
    assert kernel_text("2*Gaussian(1)").startswith("2 * er.kernels.Gaussian")
    kernel = evaluate(kernel_text("Gaussian(0.5).on([0]) * Linear() + Polynomial(2)"))
    rows = np.array([[0.0, 1.0], [2.0, 1.0]])
    expected = er.kernels.Gaussian(0.5).on([0]) * er.kernels.Linear() + er.kernels.Polynomial(2)
    assert kernel(rows) == pytest.approx(expected(rows))
    with pytest.raises(EmpiriskError, match="did you mean 'Gaussian'"):
        kernel_text("Gausian(1)")
    with pytest.raises(EmpiriskError, match="is no kernel"):
        kernel_text("3")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"task": "poems"}, "task"),
        ({"family": "kmeans"}, "does not suit"),
        ({"held": 2}, "held"),
        ({"points": [[0, 0]]}, "x, y and a class"),
        ({"points": [[0, 0, 7]]}, "outside"),
        ({"points": [[float("nan"), 0, 0]]}, "outside"),
        ({"points": [[0, 0, 0]] * 301}, "at most 300"),
        ({"settings": {"C": -1}}, "C"),
        ({"settings": {"loss": "nobody"}}, "loss"),
        ({"settings": {"features": "network", "layers": "1000"}}, "layers"),
        ({"settings": {"size": 3}}, "no control"),
        ({"points": [[0, 0, 0]] * 10}, "one class"),
        ({"settings": {"penalty": "l1", "features": "kernel"}}, "l1|L1"),
    ],
)
def test_a_wrong_question_is_answered_by_a_sentence(change, words):
    whole = {"task": "classes", "family": "equation", "points": POINTS["classes"], "settings": {}} | change
    with pytest.raises(EmpiriskError, match=words):
        fit(Question.from_dict(whole))


def test_links_hold_points_as_whole_numbers_and_refuse_what_the_page_would():
    found = link([0.5, -1.25], [1.0, 2.5], task="numbers", number_loss="absolute")
    words = parse_qs(urlsplit(found.address).fragment)
    points = np.frombuffer(base64.urlsafe_b64decode(words["points"][0] + "=" * (-len(words["points"][0]) % 4)), "<i2")
    assert points.reshape(-1, 3).tolist() == [[500, 1000, 0], [-1250, 2500, 0]]
    assert words["_number_loss"] == ["absolute"]
    assert found._repr_html_().count("&amp;") == found.address.count("&")
    with pytest.raises(EmpiriskError, match="two columns"):
        link([[0.0]], ["a"])
    with pytest.raises(EmpiriskError, match="outside the plane"):
        link([[0.0, 9.0]], ["a"])
    with pytest.raises(EmpiriskError, match="no control"):
        link([[0.0, 1.0]], ["a"], width=1.0)
