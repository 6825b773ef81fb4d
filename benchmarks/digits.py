"""Networks on handwritten digits, each within ten minutes on two cores: test error, and seconds.

``python -m benchmarks.digits`` trains every row of `CHOSEN` from three seeds and tests it once.
``python -m benchmarks.digits choose`` trains the settings of `OFFERED` on five sixths of the training rows, and judges
them by the last sixth: this is how those of `CHOSEN` were found. Words after it name rows, numbers seeds.
"""

import sys
import time
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

import empirisk as er
from benchmarks.problems import DATA
from empirisk.nets import Scale, Shift

SEEDS = (0, 1, 2)  # the spread of three fits is seen
#: Rows, in order: the settings to choose from; C, then what `network` makes of the others.
OFFERED: dict[str, list[dict[str, Any]]] = {
    "mnist mlp": [
        {"C": C, "widths": [512, 256], "epochs": 30, "dropout": dropout, "pixels": pixels}
        for C, dropout, pixels in ((1.0, 0.2, 0), (0.3, 0.3, 0), (0.3, 0.2, 1), (1.0, 0.0, 1))
    ],
    "mnist cnn": [
        {"C": C, "filters": (16, 32), "widths": [128], "epochs": epochs, "dropout": dropout, "pixels": pixels}
        for C, epochs, dropout, pixels in (
            (1.0, 20, 0.3, 2),
            (0.3, 20, 0.3, 2),
            (0.3, 20, 0.5, 1),
            (0.1, 20, 0.3, 2),
            (0.3, 35, 0.5, 1),
            (0.3, 35, 0.5, 2),
            (0.1, 35, 0.3, 1),
        )
    ],
    "usps cnn": [
        {"C": C, "filters": (16, 32), "widths": [128], "epochs": epochs, "dropout": 0.5, "pixels": 1, "change": change}
        for C, epochs, change in ((0.3, 60, 0.1), (1.0, 60, 0.1), (1.0, 60, 0.0), (0.1, 60, 0.1))
    ],
}
CHOSEN = {name: OFFERED[name][place] for name, place in (("mnist mlp", 2), ("mnist cnn", 4), ("usps cnn", 1))}


def network(
    shape: tuple[int, ...],
    widths: list[int],
    epochs: int,
    dropout: float,
    pixels: int,
    filters: tuple[int, ...] = (),
    change: float = 0.0,
    seed: int = 0,
) -> er.Network:
    """Convolutions, if any, then dense layers; images move by some pixels, and change their size."""
    augment = [Shift(pixels)] * (pixels > 0) + [Scale(change)] * (change > 0)
    rest: dict[str, Any] = {"epochs": epochs, "dropout": dropout, "augment": augment, "random_state": seed}
    return er.Network.convolutional(filters, dense=widths, shape=shape, **rest)


def digits(name: str) -> tuple[NDArray, NDArray, NDArray, NDArray]:
    """Training rows and test rows, grey from 0 to 1."""
    with np.load(DATA / name / f"{name}.npz") as file:
        X, y, Z, z = (file[part] for part in ("X_train", "y_train", "X_test", "y_test"))
    low, high = float(X.min()), float(X.max())
    X, Z = (((part.reshape(len(part), -1) - low) / (high - low)).astype(np.float32) for part in (X, Z))
    return X, y, Z, z


def row(name: str, seed: int, settings: dict[str, Any], held_out: bool) -> None:
    """Train once and print the error on the test rows, or on the last sixth of the training rows."""
    X, y, Z, z = digits(name.split()[0])
    if held_out:
        cut = len(y) * 5 // 6
        X, y, Z, z = X[:cut], y[:cut], X[cut:], y[cut:]
    side = round(X.shape[1] ** 0.5)
    rest = {word: value for word, value in settings.items() if word != "C"}
    begin = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        phi = network((side, side, 1), seed=seed, **rest)
        machine = er.LogisticRegression(C=settings["C"], features=phi, max_time=600.0).fit(X, y)
    seconds = time.perf_counter() - begin
    trained = machine.features_.history_["seconds"][-1]
    judged = "held-out" if held_out else "test"
    print(
        f"{name:<10} seed {seed} | {judged} error {100 * (1 - machine.score(Z, z)):.2f} % | {seconds:.0f} s, training "
        f"{trained:.0f} s | {machine.features_.stopped_}, head {machine.stopped_} | {settings}",
        flush=True,
    )


def run(words: tuple[str, ...] = ()) -> None:
    seeds = [int(word) for word in words if word.isdigit()] or list(SEEDS)
    names = [name for name in CHOSEN if not set(CHOSEN) & set(words) or name in words]
    for name in names:
        if not (DATA / name.split()[0]).is_dir():
            print(f"{name}: no data, left out")
            continue
        for settings in OFFERED[name] if "choose" in words else [CHOSEN[name]]:
            for seed in seeds[:1] if "choose" in words else seeds:
                row(name, seed, settings, "choose" in words)


if __name__ == "__main__":
    run(tuple(sys.argv[1:]))
