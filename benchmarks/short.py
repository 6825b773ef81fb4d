"""The table of the README, as Markdown: a few problems that take minutes together: ``python -m benchmarks short``."""

from benchmarks import kernels, linear, problems, sparse_linear
from benchmarks.timing import OURS, Comparison


def run() -> None:
    labels = problems.dense_labels(20_000)
    found = {
        "logistic regression, 20 000 x 100": linear.logistic(labels, 1.0),
        "linear SVM, 20 000 x 100": linear.hinge(labels, 0.01),
        "lasso, 500 x 5 000": sparse_linear.lasso(problems.wide_regression(500, 5_000), 10.0),
        "ridge, best of 50 C by leave-one-out": linear.ridge(problems.tall_regression(10_000, 100)),
        "least absolute deviations, 5 000 x 20": linear.least_absolute(problems.heavy_tailed_regression(5_000)),
        "Gaussian SVM, 4 000 x 30": kernels.classifier(kernels.curved_labels(4_000, 30), 1.0, 1 / 30),
    }
    print("\n| problem | fastest other | its time, ours = 1 |\n|---|---|---|")
    for problem, comparison in found.items():
        print(f"| {problem} | {_fastest(comparison)} | {comparison.ratio:.1f} |")


def _fastest(comparison: Comparison) -> str:
    """The fastest rival, and whether it stopped before it was as good."""
    worse = any(not flag.startswith(OURS) for flag in comparison.flags)
    name = min(comparison.rivals, key=lambda rival: comparison.rivals[rival].median)
    return f"{name} (objective worse)" if worse else name
