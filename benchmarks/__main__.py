"""Run every family, or those named: each is a module of this package with a function ``run()``.

Options after the name of one, such as ``judging --rank DIR``, are its own.
"""

import importlib
import pkgutil
import sys
from itertools import dropwhile

import benchmarks

SHARED = {"__main__", "judged", "problems", "rivals", "tables", "timing"}


def families() -> list[str]:
    return sorted(module.name for module in pkgutil.iter_modules(benchmarks.__path__) if module.name not in SHARED)


def main(words: list[str]) -> int:
    options = list(dropwhile(lambda word: not word.startswith("-"), words))
    wanted = words[: len(words) - len(options)]
    unknown = sorted(set(wanted) - set(families()))
    if unknown:
        print(f"No family {', '.join(unknown)}; there are: {', '.join(families())}.")
        return 1
    for family in wanted or families():
        print(f"\n{family}")
        importlib.import_module(f"benchmarks.{family}").run(*[options] * bool(options))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
