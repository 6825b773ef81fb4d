"""scikit-learn's callbacks: a progress bar on every machine."""

import contextlib
import io

from sklearn.base import is_regressor
from sklearn.callback import ProgressBar

import empirisk as er
from clients._rows import T, X, Y

#: Parts of machines, which learn with the machine around them, and what needs a function of the user's.
NO_MACHINES = {"Constraint", "Fit", "LearnedKernel", "Network", "Parametric"}
public = {name: getattr(er, name) for name in er.__all__ if name not in NO_MACHINES}
machines = [kind for kind in public.values() if isinstance(kind, type) and hasattr(kind, "fit")]
with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
    for kind in machines:
        machine = kind().set_callbacks(ProgressBar())
        assert machine.fit(X, T if is_regressor(machine) else Y) is machine
assert len(machines) >= 38
print(f"{len(machines)} machines")
