"""Coding matrices and how answers are read, by hand."""

import numpy as np
import pytest
from sklearn.base import clone

import empirisk as er
from empirisk.contract.multiclass import elected, error_correcting, one_vs_one, one_vs_rest, read, untied, winners
from empirisk.losses import Hinge, Logistic, Squared
from tests.truth import optimum

NONE = np.random.default_rng(0)
ABC = np.array(["a", "b", "c"])


@pytest.mark.row("E5")
def test_coding_matrices():
    np.testing.assert_array_equal(one_vs_rest(3, NONE), [[1, -1, -1], [-1, 1, -1], [-1, -1, 1]])
    np.testing.assert_array_equal(one_vs_one(3, NONE), [[-1, 1, 0], [-1, 0, 1], [0, -1, 1]])
    np.testing.assert_array_equal(error_correcting(3, NONE), [[1, -1, -1], [-1, 1, -1], [1, 1, -1]])
    many = error_correcting(9, NONE)
    assert set(np.unique(many)) == {-1.0, 1.0}
    assert np.all(np.abs(many.sum(axis=1)) < 9)


@pytest.mark.row("E5")
def test_votes_of_pairs():
    # Machines: a or b, a or c, b or c; positive is the second of the two.
    f = np.array(
        [
            [-1.0, -2.0, 0.5],  # a beats b and c: 2, 0, 1
            [3.0, 1.0, -0.1],  # b beats a and c, c beats a: 0, 2, 1
            [1.0, -1.0, 2.0],  # b beats a, a beats c, c beats b: one vote each; the sums of answers are 0, -1, 1
            [0.0, 0.0, 0.0],  # an answer of 0 is a vote for the second: 0, 1, 2
        ]
    )
    scores = read("one_vs_one", one_vs_one(3, NONE), f, Hinge())
    np.testing.assert_array_equal(scores.round(), [[2, 0, 1], [0, 2, 1], [1, 1, 1], [0, 1, 2]])
    assert winners(scores, ABC).tolist() == ["a", "b", "c", "c"]
    # The third row: less than half a vote from the sums, s / (3 (|s| + 1)).
    np.testing.assert_allclose(scores[2], [1.0, 1.0 - 1 / 6, 1.0 + 1 / 6])


@pytest.mark.row("E5")
def test_votes_are_never_outweighed_by_answers():
    random = np.random.default_rng(1)
    codes = one_vs_one(5, NONE)
    f = random.normal(size=(200, 10)) * 10.0 ** random.integers(-3, 6, (200, 1))
    scores = read("one_vs_one", codes, f, Hinge())
    for row, found in zip(f, scores, strict=True):
        votes = np.zeros(5)
        for (first, second), answer in zip([(i, j) for i in range(5) for j in range(i + 1, 5)], row, strict=True):
            votes[second if answer >= 0 else first] += 1
        assert votes[found.argmax()] == votes.max()
        np.testing.assert_array_equal(np.floor(found + 0.5), votes)


@pytest.mark.row("E5")
def test_code_words_are_decoded_by_the_loss():
    codes = error_correcting(3, NONE)  # words of the classes: (+, -, +), (-, +, +), (-, -, -)
    f = np.array([[2.0, -1.0, 0.5], [-0.2, 0.3, 0.1]])
    # The first row by the hinge, max(0, 1 - t): a (2, 1, .5), b (-2, -1, .5), c (-2, 1, -.5).
    np.testing.assert_allclose(
        read("error_correcting", codes, f, Hinge()),
        [[-0.5, -(3 + 2 + 0.5), -(3 + 0 + 1.5)], [-(1.2 + 1.3 + 0.9), -(0.8 + 0.7 + 0.9), -(0.8 + 1.3 + 1.1)]],
    )
    assert winners(read("error_correcting", codes, f, Hinge()), ABC).tolist() == ["a", "b"]
    assert winners(read("error_correcting", codes, f, Logistic()), ABC).tolist() == ["a", "b"]
    np.testing.assert_allclose(read("error_correcting", codes, f[:1], Squared())[0, 0], -(1 + 0 + 0.25))


def test_one_vs_rest_is_read_as_it_is_and_zero_is_the_positive_class():
    f = np.array([[0.1, -2.0, 0.3]])
    np.testing.assert_array_equal(read("one_vs_rest", one_vs_rest(3, NONE), f, Hinge()), f)
    assert winners(np.array([-1e-300, 0.0, 2.0]), ABC[:2]).tolist() == ["a", "b", "b"]


def test_shares_of_votes():
    half = np.array([[0.5, 0.5], [0.6, 0.4]])
    assert elected(half, ABC[:2]).tolist() == ["b", "a"]
    assert elected(np.array([[0.4, 0.4, 0.2]]), ABC).tolist() == ["a"]
    assert untied(half).argmax(axis=1).tolist() == [1, 0]
    np.testing.assert_allclose(untied(half), half, rtol=1e-15)


