"""How machines of the equation learn from rows that lie in blocks: the same problems on another design."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from empirisk.contract.elsewhere import RowsElsewhere
from empirisk.contract.inputs import class_weights, require_two
from empirisk.errors import EmpiriskError, Unsuitable
from empirisk.problem import Problem
from empirisk.protocols import FeatureMap, learns_with_machine
from empirisk.scale.blocks import Blocked, TableRows
from empirisk.scale.design import BlockedDesign
from empirisk.scale.table import BlockedTable, total_weights


def map_table(machine: Any, table: BlockedTable) -> BlockedTable:
    """The table after the feature map of a machine, which learns from a sample of the rows."""
    if machine._kernel() is not None:
        raise Unsuitable(
            f"features={machine.features!r} is a kernel, behind which all rows must be in memory; use "
            "features=er.maps.Nystrom(kernel), or a sample of the rows."
        )
    machine.n_features_in_ = table.rows.shape[1]
    if table.names is not None and machine.features is None:
        machine.feature_names_in_ = np.array(table.names, dtype=object)
    if machine.features is None:
        return table
    if learns_with_machine(machine.features):
        raise Unsuitable(f"features={machine.features!r} learns from rows in memory; give it a sample of the rows.")
    X, y, _ = table.sample()
    features = cast(FeatureMap, machine.features)
    machine.features_ = machine._learned_map(features, X, y)
    return table.mapped(machine.features_.transform)


def weighted_rows(machine: Any, there: RowsElsewhere, sample_weight: Any) -> tuple[BlockedDesign, Blocked]:
    """The design of rows that lie elsewhere, after the feature map, and their weights."""
    table = map_table(machine, there.table(None, sample_weight).counting())
    return BlockedDesign(table.rows), table.weights


def problems_of(machine: Any, there: RowsElsewhere, y: Any, sample_weight: Any) -> tuple[list[Problem], Any]:
    """The problems of a classifier or regressor on rows that lie elsewhere, and the number of every row's class."""
    if not (isinstance(machine.C, str) or np.all(np.isfinite(machine.C if isinstance(machine.C, float) else 1.0))):
        raise Unsuitable(f"C={machine.C!r} needs rows in memory; give a finite number.")
    table = map_table(machine, there.table(y, sample_weight).counting())
    design = BlockedDesign(table.rows)
    # Once for all problems on these rows.
    design = design.centred() if machine.fit_intercept else design
    if machine.task == "classification":
        return _of_classes(machine, table, design)
    if table.labels is not None:
        raise EmpiriskError("y holds what is no number; give numbers, or take a classifier.")
    if isinstance(machine.loss, (list, tuple)):
        raise Unsuitable("loss is a list, and rows that are not in memory have one target; give one loss.")
    loss = machine._suitable_loss(machine.loss)
    machine._single = True
    low, high = (table.targets().min(), table.targets().max())
    loss.check_targets(np.array([low, high]))
    return machine._problems(loss, design, [table.targets()], table.weights), table.place.constant(0.0)


def numbered_classes(machine: Any, table: BlockedTable) -> tuple[NDArray[Any], Blocked, Blocked]:
    """The classes, the number of every row's class, and the weights of the rows with those of the classes."""
    (classes, codes), weights = table.classes(), table.weights
    if machine.class_weight is not None:
        totals = total_weights(table.place, codes, weights, len(classes))
        factors = class_weights(machine.class_weight, classes, np.arange(len(classes)), totals)
        weights = table.place.run(
            lambda codes, weights: weights * factors[codes.astype(int)], codes, weights, outputs=1
        )
    return classes, codes, weights


def _of_classes(machine: Any, table: BlockedTable, design: BlockedDesign) -> tuple[list[Problem], Blocked]:
    loss, place = machine._suitable_loss(machine.loss), table.place
    machine.classes_, codes, weights = numbered_classes(machine, table)
    count = len(machine.classes_)
    require_two(machine.classes_, type(machine).__name__)
    # The targets of one row of each class tell those of all rows.
    loss, targets = machine._code(loss, np.arange(count), count)
    problems: list[Problem] = []
    for values in targets:
        target = place.run(lambda codes, values=values: values[codes.astype(int)], codes, outputs=1)
        part, targets_there, weights_there, rows = _counting(design, target, weights)
        found = machine._problems(loss, part, targets_there, weights_there, count if loss.joint else 0)
        problems += [replace(problem, rows=rows) for problem in found]
    return problems, codes


def _counting(
    design: BlockedDesign, target: Blocked, weights: Blocked
) -> tuple[BlockedDesign, list[Blocked], Blocked, Blocked | None]:
    """Without rows of weight zero, and rows of classes that take no part; and the mask of the others."""
    place = design.place
    mask = place.run(
        lambda target, weights: ((weights > 0) & ~np.isnan(target)).astype(float), target, weights, outputs=1
    )
    if mask.min() > 0:
        return design, [target], weights, None
    choose = place.filtered(mask)
    rows = choose(design.rows_there)
    return BlockedDesign(cast(TableRows, rows), design.shift), [choose(target)], choose(weights), mask
