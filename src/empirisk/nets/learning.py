"""A network learns with the problems of a machine: rows made ready, trained, and the heads solved to their optimum."""

import hashlib
from copy import copy
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from empirisk import penalties
from empirisk.certificate import verify
from empirisk.contract.arguments import check_count, check_number
from empirisk.contract.inputs import check_size
from empirisk.errors import EmpiriskError, Unsuitable
from empirisk.linalg.design import design_of
from empirisk.linalg.hashes import equal_keys, row_digests
from empirisk.machines.online import OnlineSteps
from empirisk.messages import coded
from empirisk.nets.augment import Augmentation
from empirisk.nets.autoencoder import Rebuilding
from empirisk.nets.checkpoint import Checkpoint
from empirisk.nets.finish import Finish
from empirisk.nets.layers import Dense
from empirisk.nets.objective import BIAS, FIXED, FROM, HEAD, UNIT, Decay, NetworkObjective, columns_of
from empirisk.nets.optimisers import OptimiserRule, rates
from empirisk.nets.plan import frozen, through
from empirisk.nets.training import LEAST_LOOK, NetworkTraining, Trained, TrainingData, TrainingSchedule, drift, loss_sum
from empirisk.problem import Point, Problem
from empirisk.stop import CODES, CUT, REMEDIES, Deadline, Ending, warn_of

#: The unit of every output, and what its targets are counted from, by name.
Units = dict[str, NDArray]
#: Epochs where none are asked for, and the steps that there are then at least.
EPOCHS, LEAST_STEPS = 20, 2000
#: First weights tried where every step sees all rows, and the share of the steps after which the best is known.
TRIES, TRIED = 10, 0.1
#: Parts of the unit of the targets to which their mean is rounded.
PARTS = 64
#: The largest number of rows, targets and weights: networks are trained in single precision, which ends at 3e38.
LARGEST = 1e30
#: The share of the time that is left to the head.
FOR_THE_HEAD = 0.15


def learn(network: Any, rows: NDArray, problems: list[Problem], run: Any) -> tuple[list[Problem], list[Any]]:
    """Train the network on the problems, then solve their heads on phi_W(X); see `Network.learn_with`."""
    objective = _objective(network, problems)
    check_size("X", rows, LARGEST)
    for problem in problems:
        check_size("y", problem.y, LARGEST)
        check_size("C * sample_weight", problem.scale, LARGEST)
    units = _units(problems)
    data = canonical(network.shaped(rows), *_columns(problems, len(rows), units[FROM]))
    learned = network.frozen_names() != set(network.weights_)
    tell = None if run.learning is None else partial(_tell, network, rows, problems, run.learning)
    best = _train(network, objective, data, units, run, tell) if learned else None
    if best is not None:
        network.weights_, network.state_ = _without_head(best), best.state
        network.history_ = {name: np.asarray(values) for name, values in best.history.items()}
        network.history_names_ = sorted(set(best.weights) - network.frozen_names() - FIXED)
        network.n_steps_, network.stopped_ = best.steps, best.stopped
        _warn(best)
    phi = through(network.plan(), network.weights_, network.state_, network.shaped(rows))
    problems = _on(phi, problems)
    network.seen_scale_ = float(data.scale.sum())
    if best is None:
        fits = run(problems)
        network.head_ = _head(objective, units, problems, [fit.point for fit in fits])
        return problems, fits
    starts = _heads(best, problems)
    fits = [_not_worse(*each) for each in zip(problems, run(problems, starts), starts, strict=True)]
    network.head_ = _head(objective, units, problems, [fit.point for fit in fits])
    return problems, _with_gradient(network, objective, data, fits)


