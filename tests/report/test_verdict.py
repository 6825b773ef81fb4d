"""Groups of test rows that are harder than the others."""

import numpy as np
import pytest
from scipy.stats import fisher_exact, ttest_ind

from empirisk.report import verdict

DRAW = np.random.default_rng(0)
GROUPS = [DRAW.random(300) < share for share in (0.1, 0.3, 0.5, 0.9)]


def test_chances_of_counts_are_those_of_fisher_and_each_table_is_tested_once(monkeypatch):
    tested = []
    monkeypatch.setattr(verdict, "fisher_exact", lambda table: tested.append(table) or fisher_exact(table))
    wrong = (DRAW.random(300) < 0.2).astype(float)
    found = verdict._chances(wrong, GROUPS * 50, counted=True)
    for inside, chance in zip(GROUPS, found, strict=False):
        sides = [[np.sum(wrong[side] > 0), np.sum(wrong[side] == 0)] for side in (inside, ~inside)]
        assert chance == pytest.approx(fisher_exact(sides).pvalue)
    assert len(found) == 200
    assert len(tested) == 4


def test_chances_of_means_are_those_of_welch():
    loss = DRAW.gamma(1.0, size=300)
    found = verdict._chances(loss, GROUPS, counted=False)
    assert found == pytest.approx([ttest_ind(loss[one], loss[~one], equal_var=False).pvalue for one in GROUPS])
    assert verdict._chances(loss, [], counted=False).shape == (0,)
