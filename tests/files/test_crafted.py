"""Files made to read other memory: each was accepted once, and the next prediction crashed or told secrets."""

import numpy as np
import pytest

import empirisk as er
from tests.files.cases import fitted, holding, rows
from tests.files.tampering import forge, refuses, rewrite


def three(X):
    return np.array(["a", "b", "c"])[np.digitize(X[:, 0], [-0.5, 0.5])]


def forest(**options):
    return er.ForestClassifier(n_estimators=3, max_depth=3, random_state=0, **options).fit(rows(), three(rows()))


def crafted(machine, path, **state):
    """Save a machine with other attributes; whoever writes a file can do so."""
    for name, value in state.items():
        object.__setattr__(machine, name, value)
    forge(machine, path)


def test_a_feature_number_that_is_a_leaf_to_the_walk_only(path):
    machine = forest()
    feature = machine.packed_["feature"].astype(np.int64)
    slot = machine.packed_["slot"].copy()
    feature[feature < 0], slot[feature < 0] = 2**32 - 1, 1e9
    crafted(machine, path, packed_=machine.packed_ | {"feature": feature, "slot": slot})
    refuses(path, "damaged: in its ForestClassifier, packed_")


def test_more_classes_than_a_leaf_has_numbers(path):
    machine = forest()
    crafted(machine, path, classes_=np.arange(100_000))
    refuses(path, "damaged: in its ForestClassifier")
    narrow = machine.packed_ | {"leaf_values": machine.packed_["leaf_values"][:, :1].copy()}
    crafted(machine, path, packed_=narrow, oob_decision_function_=np.zeros((60, 100_000)), classes_=np.arange(100_000))
    refuses(path, "packed_ has leaves of another width")


@pytest.mark.parametrize(
    "counts", [np.full(3, np.inf), np.full(3, 2**64 - 1, np.uint64), np.full(3, 2**31 - 1, np.int32)]
)
def test_wild_counts_of_categories(path, counts):
    machine = fitted(er.TreeClassifier(max_depth=2))
    object.__setattr__(machine.nodes_, "category_counts", counts)
    forge(machine, path)
    refuses(path, "damaged: in its (Nodes|TreeClassifier)")


def test_fewer_columns_than_the_machine_takes(path):
    machine = fitted(er.TreeClassifier(max_depth=2))
    columns = type(machine.columns_)(("x0",), (None,), np.array([False]))
    crafted(machine, path, columns_=columns)
    refuses(path, "damaged: in its TreeClassifier, columns_")


def test_members_that_split_on_columns_far_away(path):
    machine = fitted(er.AdaBoostClassifier(n_estimators=2))
    for member in machine.estimators_:
        feature = np.where(member.nodes_.feature >= 0, 200_000_000, -1).astype(np.int32)
        object.__setattr__(member.nodes_, "feature", feature)
        # A table of counts that long would make the splits inside it look right.
    forge(machine, path)
    refuses(path, "damaged: in its Nodes, feature")
    for member in machine.estimators_:
        object.__setattr__(member.nodes_, "feature", np.where(member.nodes_.feature >= 0, 2_000, -1).astype(np.int32))
        object.__setattr__(member.nodes_, "category_counts", np.zeros(3_000, np.int32))
    forge(machine, path)
    refuses(path, "damaged: in its TreeClassifier, nodes_ has a size of 3000 where columns is 3")


def test_neighbours_behind_a_kernel_without_norms(path):
    machine = fitted(er.KNNClassifier(features=er.kernels.Gaussian(2.0)))
    crafted(machine, path, norms_=np.zeros(0))
    refuses(path, "damaged: in its KNNClassifier, norms_")
    crafted(machine, path, norms_=None)
    refuses(path, "damaged: in its KNNClassifier, norms_")


def test_two_representations_at_once(path):
    machine, tree = forest(), fitted(er.TreeClassifier(max_depth=2))
    vars(machine)["nodes_"] = tree.nodes_
    forge(machine, path)
    refuses(path, "damaged: a ForestClassifier in it replaces 'nodes_'")
    vars(tree)["packed_"] = machine.packed_
    forge(tree, path)
    refuses(path, "damaged: in its TreeClassifier, packed_ is no attribute")
    both = fitted(er.SVM(features=er.kernels.Gaussian()))
    vars(both)["coef_"] = fitted(er.SVM()).coef_
    forge(both, path)
    refuses(path, "damaged: in its SVM, explicit weights have no meaning behind a kernel")


@pytest.mark.parametrize(
    ("machine", "change"),
    [
        (er.maps.Polynomial(2), {"degree": 10**9}),
        (er.maps.Periodic(2), {"harmonics": 10**9}),
        (er.KNNClassifier(), {"n_neighbors_": 0}),
        (er.KNNClassifier(), {"weights": "other"}),
        (er.KNNRegressor(), {"n_neighbors_": -(10**18)}),
    ],
    ids=str,
)
def test_parameters_that_would_take_for_ever(path, machine, change):
    machine = fitted(machine)
    inner = vars(machine).get("expansion_")
    vars(machine).update(change)
    if inner is not None:
        inner.degree = inner._max_degree = 10**9
    forge(machine, path)
    refuses(path, "damaged: in its (PolynomialFeatures|Periodic|KNN)")


def test_a_large_k_is_all_rows(path):
    machine = fitted(er.KNNClassifier(n_neighbors=5))
    crafted(machine, path, n_neighbors_=10**18)
    X = rows(5)
    everyone = fitted(er.KNNClassifier(n_neighbors=60)).predict_proba(X)
    np.testing.assert_allclose(er.load(path).predict_proba(X), everyone)


def test_texts_of_which_one_is_long_do_not_take_the_memory(path):
    """NumPy gives every text of an array the room of the longest: 3 bytes of the file could become 4 million."""
    forge(holding(np.array(["a", "b"])), path)

    def many(tree):
        tree["root"]["object"][2]["kw_args"]["dict"][0][1]["texts"] = [[100_001], 10**6, ["x" * 10**6, *[""] * 100_000]]

    rewrite(path, tree=many)
    refuses(path, "needs 400 GB, more than the limit", limit="1GB")


def test_what_was_loaded_cannot_be_changed(path):
    forge(forest(), path)
    loaded = er.load(path)
    with pytest.raises(ValueError, match="read-only"):
        loaded.packed_["feature"][0] = 10**4
    forge(fitted(er.KNNClassifier()), path)
    with pytest.raises(ValueError, match="read-only"):
        er.load(path).codes_[0] = 10**9