def advance(network: Any, rows: NDArray, problems: list[Problem], watch: Any) -> OnlineSteps:
    """One pass over the rows of a call of `partial_fit`, from where the network stands; see `Network.step_with`."""
    objective = _objective(network, problems)
    known = getattr(network, "head_", None)
    head = known or objective.head(np.random.default_rng([network.seed_, 0, 1])) | _units(problems)
    data = canonical(network.shaped(rows), *_columns(problems, len(rows), head[FROM]))
    before = Trained(network.weights_ | head, network.state_, {})
    lost = sum(_lost(*each) for each in zip(problems, _heads(before, problems), strict=True))
    network.seen_scale_ = getattr(network, "seen_scale_", 0.0) + float(data.scale.sum())
    if len(data.x) and network.frozen_names() != set(network.weights_):
        before = _one_pass(network, objective, data, head, watch)
    network.weights_, network.state_ = _without_head(before), before.state
    network.head_ = {name: value for name, value in before.weights.items() if name in FIXED | {HEAD, BIAS}}
    problems = _on(through(network.plan(), network.weights_, network.state_, network.shaped(rows)), problems)
    weight = sum(problem.weights.sum() for problem in problems)
    return OnlineSteps(problems, _heads(before, problems), float(lost / weight) if weight else np.nan, "network")