JOINT_AND_PAIRS = [
    ("softmax", "auto"),
    ("crammer_singer", "auto"),
    ("logistic", "auto"),
    ("logistic", "one_vs_rest"),
    ("hinge", "one_vs_rest"),
    ("hinge", "joint"),
    ("squared", "one_vs_rest"),
    ("hinge", "one_vs_one"),
]


@pytest.fixture(scope="module")
def three_classes():
    random = np.random.default_rng(0)
    X, y = random.normal(size=(45, 3)), np.arange(45) % 3
    X[:, 0] += y
    return X, y


@pytest.mark.parametrize("left_out", [0, 1, 2])
@pytest.mark.parametrize(("loss", "scheme"), JOINT_AND_PAIRS)
def test_a_class_of_weight_zero_is_one_whose_rows_are_absent(three_classes, loss, scheme, left_out):
    X, y = three_classes
    kept = y != left_out
    for penalty in ("l2", "l1", "none"):
        machine = er.Classifier(loss, penalty=penalty, multiclass=scheme, class_weight={left_out: 0}).fit(X, y)
        # Of two classes the joint schemes are asked for by their losses.
        joint = {("logistic", "auto"): "softmax", ("hinge", "joint"): "crammer_singer"}.get((loss, scheme))
        absent = er.Classifier(joint or loss, penalty=penalty, multiclass="auto" if joint else scheme)
        absent.fit(X[kept], y[kept])
        assert machine.certificate_.converged
        assert list(machine.classes_) == [0, 1, 2]
        scores, expected = machine.decision_function(X), absent.decision_function(X)
        first, second = absent.classes_
        # Above zero with the same rows: the class that is gone has no say in which of the other two is ahead.
        sure = np.abs(expected) > 1e-4
        np.testing.assert_array_equal((scores[:, second] > scores[:, first])[sure], (expected > 0)[sure])
        if scheme != "one_vs_rest":  # there "no" to a class that nobody has may be less sure than to both others
            assert left_out not in machine.predict(X)
        if loss in ("softmax", "logistic"):
            p = machine.predict_proba(X)
            np.testing.assert_allclose(p[:, left_out], 0, atol=1e-9)
            if scheme == "auto":
                np.testing.assert_allclose(p[:, [first, second]], absent.predict_proba(X), atol=1e-5)


@pytest.mark.parametrize("left_out", [0, 2])
@pytest.mark.parametrize("loss", ["softmax", "crammer_singer"])
def test_without_an_intercept_a_class_without_rows_still_competes(three_classes, loss, left_out):
    X, y = three_classes
    kept = y != left_out
    machine = er.Classifier(loss, class_weight={left_out: 0}, fit_intercept=False).fit(X, y)
    best = optimum(loss, "l2", 1.0, X[kept], y[kept].astype(float), np.ones(kept.sum()), False, 3)
    assert machine.certificate_.primal == pytest.approx(best, rel=1e-6)


@pytest.mark.parametrize("loss", ["hinge", "logistic", "softmax", "crammer_singer", "squared", "exponential"])
def test_of_one_class_with_weight_it_is_the_answer(three_classes, loss):
    X, y = three_classes
    for rows, weights, left in ((y < 2, {0: 0}, 1), (y < 2, {1: 0}, 0), (y < 3, {0: 0, 2: 0}, 1)):
        for penalty in ("l2", "none"):
            machine = er.Classifier(loss, penalty=penalty, class_weight=weights).fit(X[rows], y[rows])
            assert machine.certificate_.converged
            assert (machine.predict(X) == left).all()


@pytest.mark.parametrize("cls", [er.Classifier, er.NearestCentroid, er.KNNClassifier, er.BaggingClassifier])
def test_class_weights_without_any_get_a_sentence(three_classes, cls):
    with pytest.raises(er.errors.EmpiriskError, match="class_weight is zero for every class"):
        cls(class_weight=dict.fromkeys(range(3), 0)).fit(*three_classes)


LABELS = np.array(["a", "b", "c", "d"])


@pytest.fixture(scope="module")
def four_classes():
    random = np.random.default_rng(1)
    codes = np.arange(80) % 4
    return random.normal(size=(80, 3)) + 2.0 * np.eye(4)[codes][:, :3], LABELS[codes]


OWN = [[1, 1, -1, -1], [1, -1, 1, -1], [1, -1, 0, 0], [0, 1, -1, -1]]


