"""Bagging, AdaBoost and votes as graphs: the members' graphs, and what is made of their answers."""

from functools import reduce
from typing import Any

import numpy as np

from empirisk.ensembles.adaboost import AdaBoostClassifier
from empirisk.ensembles.bagging import BaggingClassifier, BaggingRegressor
from empirisk.ensembles.votes import VoteClassifier, VoteRegressor
from empirisk.exports.registry import Answers, answers, number_of, told_by, write_answers
from empirisk.exports.tensor import Symbolic, constant
from empirisk.names import spelled


def _shares(member: Any, x: Any, classes: Any) -> Symbolic:
    """The probabilities of a member in the order of all classes, of which it may know some."""
    places = np.searchsorted(classes, member.classes_)
    return answers(member, x)["predict_proba"] @ np.eye(len(classes))[places]


def _said(member: Any, x: Any, classes: Any, soft: bool) -> Symbolic:
    """The probabilities of a member, or one for the class that it says."""
    return _shares(member, x, classes) if soft else number_of(answers(member, x)["predict"], classes)


def _numbers(member: Any, x: Any) -> Symbolic:
    found = answers(member, x)["predict"]
    return found[:, None] if found.ndim == 1 else found


@write_answers.register
def _(machine: VoteClassifier, x: Any) -> Answers:
    soft = machine.voting == "soft"
    members = zip(machine.estimators_, machine.weights_, strict=True)
    said = [float(weight) * _said(member, x, machine.classes_, soft) for member, weight in members]
    return told_by(machine, "predict predict_proba", _scores=reduce(np.add, said))


@write_answers.register
def _(machine: VoteRegressor, x: Any) -> Answers:
    said = [weight * _numbers(member, x) for weight, member in machine.weighted_members()]
    return told_by(machine, "predict", _scores=reduce(np.add, said))


def _seen(machine: Any, x: Any) -> list[tuple[Any, Any]]:
    """The members of a bag, and the columns that each sees."""
    columns = [places.tolist() for places in machine._column_lists()]
    whole = machine.n_features_in_
    pairs = zip(machine.estimators_, columns, strict=True)
    return [(member, x if len(places) == whole else x[:, places]) for member, places in pairs]


def _about_labels(member: Any, x: Any, classes: Any, majority: bool) -> Symbolic:
    """What a member says of several labels, side by side."""
    told = answers(member, x)
    labels = enumerate(classes)
    if majority:
        return np.concatenate([number_of(told["predict"][:, k], names) for k, names in labels], axis=1)
    return np.concatenate(
        [
            told["predict_proba"][k] @ np.eye(len(names))[np.searchsorted(names, member.classes_[k])]
            for k, names in labels
        ],
        axis=1,
    )


@write_answers.register
def _(machine: BaggingClassifier, x: Any) -> Answers:
    majority = spelled("voting", machine.voting) == "hard"
    if isinstance(machine.classes_, list):
        said = [_about_labels(member, rows, machine.classes_, majority) for member, rows in _seen(machine, x)]
    else:
        said = [_said(member, rows, machine.classes_, not majority) for member, rows in _seen(machine, x)]
    return told_by(machine, "predict predict_proba", _scores=reduce(np.add, said) / float(len(said)))


@write_answers.register
def _(machine: BaggingRegressor, x: Any) -> Answers:
    said = [_numbers(member, rows) for member, rows in _seen(machine, x)]
    return told_by(machine, "predict", _scores=reduce(np.add, said) / float(len(said)))


@write_answers.register
def _(machine: AdaBoostClassifier, x: Any) -> Answers:
    members = zip(machine.estimators_, machine.alphas_, strict=True)
    said = [float(alpha) * _vote(machine, member, x) for member, alpha in members]
    return told_by(machine, "predict predict_proba decision_function", _scores=reduce(np.add, said))


def _vote(machine: AdaBoostClassifier, member: Any, x: Any) -> Symbolic:
    """One for the class that a learner says; trees that were grown together know classes by their numbers."""
    if not machine._trees:
        return number_of(answers(member, x)["predict"], machine.classes_)
    from empirisk.exports.families.trees import coded, tree_sums

    shares = tree_sums(member.nodes_, coded(machine.columns_, x))
    count = len(machine.classes_)
    best = (shares[:, 1] >= shares[:, 0]).astype(int) if count == 2 else shares.argmax(axis=1)
    return constant(np.eye(count))[best]
