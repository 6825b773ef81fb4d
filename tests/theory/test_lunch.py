"""No free lunch: exactly one half for every machine, and the same histogram for all; not on labellings that are few."""

from math import comb

import numpy as np
import pytest

import empirisk as er
from empirisk.theory import no_free_lunch

pytestmark = pytest.mark.row("V8")

DOMAIN = np.random.default_rng(0).normal(size=(8, 2))
MACHINES = [er.KNNClassifier(1), er.SVM(), er.NearestCentroid(), er.TreeClassifier(), er.LogisticRegression(C=0.1)]


@pytest.mark.parametrize("machine", MACHINES, ids=repr)
@pytest.mark.parametrize("train", [1, 4, 7])
def test_every_machine_errs_on_half_of_the_unseen_rows(machine, train):
    found = no_free_lunch(machine, DOMAIN, train)
    assert found.average == 0.5
    assert len(found.errors) == 2**8
    unseen = 8 - train
    np.testing.assert_array_equal(found.counts, [2**train * comb(unseen, k) for k in range(unseen + 1)])


def test_errors_are_those_of_fits_one_by_one():
    machine, train = er.NearestCentroid(), 5
    found = no_free_lunch(machine, DOMAIN, train)
    for number in (7, 100, 255, 31):
        labels = (number >> np.arange(8)) & 1
        said = np.full(3, labels[0])
        if 0 < labels[:train].sum() < train:
            said = er.NearestCentroid().fit(DOMAIN[:train], labels[:train]).predict(DOMAIN[train:])
        assert found.errors[number] == np.count_nonzero(said != labels[train:])


def test_labellings_that_a_machine_suits_are_learned():
    random = np.random.default_rng(1)
    linear = [DOMAIN @ random.normal(size=2) > 0 for _ in range(50)]
    found = no_free_lunch(er.SVM(C=10.0), DOMAIN, 5, linear)
    assert found.average < 0.35
    opposite = np.array(linear) ^ (np.arange(8) >= 5)  # the unseen labels turned round
    assert no_free_lunch(er.SVM(C=10.0), DOMAIN, 5, opposite).average == pytest.approx(1 - found.average)
    assert "of 3 unseen rows wrong" in str(found)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((DOMAIN, 8), "must leave some"),
        ((DOMAIN, 0), "train=0"),
        ((np.ones((21, 1)), 3), "at most 20 rows"),
        ((DOMAIN, 3, [[0, 1]]), "8 columns"),
        ((DOMAIN, 3, [[2] * 8]), "0 and 1"),
        ((DOMAIN[0], 3), "must be a table"),
    ],
)
def test_bad_domains_are_refused(arguments, message):
    with pytest.raises(er.errors.EmpiriskError, match=message):
        no_free_lunch(er.SVM(), *arguments)
