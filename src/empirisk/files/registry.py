"""The classes a model file may name: our public ones, a few records of ours, and the steps of scikit-learn with rules.

A file names a class by its public name. The name is looked up here and nowhere else, so that no file can make the
loader import a module or build an object that is not in these tables.
"""

import dataclasses
from importlib import import_module
from typing import Any

from sklearn.base import BaseEstimator

import empirisk
from empirisk.errors import LETTERS, NotLoaded
from empirisk.files.steps import STEPS
from empirisk.names import BEFORE_0_2

#: Our records that fitted machines hold and kernels that operators make: the name that files use, and its module.
RECORDS = {
    "Certificate": "empirisk.certificate",
    "Choice": "empirisk.fits.choice",
    "Columns": "empirisk.trees.table_columns",
    "JoinedLeaves": "empirisk.projections.learned_kernel_leaves",
    "Nodes": "empirisk.trees.nodes",
    "Pruned": "empirisk.trees.prune",
    "kernels.Exp": "empirisk.kernels.algebra",
    "kernels.On": "empirisk.kernels.wrappers",
    "kernels.PolynomialOf": "empirisk.kernels.algebra",
    "kernels.Power": "empirisk.kernels.algebra",
    "kernels.Product": "empirisk.kernels.algebra",
    "kernels.Scaled": "empirisk.kernels.algebra",
    "kernels.Spelled": "empirisk.kernels.strings",
    "kernels.Sum": "empirisk.kernels.algebra",
    "kernels.Times": "empirisk.kernels.wrappers",
    "maps.BoxCox": "empirisk.maps.recipes",
    "maps.Logarithm": "empirisk.maps.recipes",
    "tables.History": "empirisk.tables.history",
    "tables.EncodingReader": "empirisk.tables.encoding.joined",
    "tables.Items": "empirisk.tables.kinds.several",
    "tables.JoinedEncoder": "empirisk.tables.encoding.joined",
    "tables.Letters": "empirisk.tables.encoding.letters",
    "tables.Means": "empirisk.tables.encoding.categories",
    "tables.Pieces": "empirisk.tables.kinds.sequence",
    "tables.Steps": "empirisk.tables.spread",
    "tables.Spelling": "empirisk.tables.kinds.sequence",
    "tables.Spread": "empirisk.tables.spread",
    "tables.Numbers": "empirisk.tables.encoding.numbers_and_texts",
    "tables.Texts": "empirisk.tables.encoding.numbers_and_texts",
    "tables.Words": "empirisk.tables.encoding.categories",
}

#: Where scikit-learn has the steps that we have rules for, by the name that files use.
STEP_PLACES = {f"sklearn.{place.rpartition('.')[2]}": place for place in STEPS}

#: Classes that have another name now. Those that left ``selection`` have gone to ``evaluation``, all of them.
MOVED = {
    "solvers.DualNewton": "solvers.Envelope",
    "solvers.JointNewton": "solvers.Newton",
    "solvers.KernelNewton": "solvers.Newton",
    "solvers.KernelPerceptron": "solvers.Perceptron",
    "solvers.SmoothingNewton": "solvers.Envelope",
}

#: Attributes that have another name now, in whatever class knows the new one and not the old one.
RENAMED = {
    "machine": "estimator",
    "machine_": "estimator_",
    "stopped_by_": "stopped_",
    "texts_": "blocks_",
    "Cs": "values",
    "C": "chosen",
    **BEFORE_0_2,
}

#: Attributes that say how a fit ended, and the words of version 0.1 for it.
ENDINGS = ("stopped_", "status")
OLD_ENDINGS = {
    "iteration limit": "max_iter",
    "time limit": "max_time",
    "stopped early": "early_stopping",
    "all passes done": "finished",
    "n_estimators": "finished",
    "all steps": "finished",
    "partial fit": "partial_fit",
    "no minimiser exists (separable classes)": "separable",
    "an epoch without mistakes": "no_mistakes",
    "perfect learner": "perfect_learner",
    "no edge": "no_edge",
    "early stopping": "early_stopping",
    "not finite": "not_finite",
}

#: Where encoders of older files have the places of rare categories, which now go by their own names.
OLD_RARE = "_infrequent_indices"

#: Attributes that objects of older files have and none has now: what they said is said by others.
GONE = {
    "selection.Search": ("best_estimator_",),
    "KNNClassifier": ("ks_", "losses_"),
    "KNNRegressor": ("ks_", "losses_"),
    "solvers.SGD": ("validation_fraction", "patience"),
}

#: Attributes that would make a loaded object touch the disk: the only value they may have. None is written in place of
#: any other value: where this process kept its work is no part of the model.
ONLY = {
    ("Network", "checkpoint"): None,  # a file that training would read and write
    ("sklearn.Pipeline", "memory"): None,  # a folder of pickles
    ("selection.Search", "journal"): None,  # a file that a new fit would write
    ("sklearn.CountVectorizer", "input"): "content",  # else the rows are names of files to read
    ("sklearn.TfidfVectorizer", "input"): "content",
}


def name_of(cls: type) -> str | None:
    """The name that files use for a class, None for a class that files may not hold.

    >>> name_of(er.SVM), name_of(er.losses.Hinge), name_of(dict)
    ('SVM', 'losses.Hinge', None)
    """
    rooms = [module for module in empirisk._MODULES if cls.__module__.startswith(f"empirisk.{module}")]
    names = [cls.__name__, *(f"{room}.{cls.__name__}" for room in ("sklearn", *rooms))]
    return next((name for name in names if find(name) is cls), None)


def class_of(name: Any) -> type:
    """The class that a file means by a name, or an error: only names in the tables are looked up.

    >>> class_of("losses.Hinge")
    <class 'empirisk.losses.margin.Hinge'>
    """
    wanted = str(name)
    found = find(wanted) or find(MOVED.get(wanted, wanted.replace("selection.", "evaluation.")))
    if found is None:
        raise NotLoaded(
            f"The model file holds an object of kind {wanted[:LETTERS]!r}, which this version of Empirisk does not "
            "load; write the file again with Empirisk's own machines, or update Empirisk."
        )
    return found


def find(name: str) -> type | None:
    """The class behind a name of the tables, None if there is none."""
    if name in RECORDS:
        return getattr(import_module(RECORDS[name]), name.rpartition(".")[2])
    if name in STEP_PLACES:
        home, _, step = STEP_PLACES[name].rpartition(".")
        return getattr(import_module(f"sklearn.{home}"), step)
    module, _, part = name.rpartition(".")
    if module in empirisk._MODULES:
        exported = getattr(empirisk, module)
        found = getattr(exported, part, None) if part in getattr(exported, "__all__", ()) else None
    else:
        found = getattr(empirisk, name) if name in empirisk._HOMES else None
    # What has a state to keep: an estimator, a part or a record.
    stateful = isinstance(found, type) and (issubclass(found, BaseEstimator) or dataclasses.is_dataclass(found))
    return found if stateful else None
