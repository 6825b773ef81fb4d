"""Hundreds of changed files of every kind: a sentence or answers, never a signal. All of them: mutants.py."""

import json
import warnings
from operator import attrgetter

import pytest

import empirisk as er
from empirisk.errors import EmpiriskError
from empirisk.files import registry
from tests.files.cases import public_classes
from tests.files.mutants import FINDS, File, changed_arrays, emptied, hollow, lengths, mutations, run
from tests.files.subjects import subjects

#: Run by `make test-all`.
pytestmark = pytest.mark.long

EACH, PARTS = 200, 10
#: Parts of the equation, of networks and of solvers: other classes hold them, and so do the files of subjects.
#: Base classes, how folds were made, and what is made of a function: with solvers, what no file holds or no prediction
#: reads.
NOT_READ = {"kernels.Kernel", "kernels.Times", "losses.Loss", "losses.ZeroOne", "nets.Layer", "penalties.Penalty"} | {
    f"sklearn.{name}" for name in ("GroupKFold", "KFold", "ShuffleSplit", "TimeSeriesSplit")
}
INNER = ("losses.", "penalties.", "solvers.", "nets.", "kernels.")


def told(finds):
    return "\n".join(f"{find['subject']} {find['mutant']} -> {find['found']}" for find in finds)


def test_every_estimator_is_a_subject():
    estimators = {name for name in public_classes() if hasattr(attrgetter(name)(er), "fit")}
    assert {name for name in estimators if not name.startswith(INNER)} - {
        "maps.SeveralKernels",
        "LearnedKernel",
    } <= set(subjects())


def test_every_class_with_rules_is_in_the_file_of_a_subject():
    """All that the registry knows, but for classes without a state, or without a state that is read."""
    found = set()

    def walk(node):
        if isinstance(node, dict) and "object" in node:
            found.add(node["object"][0])
        for child in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
            walk(child)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for build in subjects().values():
            walk(File(build()[0]).tree)
    known = {*registry.RECORDS, *registry.STEP_PLACES, *public_classes()}
    assert {name for name in known - found if not name.startswith("solvers.")} == NOT_READ


@pytest.mark.parametrize("part", range(PARTS))
def test_hundreds_of_mutants_of_every_kind(part):
    names = list(subjects())[part::PARTS]
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
    for name in ("rows_", "codes_", "weights_", "class_factors_", "positions_", "n_neighbors_"):
        assert any(name in label for label in labels)
    assert {what.split()[0] for what, _ in changed_arrays(file.array([0, *_first(file)]))} >= {"type", "longer", "all"}


def test_nothing_is_followed_to_a_file_that_holds_together(tmp_path):
    """Where a projection has no directions, all that counts them says so, and it answers with no columns."""
    model, rows = subjects()["PCA"]()
    file = File(model)
    counted = {
        "components_ 0",
        "n_components_ 0",
        *(f"{name}_ 0" for name in ("singular_values", "explained_variance")),
    }
    found = [change for label, change in hollow(file, tmp_path / "a") if all(word in label for word in counted)]
    assert found
    file.write(tmp_path / "a", *found[0]())
    assert er.load(tmp_path / "a").transform(rows).shape == (len(rows), 0)


NOTHING = {
    "KMeans": ("clusters", ("n_clusters", "cluster_centers_", "labels_", "counts_")),
    "kernel k-means": ("clusters", ("n_clusters", "dual_coef_", "squares_of_means_", "labels_", "counts_")),
    "GaussianMixture": ("components", ("weights_", "means_", "covariances_")),
    "KNNClassifier": ("kept", ("positions_", "weights_", "rows_", "codes_")),
    "sparse neighbours": ("kept", ("positions_", "weights_", "rows_", "targets_")),
    "BaggingClassifier": ("members", ("estimators_", "features_")),
    "VoteRegressor": ("members", ("estimators_", "weights_")),
    "QuantileRegressor": ("members", ("estimators_", "levels_")),
    "several kernels": ("kernels", ("kernels_", "beta_")),
    "centred": ("kept", ("items_",)),
}


@pytest.mark.parametrize("name", NOTHING)
def test_nothing_to_answer_from_is_refused(name, tmp_path):
    word, attributes = NOTHING[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        file = File(subjects()[name]()[0])
    chosen = [place for place, _ in lengths(file.tree) if place[1] == 0 and place[0][-1] in attributes]
    assert {path[-1] for path, _ in chosen} == set(attributes)
    file.write(tmp_path / "a", *emptied(file, chosen))
    with pytest.raises(EmpiriskError, match=f"{word} is 0, which leaves nothing to answer from"):
        er.load(tmp_path / "a")


def _first(file):
    found = []

    def walk(node):
        for child in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
            if isinstance(child, dict) and child.get("array", [None])[0] == 0:
                found.append(child["array"][1:])
            walk(child)

    walk(file.tree)
    return found[0]
