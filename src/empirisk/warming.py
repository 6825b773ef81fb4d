"""Compiling ahead: the loops of common machines, once on a computer, so that no first fit waits for them."""

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import empirisk as er
from empirisk.errors import EmpiriskError, did_you_mean
from empirisk.settings import settings

#: The machines by their names, those that take longest to compile first.
COMMON: dict[str, Callable[[], Any]] = {
    "forest": lambda: er.ForestClassifier(n_estimators=10),
    "boosting": lambda: er.BoostingClassifier(n_estimators=10),
    "Gaussian SVM": lambda: er.SVM(features=er.kernels.Gaussian(2.0)),
    "mixture": lambda: er.GaussianMixture(3),
    "tree": lambda: er.TreeClassifier(),
    "regression forest": lambda: er.ForestRegressor(n_estimators=10),
    "regression boosting": lambda: er.BoostingRegressor(n_estimators=10),
    "k-means": lambda: er.KMeans(),
    "regression tree": lambda: er.TreeRegressor(),
    "nearest neighbours": lambda: er.KNNClassifier(),
    "Gaussian SVR": lambda: er.SVR(features=er.kernels.Gaussian(2.0)),
    "one-class SVM": lambda: er.OneClassSVM(),
    "l1 logistic": lambda: er.LogisticRegression(penalty="l1"),
    "softmax": lambda: er.LogisticRegression(multiclass="joint"),
    "kernel logistic": lambda: er.LogisticRegression(features=er.kernels.Gaussian(2.0)),
    "kernel ridge": lambda: er.Ridge(features=er.kernels.Gaussian(2.0)),
    "AdaBoost": lambda: er.AdaBoostClassifier(n_estimators=10),
    "lasso": lambda: er.Lasso(),
    "least absolute": lambda: er.LeastAbsolute(),
    "linear SVM": lambda: er.SVM(),
    "logistic": lambda: er.LogisticRegression(),
    "ridge": lambda: er.Ridge(),
    "hierarchical": lambda: er.Hierarchical(),
    "PCA": lambda: er.PCA(),
}
#: Rows and columns that machines are fitted to.
SHAPE = 500, 10
#: Methods whose loops are compiled beside those of `fit`.
ANSWERS = ("predict", "predict_proba", "transform")


def warm(machines: Sequence[str] | None = None, *, tell: Callable[[str], None] = lambda name: None) -> Path | None:
    """Compile the loops of common machines, by as many processes as there are threads; later fits load them.

    Numba compiles a loop for the processor of this machine when it is first used, and keeps it in files. Nothing has
    to be called: this is for those who would rather wait now, as when an image is built.

    Parameters
    ----------
    machines : list of str, optional
        Names in `COMMON`; all of them if not given.
    tell : callable
        Is called with the name of each machine that is done.

    Returns
    -------
    pathlib.Path or None
        The folder under which compiled loops are kept; None where nothing can be written.

    Examples
    --------
    >>> er.warm([]) == er.warm([])
    True
    """
    names = list(COMMON) if machines is None else list(machines)
    for name in names:
        if name not in COMMON:
            raise EmpiriskError(f"machines: {did_you_mean(name, COMMON, f'{name!r} is none of {list(COMMON)}.')}")
    count = min(len(names), settings().threads)
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    # One pipe for all: each name is a line, and so short that it is written at once.
    reading, writing = os.pipe()
    command = [sys.executable, "-P", "-W", "ignore", "-c", f"from {__name__} import main; main()"]
    processes = [
        subprocess.Popen([*command, *names[place::count]], stdin=subprocess.DEVNULL, stdout=writing, env=environment)
        for place in range(count)
    ]
    os.close(writing)
    try:
        with open(reading, encoding="utf-8") as lines:
            for line in lines:
                tell(line.strip())
    except BaseException:  # Ctrl-C
        for process in processes:
            process.terminate()
        raise
    if any(process.wait() for process in processes):
        raise EmpiriskError("Compiling ahead was not finished; see what a process has said above.")
    return compiled_folder()


def main() -> None:
    """What a process does: fit the machines that it is given the names of, and say when each is done."""
    import numpy as np

    X = np.random.default_rng(0).normal(size=SHAPE)
    y = (X[:, 0] + X[:, 1] ** 2 > 1).astype(int)
    for name in sys.argv[1:]:
        machine = COMMON[name]().fit(X, y)
        for answer in ANSWERS:
            if hasattr(machine, answer):
                getattr(machine, answer)(X)
        print(name, flush=True)


def compiled_folder() -> Path | None:
    """The folder under which Numba keeps compiled loops: that of the library, of the user, or NUMBA_CACHE_DIR."""
    from empirisk.linalg.coupled import curve_rows  # any loop

    place = curve_rows.stats.cache_path
    if place is None:
        return None
    folder = Path(place).parent  # each file of code has a folder of its own there
    return folder.parent if Path(place).name == "__pycache__" else folder
