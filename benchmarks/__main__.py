"""Run every family, or those named: each is a module of this package with a function ``run()``."""

import importlib
import pkgutil
import sys

import benchmarks

SHARED = {"__main__", "problems", "rivals", "timing"}


def families() -> list[str]:
    return sorted(module.name for module in pkgutil.iter_modules(benchmarks.__path__) if module.name not in SHARED)


def main(wanted: list[str]) -> int:
    unknown = sorted(set(wanted) - set(families()))
    if unknown:
        print(f"No family {', '.join(unknown)}; there are: {', '.join(families())}.")
        return 1
    for family in wanted or families():
        print(f"\n{family}")
        importlib.import_module(f"benchmarks.{family}").run()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