@pytest.mark.row("E12")
@pytest.mark.parametrize("loss", ["hinge", "logistic", "squared", "exponential", "squared_hinge"])
@pytest.mark.parametrize("as_array", [True, False])
def test_a_code_of_ones_own_is_one_machine_for_each_row(four_classes, loss, as_array):
    X, y = four_classes
    machine = er.Classifier(loss, multiclass=np.array(OWN) if as_array else OWN).fit(X, y)
    assert machine.codes_.tolist() == OWN
    phi = {
        "hinge": lambda t: np.maximum(0, 1 - t),
        "logistic": lambda t: np.log1p(np.exp(-t)),
        "squared": lambda t: (1 - t) ** 2,
        "exponential": lambda t: np.exp(-t),
        "squared_hinge": lambda t: np.maximum(0, 1 - t) ** 2,
    }[loss]
    answers = []
    for row in np.array(OWN):
        sign = row[np.searchsorted(LABELS, y)]
        alone = er.Classifier(loss).fit(X[sign != 0], sign[sign != 0])
        answers.append(alone.decision_function(X))
    # Allwein, Schapire and Singer: the loss of the margins of every code word, that of 0 where the word has a 0.
    margins = np.array(OWN)[:, None, :] * np.array(answers)[:, :, None]
    np.testing.assert_allclose(machine.decision_function(X), -phi(margins).sum(axis=0), rtol=1e-4, atol=1e-5)
    assert machine.score(X, y) > 0.6
    assert not hasattr(machine, "predict_proba")


@pytest.mark.row("E12")
def test_the_code_of_a_scheme_gives_the_scheme(four_classes):
    X, y = four_classes
    named = er.SVM(multiclass="error_correcting").fit(X, y)
    given = er.SVM(multiclass=named.codes_).fit(X, y)
    np.testing.assert_array_equal(given.decision_function(X), named.decision_function(X))


@pytest.mark.row("E12")
def test_a_code_is_cloned_searched_and_saved(four_classes, tmp_path):
    X, y = four_classes
    machine = clone(er.SVM(multiclass=np.array(OWN))).fit(X, y)
    np.testing.assert_array_equal(machine.get_params()["multiclass"], OWN)
    er.save(machine, tmp_path / "codes.model")
    loaded = er.load(tmp_path / "codes.model")
    np.testing.assert_array_equal(loaded.predict(X), machine.predict(X))
    np.testing.assert_array_equal(loaded.multiclass, OWN)
    np.testing.assert_array_equal(clone(loaded).fit(X, y).coef_, machine.coef_)
    found = er.selection.search(er.SVM(), {"multiclass": ["one_vs_rest", OWN]}, X, y)
    assert found.best_score_ > 0.5
    assert "0" in repr(machine)
    pair = np.isin(y, ["a", "b"])
    binary = er.SVM(multiclass=[[1, -1], [-1, 1]]).fit(X[pair], y[pair])
    np.testing.assert_array_equal(binary.coef_, er.SVM().fit(X[pair], y[pair]).coef_)


@pytest.mark.row("E12")
@pytest.mark.parametrize(
    ("codes", "sentence"),
    [
        (np.array(OWN)[:, :3], r"shape \(4, 3\), but y has 4 classes, a, b, c, d; transpose it"),
        (np.array(OWN)[:2, :3], "a row for each machine and a column for each class"),
        ([1, -1, 0, 0], r"shape \(4,\)"),
        (np.zeros((0, 4)), "equal columns for the classes a and b"),
        ([[1, -1, 0, 2]], "must hold -1, 0"),
        ([[1, -1, np.nan, 1]], "must hold -1, 0"),
        ([[1, 1, 0, 0], [1, -1, 1, -1]], "Row 0 of multiclass has not both -1 and \\+1"),
        ([[1, 1, -1, -1]], "equal columns for the classes a and b"),
        ([[1, -1, -1, 0], [1, 1, -1, 0], [1, 1, -1, 0]], "zeros only for the class d"),
        ("everything", "multiclass='everything' is not known"),
        (None, "multiclass=None is not known"),
        ([["a", "b"]], "is not known; choose one of"),
        ({}, "is not known"),
    ],
)
def test_a_code_that_will_not_do_gets_a_sentence(four_classes, codes, sentence):
    with pytest.raises(er.errors.EmpiriskError, match=sentence):
        er.SVM(multiclass=codes).fit(*four_classes)


def test_joint_losses_and_several_labels_take_no_code(four_classes):
    X, y = four_classes
    with pytest.raises(er.errors.EmpiriskError, match="is a joint loss"):
        er.Classifier("softmax", multiclass=OWN).fit(X, y)
    with pytest.raises(er.errors.EmpiriskError, match="labels learned one by one"):
        er.Classifier("logistic", multiclass=OWN).fit(X, (y[:, None] == LABELS).astype(int))
