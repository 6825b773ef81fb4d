"""One epoch of training after warm-up: a dense and a convolutional network against PyTorch and scikit-learn.

The same rows, batches of 128, Adam, softmax; PyTorch runs eagerly with its own threads. On an accelerator both use it.
"""

import warnings
from collections.abc import Callable
from dataclasses import replace
from importlib.util import find_spec
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPClassifier

import empirisk as er
from benchmarks.timing import OURS, compare
from empirisk.nets.objective import NetworkObjective
from empirisk.nets.optimisers import OptimiserRule
from empirisk.nets.plan import NetworkPlan
from empirisk.nets.training import NetworkTraining, TrainingData, TrainingSchedule

ROWS, BATCH = 20_000, 128  # an epoch of some seconds, in batches of the usual size
DENSE = [er.nets.Dense(256), er.nets.Dense(128)]
CONVOLUTIONAL = er.Network.convolutional((16, 32), dense=(128,)).layers


def run() -> None:
    random = np.random.default_rng(0)
    images = random.random((ROWS, 28, 28, 1)).astype(np.float32)
    y = random.integers(0, 10, ROWS)
    flat = images.reshape(ROWS, -1)
    dense = {OURS: ours(DENSE, flat, y), "scikit-learn": scikit(flat, y)}
    if find_spec("torch"):
        dense["torch"] = torch_epoch(flat, y, dense_layers)
    compare("MLP 784-256-128-10, one epoch", dense, repeats=3)
    if find_spec("torch"):
        convolutional = {OURS: ours(CONVOLUTIONAL, images, y), "torch": torch_epoch(images, y, convolutional_layers)}
        compare("CNN (16, 32), one epoch", convolutional, repeats=3)


def ours(layers: list[Any], X: np.ndarray, y: np.ndarray) -> Callable[[], None]:
    """One epoch per call; the first compiles."""
    plan = NetworkPlan(layers, X.shape[1:], "relu", False, 0.0)
    objective = NetworkObjective(plan, [(er.losses.Softmax(), 10)], er.penalties.L2(), 1.0, True)
    data = TrainingData(X, y[:, None].astype(np.float32), np.ones((len(y), 1), np.float32))
    steps = ROWS // BATCH
    course = TrainingSchedule(BATCH, steps, np.full(steps, 1e-3, np.float32), steps, 1, 0)
    random = np.random.default_rng(0)
    weights = plan.weights("auto", random) | objective.head(random)

    def epoch(course: TrainingSchedule = course) -> None:
        NetworkTraining(objective, OptimiserRule("adam"), course, data, weights, {}).run()

    begin = perf_counter()
    epoch(replace(course, steps=1))
    print(f"first step with compilation: {perf_counter() - begin:.2f} s")
    return epoch


def scikit(X: np.ndarray, y: np.ndarray) -> Callable[[], None]:
    machine = MLPClassifier((256, 128), batch_size=BATCH, max_iter=1, warm_start=True, random_state=0)

    def epoch() -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            machine.fit(X, y)

    return epoch


def dense_layers(torch: Any) -> Any:
    nn = torch.nn
    return nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 10))


def convolutional_layers(torch: Any) -> Any:
    nn = torch.nn
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(32 * 49, 128), nn.ReLU(), nn.Linear(128, 10),
    )  # fmt: skip


def torch_epoch(X: np.ndarray, y: np.ndarray, layers: Callable[[Any], Any]) -> Callable[[], None]:
    import jax
    import torch

    device = "cpu" if jax.default_backend() == "cpu" else "cuda"  # both on the same
    rows = np.moveaxis(X, -1, 1) if X.ndim == 4 else X
    inputs, classes = torch.from_numpy(np.ascontiguousarray(rows)).to(device), torch.from_numpy(y).to(device)
    model = layers(torch).to(device)
    optimiser = torch.optim.Adam(model.parameters(), 1e-3, weight_decay=1 / ROWS)
    loss = torch.nn.CrossEntropyLoss()

    def epoch() -> None:
        order = torch.randperm(ROWS, device=device)
        for start in range(0, ROWS - BATCH + 1, BATCH):
            chosen = order[start : start + BATCH]
            optimiser.zero_grad(set_to_none=True)
            loss(model(inputs[chosen]), classes[chosen]).backward()
            optimiser.step()
        if device == "cuda":
            torch.cuda.synchronize()

    return epoch
