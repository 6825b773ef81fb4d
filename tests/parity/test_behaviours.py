"""Behavioural tests of scikit-learn's suite, carried over in our own words; what is meant to differ is in the docs."""

import warnings
from importlib import import_module

from tests.parity.cases import CASES

#: The files of behaviours, by what they are about.
FILES = ("linear", "vectors", "trees", "ensembles", "unsupervised")


def test_behaviours_of_scikit_learn_hold():
    """At least three hundred, each by its sentence and parameter; all that fail are named."""
    for name in FILES:
        import_module(f"tests.parity.{name}")
    assert len(CASES) >= 300
    assert len({case.words for case in CASES}) >= 100
    wrong = []
    for case in CASES:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", category=FutureWarning)  # scikit-learn's own
                case.run()
        except Exception as error:  # noqa: BLE001 - every kind of failure is one line of the list
            wrong.append(f"{case.words} [{case.parameter}]: {type(error).__name__} {str(error).strip()[:200]}")
    assert not wrong, "\n" + "\n".join(wrong)
