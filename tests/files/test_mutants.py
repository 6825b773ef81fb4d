"""A fixed sample of changed files of every kind: a sentence or answers, never a signal. All of them: mutants.py."""

import json

import pytest

from tests.files.cases import public_estimators
from tests.files.mutants import FINDS, File, changed_arrays, mutations, run
from tests.files.subjects import subjects

EACH = 12


def told(finds):
    return "\n".join(f"{find['subject']} {find['mutant']} -> {find['found']}" for find in finds)


def test_every_estimator_is_a_subject():
    assert set(public_estimators()) <= set(subjects())


@pytest.mark.parametrize("part", [0, 1])
def test_a_sample_of_mutants(part):
    names = list(subjects())[part::2]
    finds, totals = run(names, EACH)
    assert not finds, told(finds)
    assert min(totals.values()) > len(names)
    assert sum(totals.values()) > 0.9 * EACH * len(names)


def test_finds_of_the_past_stay_found():
    kept = [json.loads(line) for file in sorted(FINDS.glob("*.jsonl")) for line in file.read_text().splitlines()]
    assert kept
    finds, _ = run(sorted({find["subject"] for find in kept}), 0, only=[f"{f['subject']} {f['mutant']}" for f in kept])
    assert not finds, told(finds)


def test_mutations_reach_every_array_and_attribute():
    file = File(subjects()["KNNClassifier"]()[0])
    labels = [label for label, _ in mutations(file)]
    assert len(labels) == len(set(labels)) > 300
    for name in ("rows_", "codes_", "weights_", "class_factors_", "positions_", "k_"):
        assert any(name in label for label in labels)
    assert {what.split()[0] for what, _ in changed_arrays(file.array([0, *_first(file)]))} >= {"type", "longer", "all"}


def _first(file):
    found = []

    def walk(node):
        for child in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
            if isinstance(child, dict) and child.get("array", [None])[0] == 0:
                found.append(child["array"][1:])
            walk(child)

    walk(file.tree)
    return found[0]
