"""Losses and penalties as parts: names, parameters, copies, and errors that say what to do."""

import inspect
import pickle

import numpy as np
import pytest
from sklearn.base import clone

from empirisk import losses, parts, penalties
from empirisk.errors import EmpiriskError
from empirisk.losses import EpsilonInsensitive, Huber, Power, Quantile, SoftHinge, SquaredAbsolute, Tweedie
from empirisk.penalties import ElasticNet
from tests.catalog import DEVIANCES, JOINT_LOSSES, LOSSES, MARGIN_LOSSES, PENALTIES, RESIDUAL_LOSSES

PARTS = LOSSES + PENALTIES


def public_parts(module, base):
    """The classes of parts that a module exports, less their common base."""
    values = (getattr(module, name) for name in module.__all__)
    return {value for value in values if inspect.isclass(value) and issubclass(value, base) and value is not base}


@pytest.mark.row("E2")
def test_every_public_loss_is_in_the_catalogue():
    assert public_parts(losses, losses.Loss) == {type(loss) for loss in LOSSES}
    assert LOSSES == MARGIN_LOSSES + RESIDUAL_LOSSES + DEVIANCES + JOINT_LOSSES


@pytest.mark.row("E3")
def test_every_public_penalty_is_in_the_catalogue():
    assert public_parts(penalties, penalties.Penalty) == {type(penalty) for penalty in PENALTIES}


@pytest.mark.row("E2")
def test_names_of_losses():
    assert {loss.name() for loss in LOSSES} == set(losses.NAMES)
    for loss in LOSSES:
        assert type(losses.find(loss.name())) is type(loss)
        assert losses.find(loss) is loss


@pytest.mark.row("E3")
def test_names_of_penalties():
    assert {penalty.name() for penalty in PENALTIES} == set(penalties.NAMES)
    for penalty in PENALTIES:
        assert type(penalties.find(penalty.name())) is type(penalty)
        assert penalties.find(penalty) is penalty


@pytest.mark.parametrize("module", [losses, penalties], ids=lambda module: module.__name__)
def test_misspelt_names_and_wrong_types_get_one_sentence(module):
    name = "hinge" if module is losses else "elastic_net"
    slot = "loss" if module is losses else "penalty"
    with pytest.raises(EmpiriskError, match=f"^{slot}='{name}s' is not known; did you mean '{name}'\\?$"):
        module.find(f"{name}s")
    with pytest.raises(EmpiriskError, match=rf"^{slot}='xyz' is not known; choose one of \[.*'{name}'.*\]\.$"):
        module.find("xyz")
    assert isinstance(penalties.find(None), penalties.NoPenalty)
    for wrong in (3, {}, module.NAMES[name], [name]):
        with pytest.raises(EmpiriskError, match=rf"(?s)^{slot}=.*choose one of .*'{name}'.*\.$"):
            module.find(wrong)


@pytest.mark.parametrize("part", PARTS, ids=repr)
def test_copies_keep_the_parameters(part):
    copies = [clone(part), pickle.loads(pickle.dumps(part)), type(part)(**part.get_params())]
    copies.append(eval(repr(part), {**vars(losses), **vars(penalties)}))
    copies.append(type(part)().set_params(**part.get_params()))
    for copy in copies:
        assert type(copy) is type(part)
        assert copy is not part
        assert copy.get_params() == part.get_params()
        assert repr(copy) == repr(part)


@pytest.mark.parametrize("part", PARTS, ids=repr)
def test_parameters_are_stored_untouched(part):
    names = list(inspect.signature(type(part)).parameters)
    assert sorted(part.get_params()) == sorted(names)
    for name in names:
        marker = object()
        assert part.__class__(**{name: marker}).get_params()[name] is marker
    with pytest.raises(ValueError, match="has no parameter 'nonsense'"):
        clone(part).set_params(nonsense=1.0)


