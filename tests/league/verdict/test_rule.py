"""The machine chosen is that of the rule in the report, and differences are told as far as they are known."""

from dataclasses import replace

import numpy as np
import pytest

import empirisk as er
from empirisk.errors import EmpiriskError
from empirisk.league.records import CandidateResult, best_of, winner
from empirisk.league.verdict.judge import NOT_PROVEN, ONE_FOLD, SAME, differences


def standing(name, place, scores, **others):
    given = {"state": "done", "rows": 1000} | others
    return CandidateResult(name, name, place, scores=-np.array(scores, dtype=float), sign=-1.0, **given)


def test_a_vote_on_one_easy_fold_is_not_taken_over_boosting_on_all():
    boosting = standing("boosting", 5, [572.0, 520.0, 561.0, 540.0, 551.5])
    vote = standing("vote", 9, [569.7], state="tried")
    assert winner([boosting, vote]).name == "boosting"


def test_one_with_fewer_folds_is_taken_where_it_is_clearly_better():
    ridge = standing("ridge", 1, [900.0, 880.0, 912.0])
    assert winner([ridge, standing("boosting", 5, [560.0], state="tried")]).name == "boosting"
    assert winner([ridge, standing("boosting", 5, [560.0, 550.0], state="tried")]).name == "boosting"


def test_the_rule_holds_for_all_kinds_of_results():
    """Whoever is chosen has a score that is as good as the best of those with as many folds, up to a standard error."""
    random = np.random.default_rng(0)
    for _ in range(300):
        ease = random.normal(0, 30, size=5)
        results = [
            standing(f"m{k}", k, 500 + ease[:folds] + random.normal(0, 20) + random.normal(0, 5, size=folds))
            for k, folds in enumerate(random.integers(1, 6, size=6))
        ]
        chosen, best = winner(results), best_of(results)
        for other in results:
            if len(other.scores) >= len(best.scores):
                assert best.mean >= other.mean
        common = min(len(chosen.scores), len(best.scores))
        gap = best.scores[:common] - chosen.scores[:common]
        error = gap.std(ddof=1) / np.sqrt(common) if common > 1 else 0.0
        assert chosen is best or gap.mean() <= error


def test_the_best_is_taken_where_it_is_preferred():
    boosting = standing("boosting", 5, [500.0, 511.0, 491.0, 505.0, 509.0])
    simpler = standing("ridge", 1, [501.0, 510.0, 495.0, 504.0, 509.5])
    assert winner([boosting, simpler]).name == "ridge"
    assert winner([boosting, simpler], "best").name == "boosting"


def test_simplicity_costs_no_more_than_a_hundredth_of_what_the_best_gains():
    guessing = standing("baseline", 0, [600.0, 610.0, 590.0, 604.0, 608.0])
    boosting = standing("boosting", 5, [500.0, 511.0, 491.0, 505.0, 509.0])
    ridge = standing("ridge", 1, [505.0, 508.0, 496.0, 503.0, 509.5])  # behind by 1.1 of 99 on the folds
    forest = standing("forest", 3, [501.0, 510.0, 493.0, 504.0, 510.5])  # behind by .5
    assert winner([guessing, boosting, ridge]).name == "boosting"
    assert winner([guessing, boosting, ridge, forest]).name == "forest"
    assert winner([boosting, ridge, forest]).name == "ridge"


def test_what_simplicity_costs_is_told():
    best = er.learn("iris", machines=["logistic", "tree"], folds=3, prefer="best")
    assert best.best.mean == max(one.mean for one in best.standings)
    assert best.price == ""
    found = replace(best, winner="tree" if best.winner == "logistic" else "logistic")
    gap = best.best.mean - found.best.mean
    assert gap > 0
    assert found.price.startswith(f"The accuracy, higher by {gap:.2g}, of {best.best.title} on the folds may be chance")
    assert found.price.endswith("prefer='best' takes the other.")
    with pytest.raises(EmpiriskError, match="prefer='fast' is not known; use 'simple' or 'best'"):
        er.learn("iris", prefer="fast")


@pytest.mark.parametrize(
    ("rival", "words"),
    [
        ([500.1, 511.0, 491.1, 505.2, 508.9], SAME),
        ([420.0, 600.0, 470.0, 585.0, 460.0], NOT_PROVEN),
        ([600.0, 612.0, 589.0, 606.0, 607.0], "really worse"),
        ([500.0], ONE_FOLD),
    ],
)
def test_what_is_said_of_a_difference(rival, words):
    chosen = standing("boosting", 5, [500.0, 511.0, 491.0, 505.0, 509.0])
    guessing = standing("baseline", 0, [1000.0, 1010.0, 1005.0, 990.0, 1001.0])
    told = differences([chosen, guessing, standing("forest", 4, rival)], chosen, 0.25)
    assert told["forest"] == words
    assert told["baseline"] == "really worse"


def test_one_fold_has_no_error():
    assert np.isnan(standing("boosting", 5, [500.0]).error)
    assert standing("boosting", 5, [500.0, 502.0]).error == 1.0