def _one_pass(
    network: Any, objective: NetworkObjective, data: TrainingData, head: dict[str, NDArray], watch: Any
) -> Trained:
    """Steps of equal numbers of rows that see each row once, at a step size that stays."""
    schedule = _schedule(network, len(data.x))
    count = -(-len(data.x) // schedule.batch)
    taken = getattr(network, "n_steps_", 0)
    batch = -(-len(data.x) // count)
    schedule = replace(
        schedule, batch=batch, steps=count, look=count, rates=np.full(count, schedule.rates[0], np.float32),
        seed=int(np.random.default_rng([network.seed_, taken]).integers(2**31)),
    )  # fmt: skip
    training = NetworkTraining(
        objective, OptimiserRule(network.optimiser), schedule, data.padded(batch * count), network.weights_ | head,
        network.state_, frozen=network.frozen_names(), masks=network.masks, total=network.seen_scale_,
        memory=getattr(network, "memory_", ()), deadline=watch.deadline,
    )  # fmt: skip
    trained = training.run()
    watch.status = trained.stopped if trained.stopped in CUT else ""
    if trained.stopped == Ending.NOT_FINITE:
        sentence = f"The steps of the network have led beyond all numbers; {REMEDIES[Ending.NOT_FINITE]}."
        raise EmpiriskError(coded(CODES[Ending.NOT_FINITE], sentence))
    network.memory_, network.n_steps_, network.stopped_ = training.memory, taken + trained.steps, trained.stopped
    return trained


def _lost(problem: Problem, point: Point) -> float:
    """The weighted sum of the losses of the rows of a problem."""
    return float(problem.weights @ problem.loss.value(problem.y, problem.predict(point))) if len(problem.y) else 0.0


def _objective(network: Any, problems: list[Problem]) -> NetworkObjective:
    """What the network minimises with the problems of a machine."""
    return NetworkObjective(
        network.plan(),
        [(problem.loss, problem.classes) for problem in problems],
        problems[0].penalty,
        _decay(network),
        problems[0].intercept,
        _augmentations(network),
    )


def rebuild(network: Any, rows: NDArray, weights: NDArray, codes: int, run: Any) -> None:
    """Train the network, with a last linear layer of ``codes`` units, to rebuild its rows."""
    if network.batch_norm or network.dropout:
        raise Unsuitable("An autoencoder has no batch_norm or dropout; leave them at their defaults.")
    network.layers_ = [*network.layers_, Dense(codes, "linear")]
    network._n_features_out = codes
    network.weights_ = network.first_weights(0)
    check_size("X", rows, LARGEST)
    objective = Rebuilding(network.plan(), _decay(network), bool(network.tied), _augmentations(network))
    data = canonical(network.shaped(rows), np.zeros((len(rows), 1), np.float32), weights[:, None])
    data, held_out = _split(network, data)
    schedule = _schedule(network, len(data.x))
    first = objective.first(network.weights_, np.random.default_rng([network.seed_, 1]))
    if not network.weights:
        first = objective.centred(first, np.average(data.x.astype(np.float64), axis=0, weights=data.scale[:, 0]))
    deadline = _deadline(run)
    training = NetworkTraining(
        objective, OptimiserRule(network.optimiser), schedule, data, first, {},
        held_out=held_out, deadline=deadline, report=_report(network, schedule), masks=network.masks,
    )  # fmt: skip
    trained = training.run()
    finish = _finish(network, objective, data, held_out, deadline)
    if finish is not None and trained.stopped == Ending.FINISHED:
        trained = _finished(finish, [trained], deadline)
    _warn(trained)
    halves = objective.halves(trained.weights)
    network.weights_, network.decoder_ = ({k: np.ascontiguousarray(v) for k, v in half.items()} for half in halves)
    network.history_ = {name: np.asarray(values) for name, values in trained.history.items()}
    network.history_names_ = sorted(first)
    network.n_steps_, network.stopped_ = trained.steps, trained.stopped


def _decay(network: Any) -> Decay:
    """The penalty on the weights of the network."""
    return Decay(check_number("decay", network.decay, 0), penalties.find(network.penalty))


def _finish(
    network: Any, objective: Any, data: TrainingData, held_out: TrainingData | None, deadline: Deadline
) -> Finish | None:
    """The whole objective for L-BFGS, where the training is to end so."""
    asked = network.finish
    if asked not in (True, False, "auto"):
        raise EmpiriskError(f"finish={asked!r} must be True, False or 'auto'.")
    same = objective.plan.steady and not network.augment
    if asked is True and (not same or held_out is not None):
        raise Unsuitable(
            "finish=True minimises over all rows as they are; leave out dropout, batch_norm, augment and "
            "validation_fraction, or use finish='auto'."
        )
    wanted = same and held_out is None and network.epochs is None if asked == "auto" else asked
    whole = Finish(objective, data, network.state_, network.frozen_names() | FIXED, network.masks or {}, deadline)
    return whole if wanted and (asked is True or whole.affordable) else None


def _finished(finish: Finish, trials: list[Trained], deadline: Deadline, firsts: bool = False) -> Trained:
    """The first of the trials, its weights those that L-BFGS reaches at best from any of the trials.

    It begins where each has got to, and with ``firsts`` at the first weights of each: what the steps of a trial lead to
    is not always the lowest minimum near them.
    """
    trained = trials[0]
    starts = [trial.weights for trial in trials]
    place, end = finish.best(starts + [trial.first for trial in trials] if firsts else starts)
    begun = trials[place % len(trials)].first
    if not np.isfinite(end.objective):
        return trained
    names = sorted(end.slopes)
    entry = {
        "step": trained.steps + end.evaluations,
        "seconds": trained.history["seconds"][-1] + end.seconds,
        "objective": end.objective,
        "gradient_norm": np.array([np.linalg.norm(end.slopes[name]) for name in names]),
        "drift": np.array([drift(end.weights[name], begun[name]) for name in names]),
    }
    history = {name: [*values, entry[name]] for name, values in trained.history.items()}
    return replace(trained, weights=end.weights, history=history, stopped=deadline.reason or trained.stopped)


def _augmentations(network: Any) -> tuple[Augmentation, ...]:
    steps = tuple(network.augment)
    for step in steps:
        if not isinstance(step, Augmentation):
            raise EmpiriskError(f"augment={network.augment!r} must hold objects such as nets.Shift(2).")
        step.check()
        if step.images and len(network.shape_) != 3:
            raise Unsuitable(f"{step!r} needs images; give shape=(height, width, channels) to Network.")
    return steps


def _units(problems: list[Problem]) -> Units:
    """The unit of every output and what its targets are counted from: about their deviation and mean.

    Both are rounded, so that they depend neither on the order of the rows nor on copies of them. Losses of classes, and
    deviances, which count from their best constant, have a unit of their own.
    """
    units, begins = [], []
    for problem in problems:
        unit, begin = 1.0, 0.0
        if problem.loss.residual_form:
            share = problem.scale / problem.scale.sum()
            mean = share @ problem.y if problem.intercept else 0.0
            unit = 2.0 ** np.round(np.log2(np.sqrt(share @ (problem.y - mean) ** 2) or 1.0))
            begin = np.round(mean / unit * PARTS) / PARTS * unit
        elif problem.loss.positive and problem.intercept:
            begin = np.round(problem.loss.best_constant(problem.y, problem.scale) * PARTS) / PARTS
        units += [unit] * max(problem.classes, 1)
        begins += [begin] * max(problem.classes, 1)
    return {UNIT: np.array(units, np.float32), FROM: np.array(begins, np.float32)}


def _columns(problems: list[Problem], rows: int, begins: NDArray) -> tuple[NDArray, NDArray]:
    """Targets, counted from where the outputs are, and scales of all rows, one column per problem; zero for none."""
    targets, scale = np.zeros((rows, len(problems)), np.float32), np.zeros((rows, len(problems)))
    outputs = columns_of([problem.classes for problem in problems])
    for number, (problem, output) in enumerate(zip(problems, outputs, strict=True)):
        where = slice(None) if problem.rows is None else problem.rows
        begin = 0.0 if problem.classes else float(begins[output])
        counted, factor = problem.loss.counted_from(problem.y, begin)
        targets[where, number], scale[where, number] = counted, factor * problem.scale
    return targets, scale


def canonical(x: NDArray, targets: NDArray, scale: NDArray) -> TrainingData:
    """The rows that count, equal ones made one with all their weight, in an order of their own.

    So training knows the rows as a set: weight 2 is the row twice to the last bit, and no order is better than another.
    """
    kept = np.flatnonzero(scale.sum(axis=1) > 0)
    x = np.ascontiguousarray(x[kept], dtype=np.float32) + np.float32(0)  # no negative zeros
    targets, scale = targets[kept], scale[kept]
    first, inverse = equal_keys(row_digests(x, targets))
    if len(first) < len(x):
        # In order of size, so that sums do not depend on the order of the rows.
        total = np.zeros((len(first), scale.shape[1]))
        for row in np.lexsort(scale.T):
            total[inverse[row]] += scale[row]
        scale = total
    else:
        scale = scale[first]
    return TrainingData(x[first], targets[first], scale.astype(np.float32))


def _schedule(network: Any, rows: int) -> TrainingSchedule:
    batch = check_count("batch_size", network.batch_size)
    assert batch is not None
    per_epoch = max(rows // batch, 1)
    epochs = check_count("epochs", network.epochs, optional=True)
    steps = per_epoch * epochs if epochs else max(EPOCHS * per_epoch, LEAST_STEPS)
    rate = network.learning_rate_init
    if isinstance(rate, str):
        if rate != "auto":
            raise EmpiriskError(f"learning_rate_init={rate!r} must be a positive number or 'auto'.")
        rate = 1e-2 if rows <= batch else 1e-3
    look = check_count("look_every", network.look_every, optional=True) or max(per_epoch, LEAST_LOOK)
    patience = check_count("n_iter_no_change", network.n_iter_no_change)
    assert patience is not None
    by_step = rates(check_number("learning_rate_init", rate, 0, above=True), network.schedule, steps)
    return TrainingSchedule(batch, steps, by_step, look, patience, network.seed_)


def _train(network: Any, objective: NetworkObjective, data: TrainingData, units: Units, run: Any, tell: Any) -> Trained:
    """Training from the first weights that look best after a share of the steps, where several are drawn."""
    data, held_out = _split(network, data)
    schedule = _schedule(network, len(data.x))
    deadline = _deadline(run)
    finish = _finish(network, objective, data, held_out, deadline)
    few = len(data.x) <= schedule.batch or (finish is not None and finish.cheap)
    tries = check_count("n_init", network.n_init, optional=True) or (TRIES if few else 1)
    tries = tries if network.earlier is None else 1
    best, trials = 0, []
    if tries > 1:
        short = replace(schedule, steps=max(int(TRIED * schedule.steps), 1), look=schedule.steps)
        begun = [
            _training(network, objective, short, data, units, attempt, deadline=deadline) for attempt in range(tries)
        ]
        trials = [trial.run() for trial in begun]
        best = int(np.argmin([_reached(trial, objective, data) for trial in trials]))
    training = _training(
        network, objective, schedule, data, units, best,
        deadline=deadline, held_out=held_out, report=_report(network, schedule, tell),
        checkpoint=_checkpoint(network, objective, schedule, data, best),
    )  # fmt: skip
    trained = training.run()
    if finish is None or trained.stopped != Ending.FINISHED:
        return trained
    others = [trial for number, trial in enumerate(trials) if number != best]
    return _finished(finish, [trained, *others], deadline, firsts=bool(others) or network.earlier is not None)


def _training(
    network: Any, objective: NetworkObjective, schedule: TrainingSchedule, data: TrainingData, units: Units,
    attempt: int, **options: Any,
) -> NetworkTraining:  # fmt: skip
    if network.earlier is None:
        head = objective.head(np.random.default_rng([schedule.seed, attempt, 1])) | units
        weights = network.first_weights(attempt) | head
    else:
        weights = network.weights_ | _in_units(network.earlier, units)
    names, rule = network.frozen_names(), OptimiserRule(network.optimiser)
    return NetworkTraining(
        objective, rule, schedule, data, weights, network.state_, frozen=names, masks=network.masks, **options
    )


def _reached(trained: Trained, objective: NetworkObjective, data: TrainingData) -> float:
    """The objective, as predicted, on all rows."""
    total = float(objective.penalties(trained.weights)) + loss_sum(objective, trained.weights, trained.state, data)
    return total if np.isfinite(total) else np.inf


def _report(network: Any, schedule: TrainingSchedule, tell: Any = None) -> Any:
    """Tells the user, if asked, how far the training is and how long it will take; and callbacks, which may stop it."""
    rounds = -(-schedule.steps // schedule.look)

    def report(step: int, entry: dict[str, Any], trained: Trained) -> bool:
        if network.verbose:
            left = entry["seconds"] / step * (schedule.steps - step)
            held_out = f", held out {entry['validation_objective']:.6g}" if "validation_objective" in entry else ""
            print(f"step {step} of {schedule.steps}: objective {entry['objective']:.6g}{held_out}, {left:.0f} s left")
        return tell is not None and tell(rounds, trained)

    return report


def _tell(network: Any, rows: NDArray, problems: list[Problem], learning: Any, rounds: int, trained: Trained) -> bool:
    """Show callbacks the machine as it stands in the training."""

    def state() -> tuple[Any, list[Problem], list[Point]]:
        now = copy(network)
        now.weights_, now.state_ = _without_head(trained), trained.state
        on_phi = _on(through(now.plan(), now.weights_, now.state_, now.shaped(rows)), problems)
        return now, on_phi, _heads(trained, on_phi)

    return learning(rounds, state)


def _without_head(trained: Trained) -> dict[str, NDArray]:
    return {name: value for name, value in trained.weights.items() if name not in FIXED | {HEAD, BIAS}}


def _split(network: Any, data: TrainingData) -> tuple[TrainingData, TrainingData | None]:
    share = check_number("validation_fraction", network.validation_fraction, 0, 0.9)
    count = round(share * len(data.x))
    if count == 0 or count == len(data.x):
        return data, None
    order = np.random.default_rng([network.seed_, 2]).permutation(len(data.x))
    return data.take(np.sort(order[count:])), data.take(np.sort(order[:count]))


def _deadline(run: Any) -> Deadline:
    """When to stop training: all the time but that for the head is used, or the user asks for it."""
    left = run.deadline.left()
    return Deadline(None if left is None else (1 - FOR_THE_HEAD) * left)


def _checkpoint(
    network: Any, objective: NetworkObjective, schedule: TrainingSchedule, data: TrainingData, attempt: int
) -> Checkpoint | None:
    if network.checkpoint is None:
        return None
    identity = hashlib.blake2b(digest_size=16)
    told = (objective.key[1:], objective.plan.key, schedule.batch, schedule.look, schedule.patience, schedule.seed,
            attempt, frozen(network.get_params()["optimiser"]), sorted(network.frozen_names()))  # fmt: skip
    identity.update(repr(told).encode() + schedule.rates.tobytes())
    if network.earlier is not None:
        for _, value in sorted((network.weights_ | network.earlier).items()):
            identity.update(value.tobytes())
    for array in data.arrays:
        identity.update(array.tobytes())
    return Checkpoint(network.checkpoint, identity.hexdigest())


def _warn(trained: Trained) -> None:
    warn_of(
        trained.stopped,
        f"The training of the network was stopped ({trained.stopped}) after {trained.steps} steps, and the last good "
        "weights are kept",
    )


def _on(phi: NDArray, problems: list[Problem]) -> list[Problem]:
    """The problems on phi_W(X); those of the same rows share a design."""
    shared: dict[int, Any] = {}
    for problem in problems:
        if id(problem.design) not in shared:
            design = design_of(phi if problem.rows is None else phi[problem.rows])
            shared[id(problem.design)] = design.centred() if problem.intercept else design
    return [replace(problem, design=shared[id(problem.design)]) for problem in problems]


def _heads(trained: Trained, problems: list[Problem]) -> list[Point]:
    """The trained heads as points of the problems."""
    unit, begin = (trained.weights[name].astype(np.float64) for name in (UNIT, FROM))
    weight = unit * trained.weights[HEAD]
    bias = begin + unit * trained.weights.get(BIAS, np.zeros(len(unit)))
    points = []
    for problem, where in zip(problems, columns_of([problem.classes for problem in problems]), strict=True):
        w, b = np.ascontiguousarray(weight[:, where]), bias[where]
        w[_constant(problem)] = 0.0  # units that are the same for every row: their weight only costs
        if problem.classes:  # joint losses know differences of scores alone: what the classes have in common only costs
            w, b = w - w.mean(axis=1, keepdims=True), b - b.mean()
        shift = problem.design.shift
        b = b if shift is None else b + shift @ w
        points.append(Point(w, b if problem.classes else float(b)))
    return points


def _head(
    objective: NetworkObjective, units: Units, problems: list[Problem], points: list[Point]
) -> dict[str, NDArray]:
    """The head of the points, as training has it: the inverse of `_heads`."""
    weight, bias = np.zeros((objective.plan.width, len(units[UNIT]))), np.zeros(len(units[UNIT]))
    for problem, point, where in zip(problems, points, columns_of([p.classes for p in problems]), strict=True):
        weight[:, where], bias[where] = point.w, problem.constants(point)
    plain = {HEAD: weight, BIAS: bias, UNIT: np.ones(len(bias)), FROM: np.zeros(len(bias))}
    head = _in_units(plain, units)
    return head if objective.intercept else {name: value for name, value in head.items() if name != BIAS}


def _in_units(head: dict[str, NDArray], units: Units) -> dict[str, NDArray]:
    """A head in other units."""
    old, new = ({name: part[name].astype(np.float64) for name in (UNIT, FROM)} for part in (head, units))
    moved = {HEAD: old[UNIT] * head[HEAD] / new[UNIT]}
    if BIAS in head:
        moved[BIAS] = (old[FROM] + old[UNIT] * head[BIAS] - new[FROM]) / new[UNIT]
    return {name: value.astype(np.float32) for name, value in moved.items()} | units


def _with_gradient(network: Any, objective: NetworkObjective, data: TrainingData, fits: list[Any]) -> list[Any]:
    """The fits, whose certificates prove the head alone, with a note of the gradient in all weights."""
    whole = Finish(objective, data, network.state_, network.frozen_names() | FIXED, network.masks or {}, Deadline())
    if not whole.affordable:
        norms = network.history_["gradient_norm"][-1]
        note = f"the gradient in all weights had norm {np.linalg.norm(norms):.2g} over the last batch"
        return [_noted(fit, note) for fit in fits]
    end = whole.at(network.weights_ | network.head_)
    network.gradient_norm_ = end.gradient_norm
    note = f"the objective with the network is {end.objective:.10g}, its gradient in all weights has norm"
    return [_noted(fit, f"{note} {end.gradient_norm:.2g}") for fit in fits]


def _noted(fit: Any, note: str) -> Any:
    return replace(fit, certificate=replace(fit.certificate, reason=f"{fit.certificate.reason}; {note}"))


def _constant(problem: Problem) -> NDArray:
    """The columns of phi_W(X) in which no row differs from the first."""
    matrix = problem.design.columns(slice(None))
    return (matrix == matrix[:1]).all(axis=0)


def _not_worse(problem: Problem, fit: Any, start: Point) -> Any:
    """The fit, or the trained head with its own certificate where the solver was stopped before it was as good."""
    if problem.primal(start) >= fit.certificate.primal:
        return fit
    found = verify(problem, start)
    kept = {name: getattr(fit.certificate, name) for name in ("status", "solver", "reason", "iterations", "seconds")}
    return replace(fit, point=start, certificate=replace(found, converged=False, **kept))
