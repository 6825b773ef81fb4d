"""The controls of the page: what can be set of each family of machines, and how that is written in Python."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from empirisk.errors import LETTERS, EmpiriskError, listed
from empirisk.studio.playground.expressions import kernel_text
from empirisk.studio.playground.points import MOST_POINTS

#: Decades of C that the slider covers.
LOG_C = (-3.0, 4.0)
MOST_LAYERS, WIDEST = 4, 64  # of a network that is drawn in the time of a thought
SHOWN_EPOCHS = 40  # steps of its film
SEED = 0  # of everything drawn at random: the same controls give the same picture


@dataclass(frozen=True)
class Control:
    """One control.

    Attributes
    ----------
    name, label, hint : str
        In the address, on the page, and what it does.
    kind : str
        "choice", "log" (the slider moves the power of ten), "whole", "text" or "layers".
    start : Any
        Its first value.
    choices : tuple of str
        Of a choice.
    low, high : float
        Limits of a number; of a "log" control powers of ten.
    when : dict
        The control is shown where others have one of these values.
    """

    name: str
    label: str
    kind: str
    start: Any
    choices: tuple[str, ...] = ()
    low: float = 0.0
    high: float = 0.0
    when: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    hint: str = ""

    def checked(self, value: Any) -> Any:
        """The value, or a sentence that says what is wrong with it."""
        return CHECKS[self.kind](self, value)


def _choice(control: Control, value: Any) -> str:
    if value not in control.choices:
        raise EmpiriskError(f"{control.name}={str(value)[:LETTERS]!r} must be one of {listed(control.choices)}.")
    return value


def _log(control: Control, value: Any) -> float:
    low, high = 10**control.low, 10**control.high
    # The ends of the slider are powers that rounding may place just outside.
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0.999 * low <= value <= 1.001 * high:
        raise EmpiriskError(f"{control.name}={str(value)[:LETTERS]} must be a number from {low:g} to {high:g}.")
    return float(f"{value:.4g}")


def _whole(control: Control, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not control.low <= value <= control.high:
        raise EmpiriskError(
            f"{control.name}={str(value)[:LETTERS]} must be a whole number from {control.low:g} to {control.high:g}."
        )
    return value


def _text(control: Control, value: Any) -> str:
    if not isinstance(value, str):
        raise EmpiriskError(f"{control.name}={str(value)[:LETTERS]!r} must be text.")
    return value


def _layers(control: Control, value: Any) -> str:
    """Widths of layers, written like "16, 16"."""
    parts = [part.strip() for part in str(value).split(",") if part.strip()]
    if not 1 <= len(parts) <= MOST_LAYERS or not all(part.isdigit() and 1 <= int(part) <= WIDEST for part in parts):
        raise EmpiriskError(
            f"{control.name}={str(value)[:LETTERS]!r} must be 1 to {MOST_LAYERS} widths up to {WIDEST}, like 16, 16."
        )
    return ", ".join(parts)


CHECKS: dict[str, Callable[[Control, Any], Any]] = {
    "choice": _choice,
    "log": _log,
    "whole": _whole,
    "text": _text,
    "layers": _layers,
}


@dataclass(frozen=True)
class Family:
    """A family of machines.

    Attributes
    ----------
    name, title : str
        In the address and on the page.
    tasks : tuple of str
        "classes", "numbers" or "clusters".
    controls : tuple of Control
        What can be set.
    write : callable
        The machine as a Python expression, from the task and the values of the controls.
    formula : str
        What it does, as it stands above the plane; the page writes the equation itself.
    play : str
        How its steps are recorded: a name in `steps.RECORDERS`, or empty where there are none.
    """

    name: str
    title: str
    tasks: tuple[str, ...]
    controls: tuple[Control, ...]
    write: Callable[[str, Mapping[str, Any]], str]
    formula: str
    play: str = ""

    def expression(self, task: str, settings: Mapping[str, Any]) -> str:
        """The machine in Python, after every value was checked; what is not given is as it starts."""
        known = {control.name: control for control in self.controls}
        unknown = [name for name in settings if name not in known]
        if unknown:
            raise EmpiriskError(
                f"{unknown[0][:LETTERS]!r} is no control of {self.title}; it has {listed(list(known))}."
            )
        values = {name: control.checked(settings.get(name, control.start)) for name, control in known.items()}
        return self.write(task, values)

    def to_dict(self) -> dict[str, Any]:
        """What the page is told of it."""
        return {
            "name": self.name,
            "title": self.title,
            "tasks": self.tasks,
            "controls": [asdict(control) for control in self.controls],
            "formula": self.formula,
            "play": bool(self.play),
        }


def _features(values: Mapping[str, Any]) -> str:
    """The slot ``features=``, with the comma before it; nothing for a linear machine."""
    written = {
        "linear": lambda: "",
        "polynomial": lambda: f"er.maps.Polynomial({values['degree']})",
        "kernel": lambda: kernel_text(values["kernel"]),
        "network": lambda: (
            f"er.Network([{values['layers']}], {values['activation']!r}, decay={values['decay']:g}, "
            f"learning_rate_init=0.01, batch_size={MOST_POINTS}, epochs={values['epochs']}, "
            f"look_every={max(values['epochs'] // SHOWN_EPOCHS, 1)}, n_init=1, random_state={SEED})"
        ),
    }[values["features"]]()
    return f", features={written}" if written else ""


def _equation(task: str, values: Mapping[str, Any]) -> str:
    machine = "er.Classifier" if task == "classes" else "er.Regressor"
    loss = values["loss"] if task == "classes" else values["number_loss"]
    solver = "" if values["solver"] == "auto" else f', solver="{values["solver"]}"'
    solver = SMALL_STEPS.get(values["solver"], solver)
    limit = ", max_iter=300" if values["solver"] in MANY_STEPS else ""
    return (
        f'{machine}(loss="{loss}", penalty="{values["penalty"]}", C={values["C"]:g}{_features(values)}{solver}{limit})'
    )


def _of_task(name: str, task: str) -> str:
    return f"er.{name}{'Classifier' if task == 'classes' else 'Regressor'}"


ON_KERNEL, ON_NETWORK = {"features": ("kernel",)}, {"features": ("network",)}
FEATURES = (
    Control(
        "features",
        "Features φ",
        "choice",
        "linear",
        ("linear", "polynomial", "kernel", "network"),
        hint="One slot turns a linear machine into a kernel machine or a deep one.",
    ),
    Control("degree", "Degree", "whole", 3, low=1, high=8, when={"features": ("polynomial",)}),
    Control(
        "kernel",
        "Kernel",
        "text",
        "Gaussian(0.7)",
        when=ON_KERNEL,
        hint="Gaussian(width), Laplacian(width), Polynomial(degree), Linear(); add and multiply them.",
    ),
    Control("layers", "Layers", "layers", "16, 16", when=ON_NETWORK, hint="Widths of the hidden layers."),
    Control("activation", "Activation", "choice", "tanh", ("tanh", "relu", "gelu", "sigmoid"), when=ON_NETWORK),
    Control("decay", "Weight decay", "log", 0.01, low=-4, high=1, when=ON_NETWORK),
    Control("epochs", "Epochs", "whole", 200, low=10, high=600, when=ON_NETWORK),
)
SOLVERS = (
    "auto",
    "newton",
    "gradient_descent",
    "coordinate_descent",
    "dual_ascent",
    "decomposition",
    "proximal",
    "sgd",
    "closed_form",
)
#: Solvers that take many rows in a step, told to take few: a pass over the rows, or the two pairs that violate most.
SMALL_STEPS = {
    "dual_ascent": ", solver=er.solvers.DualAscent(passes=1)",
    "decomposition": ", solver=er.solvers.Decomposition(size=4)",
}
MANY_STEPS = ("gradient_descent", "sgd", "proximal", "decomposition")
EQUATION = (
    Control(
        "loss",
        "Loss",
        "choice",
        "hinge",
        ("hinge", "squared_hinge", "soft_hinge", "logistic", "exponential", "squared"),
        when={"task": ("classes",)},
    ),
    Control(
        "number_loss",
        "Loss",
        "choice",
        "squared",
        ("squared", "absolute", "huber", "epsilon_insensitive", "quantile"),
        when={"task": ("numbers",)},
    ),
    Control("penalty", "Penalty R", "choice", "l2", ("l2", "l1", "elastic_net", "none")),
    Control("C", "C", "log", 1.0, low=LOG_C[0], high=LOG_C[1], hint="How much the losses count against the penalty."),
    *FEATURES,
    Control("solver", "Solver", "choice", "auto", SOLVERS, hint="Who walks to the minimum; press play to watch."),
)
DEPTH = Control("depth", "Depth", "whole", 4, low=1, high=12)
TREES = Control("trees", "Trees", "whole", 50, low=1, high=200)
COUNT = Control("count", "Clusters", "whole", 3, low=1, high=8)

#: The families in the order of the page.
FAMILIES = {
    family.name: family
    for family in (
        Family("equation", "The equation", ("classes", "numbers"), EQUATION, _equation, "", "solver"),
        Family(
            "perceptron",
            "Perceptron",
            ("classes",),
            (replace(FEATURES[0], choices=("linear", "polynomial", "kernel")), *FEATURES[1:3]),
            lambda task, v: f"er.Perceptron(max_iter=60{_features(v)})",
            "w ← w + yᵢ φ(xᵢ) at every mistake",
            "solver",
        ),
        Family(
            "tree",
            "Tree",
            ("classes", "numbers"),
            (DEPTH,),
            lambda task, v: f"{_of_task('Tree', task)}(max_depth={v['depth']}, random_state={SEED})",
            "split where the targets part best, and each part again",
            "depth",
        ),
        Family(
            "forest",
            "Forest",
            ("classes", "numbers"),
            (TREES, DEPTH),
            lambda task, v: f"{_of_task('Forest', task)}({v['trees']}, max_depth={v['depth']}, random_state={SEED})",
            "the mean of trees, each on rows drawn anew",
            "trees",
        ),
        Family(
            "boosting",
            "Boosting",
            ("classes", "numbers"),
            (
                TREES,
                Control("rate", "Learning rate", "log", 0.1, low=-2, high=0),
                Control("depth", "Depth", "whole", 3, low=1, high=8),
            ),
            lambda task, v: (
                f"{_of_task('Boosting', task)}(n_estimators={v['trees']}, learning_rate={v['rate']:g}, "
                f"max_depth={v['depth']}, min_samples_leaf=1, random_state={SEED})"
            ),
            "f ← f + rate · tree(negative gradient)",
            "boosting",
        ),
        Family(
            "neighbours",
            "Neighbours",
            ("classes", "numbers"),
            (Control("k", "Neighbours", "whole", 5, low=1, high=40),),
            lambda task, v: f"{_of_task('KNN', task)}({v['k']})",
            "the mean of the nearest points",
        ),
        Family(
            "kmeans",
            "k-means",
            ("clusters",),
            (COUNT,),
            lambda task, v: f"er.KMeans({v['count']}, random_state={SEED})",
            "minimise Σᵢ minₖ d(xᵢ, μₖ)²",
            "half_steps",
        ),
        Family(
            "mixture",
            "Mixture of Gaussians",
            ("clusters",),
            (
                COUNT,
                Control("covariance", "Covariances", "choice", "full", ("full", "tied", "diagonal", "spherical")),
            ),
            lambda task, v: (
                f"er.GaussianMixture({v['count']}, covariance_type={v['covariance']!r}, random_state={SEED})"
            ),
            "maximise Σᵢ log Σₖ πₖ N(xᵢ | μₖ, Σₖ)",
            "rounds",
        ),
        Family(
            "hierarchical",
            "Hierarchical",
            ("clusters",),
            (
                COUNT,
                Control("linkage", "Linkage", "choice", "average", ("single", "average", "complete", "ward")),
            ),
            lambda task, v: f"er.Hierarchical({v['linkage']!r}, n_clusters={v['count']})",
            "merge the two nearest clusters, again and again",
            "merges",
        ),
    )
}
