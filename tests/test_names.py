"""One name for each parameter: scikit-learn's where it has one, and a sentence with ours for any other."""

import inspect

import pytest
from sklearn.base import BaseEstimator

import empirisk as er
from empirisk.errors import UnknownParameter
from empirisk.names import BEFORE_0_2, FOREIGN, meant, names_of
from tests.public import EXPORTS


def public_estimators():
    found = [getattr(er, name) if "." not in name else getattr(getattr(er, name.split(".")[0]), name.split(".")[1])
             for name in EXPORTS]  # fmt: skip
    return [one for one in found if isinstance(one, type) and issubclass(one, BaseEstimator)]


def test_no_public_estimator_has_an_old_name():
    wrong = [
        (cls.__name__, old)
        for cls in public_estimators()
        for old, new in BEFORE_0_2.items()
        if old in names_of(cls) and new in names_of(cls)
    ]
    assert not wrong


def test_every_public_estimator_names_the_parameter_that_was_meant():
    """By its constructor and by set_params, for every old and every foreign name."""
    seen = 0
    for cls in public_estimators():
        known = names_of(cls)
        others = {old for old, new in BEFORE_0_2.items() if new in known}
        others |= {name for name, ours in FOREIGN.items() if any(not one or one in known for one in ours)}
        for name in sorted(others - known):
            with pytest.raises(UnknownParameter) as caught:
                cls(**{name: 1})
            assert str(caught.value) == f"{cls.__name__} has no parameter {name!r}; {meant(name, known)}. [ER016]"
            seen += 1
    assert seen > 500
    with pytest.raises(ValueError, match="KNNRegressor has no parameter 'k'; it is called n_neighbors"):
        er.KNNRegressor().set_params(k=3)
    with pytest.raises(TypeError, match="Ridge has no parameter 'tool'; the closest one is tol"):
        er.Ridge(tool=1)


#: What other libraries of boosted trees call their parameters, and what stands in the answer.
BOOSTED = {
    "num_iterations num_boost_round iterations": "n_estimators", "max_bin border_count": "max_bins",
    "depth": "max_depth",
    "l2_leaf_reg reg_lambda lambda_l2 reg_alpha lambda_l1": "l2_regularization",
    "num_leaves max_leaves": "max_leaf_nodes",
    "min_split_gain min_split_loss min_gain_to_split gamma": "min_impurity_decrease", "loss_function objective": "loss",
    "min_child_weight min_child_samples min_sum_hessian_in_leaf": "min_samples_leaf", "subsample_freq": "subsample",
    "colsample_bytree colsample_bylevel feature_fraction": "max_features", "eta": "learning_rate",
    "scale_pos_weight is_unbalance": "class_weight", "cat_features enable_categorical": "categorical_features",
    "od_wait early_stopping_rounds": "n_iter_no_change", "eval_metric": "held-out", "nthread num_threads": "threads=",
    "device task_type": "device=", "verbosity silent": "set_callbacks", "missing": "NaN",
    "boosting_type booster": "tree",
}  # fmt: skip


def test_names_of_other_libraries_of_boosted_trees_are_answered():
    vague = []
    for names, ours in BOOSTED.items():
        for name in names.split():
            said = meant(name, names_of(er.BoostingClassifier))
            vague += [(name, said)] if ours not in said or said.startswith(("its parameters", "the closest")) else []
    assert not vague


def test_the_names_that_sentences_give_exist():
    known = set().union(*map(names_of, public_estimators()))
    assert {new for new in BEFORE_0_2.values() if not new.endswith("_")} <= known
    assert {ours for row in FOREIGN.values() for ours in row if ours} <= known


def test_signatures_are_those_of_constructors():
    assert list(inspect.signature(er.KNNClassifier).parameters)[:2] == ["n_neighbors", "features"]
    assert not inspect.signature(er.losses.Hinge).parameters