def test_changed_parameters_take_effect():
    loss, zero = EpsilonInsensitive(0.5), np.zeros(1)
    assert loss.value(zero, np.ones(1))[0] == 0.5
    assert loss.set_params(epsilon=0.25).value(zero, np.ones(1))[0] == 0.75


BAD = [
    (EpsilonInsensitive, "epsilon", [-0.1, np.nan, np.inf, "wide", None, [0.1]]),
    (Power, "p", [0.99, -2, np.nan, np.inf, "two", None]),
    (SquaredAbsolute, "weight", [-1e-9, np.nan, np.inf, "heavy", None]),
    (Quantile, "level", [0, 1, 0.0, 1.0, -0.1, 1.1, np.nan, np.inf, "median", None]),
    (Tweedie, "power", [0, 0.99, 2.01, np.nan, np.inf, "one", None]),
    (Huber, "delta", [0, 0.0, -1.0, np.nan, np.inf, "small", None]),
    (SoftHinge, "temperature", [0, 0.0, -1.0, np.nan, np.inf, "hot", None]),
    (SoftHinge, "margin", [np.nan, np.inf, -np.inf, "wide", None]),
]
BAD_LOSSES = [cls(**{name: value}) for cls, name, values in BAD for value in values]


@pytest.mark.row("E2")
@pytest.mark.parametrize("loss", BAD_LOSSES, ids=repr)
@pytest.mark.parametrize("use", ["value", "derivative", "conjugate", "prox", "best_constant"])
def test_bad_parameters_of_losses_are_refused_when_used(loss, use):
    y, f = np.array([1.0, -1.0]), np.array([-0.5, -0.1])
    arguments = {"prox": (y, f, 1.0), "best_constant": (y, np.array([1.0, 2.0])), "conjugate": (y, y * -0.3)}
    (name,) = (name for name in loss.get_params() if getattr(loss, name) is not getattr(type(loss)(), name))
    with pytest.raises(EmpiriskError, match=rf"^{name}=.* must be .*; .*\.$") as caught:
        getattr(loss, use)(*arguments.get(use, (y, f)))
    assert repr(getattr(loss, name)) in str(caught.value)


@pytest.mark.row("E3")
@pytest.mark.parametrize("l1_ratio", [-0.1, 1.0001, np.nan, np.inf, "half", None])
def test_bad_ratios_are_refused_when_used(l1_ratio):
    penalty, w = ElasticNet(l1_ratio), np.ones(2)
    uses = [lambda: penalty.value(w), lambda: penalty.prox(w, 1.0), lambda: penalty.conjugate(w)]
    uses += [
        lambda: penalty.feasible_share(w),
        lambda: penalty.distance(w, w),
        lambda: penalty.critical_C(w),
        lambda: penalty.l2,
    ]
    for use in uses:
        with pytest.raises(EmpiriskError, match=r"^l1_ratio=.* of ElasticNet must be a number between 0 and 1; .*\.$"):
            use()


@pytest.mark.parametrize("number", [np.float32(0.5), np.int64(1), 1, np.float64(0.25)])
def test_numbers_of_any_real_type_are_accepted(number):
    y, f = np.zeros(1), np.full(1, 3.0)
    assert EpsilonInsensitive(number).value(y, f)[0] == 3 - float(number)
    assert SquaredAbsolute(number).value(y, f)[0] == 9 + 3 * float(number)
    assert np.isfinite(SoftHinge(number, number).value(y + 1, f)[0])
    assert ElasticNet(number).l1 + ElasticNet(number).l2 == 1


def test_a_float_is_known_as_a_number_without_a_search(monkeypatch):
    """Inner loops ask for parameters again and again; an abstract class takes ten times as long to answer."""

    class Asked(type):
        def __instancecheck__(cls, value):
            raise AssertionError("the abstract class was asked")

    monkeypatch.setattr(parts, "Real", Asked("Real", (), {}))
    assert SoftHinge(1.0, np.float64(0.5)).phi(np.zeros(1)) > 1
