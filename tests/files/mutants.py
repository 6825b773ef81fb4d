"""Model files with one thing changed in them, loaded and asked in a child process.

``run(names, count)`` builds the fitted models of `subjects`, changes one array, scalar or attribute of each file, loads
what came of it and asks it about rows: the answer is a sentence (`EmpiriskError`) or as many answers as rows, without
a signal, within a second and within the memory. Files with nothing along one of their lengths are asked too, all of
them. What fails is kept: ``finds/`` holds one line of JSON a find, which the suite tries first ever after. The full
corpus: ``python -m tests.files.mutants --all``.
"""

import argparse
import copy
import faulthandler
import hashlib
import io
import itertools
import json
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
import zipfile
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError

import empirisk as er
from empirisk.errors import EmpiriskError
from empirisk.files import arrays

FINDS = Path(__file__).parent / "finds"
SECONDS = 1.0  # of work that a mutant may cost; on a busy machine it is the processor's time that counts
MEMORY = 1 << 30  # bytes beyond those of the child before any mutant: ten times what any subject needs
MORE = ("score_samples", "apply", "predict_interval")  # what some models answer beside predictions
LONGEST = 60  # seconds after which a mutant is taken for one that never ends
NEW_OBJECTS = ({"object": ["losses.Hinge", 900_001, {}]}, {"object": ["SVM", 900_002, {}]})
SCALARS = (
    None,
    True,
    -1,
    0,
    1,
    2,
    3.5,
    -0.5,
    10**9,
    10**18,
    2**63,
    10**30,
    "x",
    "",
    [],
    {"float": "nan"},
    {"float": "inf"},
)
EXTREMES = {
    "f": (np.nan, np.inf, -np.inf, 1e308, -1e308, 5e-324, -1.0, 0.0, 2.0**32 - 1, 2.0**53, 0.5),
    "i": (-1, 0, 1, 2**31 - 1, -(2**31), 2**32 - 1, 2**63 - 1, -(2**63), 10**6),
    "u": (0, 1, 2**31, 2**32 - 1, 2**64 - 1),
    "b": (0, 1),
}
TYPES = ("<i8", "<i4", "<i2", "<u8", "|u1", "<f8", "<f4", "|b1", "<c16")

Members = dict[str, bytes]


class File:
    """A saved model as its tree and its members."""

    def __init__(self, model: Any):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "a.model"
            er.save(model, path)
            with zipfile.ZipFile(path) as archive:
                self.members = {name: archive.read(name) for name in archive.namelist()}
        self.manifest = json.loads(self.members.pop("manifest.json"))
        self.tree = json.loads(self.members.pop("tree.json"))

    def write(self, path: Path, tree: Any, changed: Members) -> None:
        """Write a file with this tree and the members that it uses, digests and all."""
        used = {
            f"arrays/{node['array'][0]}.npy" for _, node in places(tree) if isinstance(node, dict) and "array" in node
        }
        members = {name: data for name, data in {**self.members, **changed}.items() if name in used}
        members["tree.json"] = json.dumps(tree).encode()
        listed = {
            name: {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()} for name, data in members.items()
        }
        with zipfile.ZipFile(path, "w") as archive:
            for name, data in members.items():
                archive.writestr(name, data)
            archive.writestr("manifest.json", json.dumps({**self.manifest, "members": listed}))

    def array(self, content: list) -> np.ndarray:
        """The array that a place of the tree means."""
        number, kind, shape, fortran = content
        flat = np.frombuffer(self.members[f"arrays/{number}.npy"][len(arrays.header(kind, shape, fortran)) :], kind)
        return flat.reshape(shape[::-1]).T if fortran else flat.reshape(shape)


def places(node: Any, path: tuple = ()) -> Iterator[tuple[tuple, Any]]:
    """Every place of a tree below an object's state, with its path."""
    yield path, node
    items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, child in items:
        if not (isinstance(node, dict) and "array" in node):
            yield from places(child, (*path, key))


def at(tree: Any, path: tuple) -> Any:
    for key in path:
        tree = tree[key]
    return tree


def changed_arrays(array: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    """The array with another type, shape, length or entry."""
    for kind in TYPES:
        if np.dtype(kind) != array.dtype:
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                yield f"type {kind}", array.astype(kind)
    for axis in range(array.ndim):
        yield f"shorter {axis}", np.delete(array, -1, axis) if array.shape[axis] else array
        yield f"longer {axis}", np.concatenate([array, np.take(array, [-1], axis)], axis) if array.size else array
        yield f"empty {axis}", np.take(array, [], axis)
        yield f"hundredfold {axis}", np.repeat(array, 100, axis)
    yield "turned", np.ascontiguousarray(array.T)
    yield "flat", array.reshape(-1)
    yield "deep", array[..., None]
    yield "scalar", array.reshape(-1)[:1].reshape(()) if array.size else np.zeros((), array.dtype)
    for value in EXTREMES.get(array.dtype.kind, ()):
        if array.dtype.kind in "iu" and not np.iinfo(array.dtype).min <= value <= np.iinfo(array.dtype).max:
            continue
        for where, chosen in (("first", slice(0, 1)), ("last", slice(-1, None)), ("all", slice(None))):
            new = array.copy(order="C")
            with np.errstate(over="ignore"):
                new.reshape(-1)[chosen] = value
            yield f"{where} {value}", new


#: Where the forms of a tree that have a shape keep it.
SHAPES = {"array": 2, "texts": 0, "objects": 0, "sparse": 1}
#: Forms whose content is no value: a list or a number in it tells no length.
OPAQUE = {*SHAPES, "object", "same", "float"}
#: What the loader says of an attribute that should have no length, and its length; or that points into nothing.
SIZES = re.compile(r"(\w+) (?:has a size of (\d+) where \w+ is|points at number \d+ of) 0\b")
HOLLOW = "nothing in "

Place = tuple[tuple, int]


def lengths(tree: Any) -> Iterator[tuple[Place, int]]:
    """The places of a tree that have a length, or tell one: path and axis of arrays, lists and whole numbers."""
    for path, node in places(tree):
        form = next(iter(node)) if isinstance(node, dict) and len(node) == 1 else None
        # The content of a form, its parts, and the pairs of a table are no lists of their own.
        inside = OPAQUE & set(path[-2:]) or SHAPES.keys() & set(path[-3:-2]) or path[-2:-1] == ("dict",)
        if form in SHAPES:
            yield from (((path, axis), length) for axis, length in enumerate(node[form][SHAPES[form]]) if length)
        elif isinstance(node, list) and node and not inside:
            yield (path, 0), len(node)
        elif type(node) is int and node > 0 and not inside:
            yield (path, 0), node


def emptied(file: File, chosen: Iterable[Place]) -> tuple[Any, Members]:
    """The tree with nothing along these axes, in these lists, and 0 for these numbers."""
    tree, new = copy.deepcopy(file.tree), {}
    # Inner places first: a list that is emptied takes what it holds with it.
    for path, axis in sorted(chosen, key=lambda place: -len(place[0])):
        owner, key = at(tree, path[:-1]), path[-1]
        match owner[key]:
            case {"array": [number, *_]}:
                new[number] = np.take(new.get(number, file.array(at(file.tree, path)["array"])), [], axis)
            case {"texts": [shape, *_, items]} | {"objects": [shape, *_, items]}:
                shape[axis] = 0
                items.clear()
            case {"sparse": [kind, shape, *parts]}:
                shape[axis] = 0
                lengths_of_parts = 0, 0, 1 + shape[0 if kind.startswith("csr") else 1]
                for part, length in zip(parts, lengths_of_parts, strict=True):
                    new[part["array"][0]] = np.zeros(length, part["array"][1])
            case list():
                owner[key] = []
            case _:
                owner[key] = 0
    for _, node in places(tree):
        if isinstance(node, dict) and node.get("array", [None])[0] in new:
            number = node["array"][0]
            node["array"] = [number, *arrays.describe(new[number])]
    return tree, {f"arrays/{number}.npy": b"".join(arrays.chunks(array)) for number, array in new.items()}


def hollow(file: File, path: Path) -> Iterator[tuple[str, Callable[[], tuple[Any, Members]]]]:
    """The files with nothing along a length that still hold together, so that they load.

    From each place that has a length in turn: where the loader says that another attribute has a length and should have
    none, that one is emptied too, along one axis or both.
    """
    known = dict(lengths(file.tree))
    waiting = [frozenset([place]) for place in known]
    seen = set(waiting)
    while waiting:
        chosen = waiting.pop()
        file.write(path, *emptied(file, chosen))
        refusal = _refusal(path)
        if refusal is None:
            label = ", ".join(sorted(f"{'/'.join(map(str, place))} {axis}" for place, axis in chosen))
            yield f"{HOLLOW}{label}", lambda chosen=chosen: emptied(file, chosen)
            continue
        said = SIZES.search(refusal)
        found = [
            place
            for place, length in known.items()
            if said and said[1] in place[0] and length == int(said[2] or length) and place not in chosen
            if any(_related(place[0], other) for other, _ in chosen)
        ]
        nearest = [place for place in found if len(place[0]) == min(len(path) for path, _ in found)]
        alone = [chosen | {place} for place in nearest] if len(nearest) == 2 else []
        more = [new for new in (*alone, chosen.union(nearest)) if new not in seen]
        waiting += more
        seen.update(more)


def _refusal(path: Path) -> str | None:
    """The sentence with which a file is not loaded; None for one that is, or that fails otherwise."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            er.load(path, limit="1GB")
        except EmpiriskError as error:
            return str(error)
        except Exception:  # noqa: BLE001  who asks the file finds it again, and names it
            return None
    return None


def _related(one: tuple, other: tuple) -> bool:
    """Whether the object that owns one place holds the owner of the other, or is it."""
    owners = [path[: len(path) - path[::-1].index("object")] for path in (one, other)]
    short, long = sorted(owners, key=len)
    return long[: len(short)] == short


def mutations(file: File) -> Iterator[tuple[str, Callable[[], tuple[Any, Members]]]]:
    """Every change of one place, by name, made when it is called."""

    def replace(path: tuple, value: Any) -> Callable[[], tuple[Any, Members]]:
        def change() -> tuple[Any, Members]:
            tree = copy.deepcopy(file.tree)
            at(tree, path[:-1])[path[-1]] = value
            return tree, {}

        return change

    def put_array(path: tuple, array: np.ndarray) -> Callable[[], tuple[Any, Members]]:
        def change() -> tuple[Any, Members]:
            described = arrays.describe(array)
            tree, number = copy.deepcopy(file.tree), at(file.tree, path)["array"][0]
            # An array that several places share is changed for all of them.
            for _, node in places(tree):
                if isinstance(node, dict) and node.get("array", [None])[0] == number:
                    node["array"] = [number, *described]
            return tree, {f"arrays/{number}.npy": b"".join(arrays.chunks(array))}

        return change

    def edit(path: tuple, edit_state: Callable[[dict], None]) -> Callable[[], tuple[Any, Members]]:
        def change() -> tuple[Any, Members]:
            tree = copy.deepcopy(file.tree)
            edit_state(at(tree, path))
            return tree, {}

        return change

    for path, node in places(file.tree["root"], ("root",)):
        name = "/".join(map(str, path))
        if isinstance(node, dict) and "array" in node:
            for what, array in changed_arrays(file.array(node["array"])):
                yield f"{name}: {what}", put_array(path, array)
        elif isinstance(node, dict) and "object" in node:
            states = (*path, "object", 2)
            keys = list(node["object"][2])
            for key in keys:
                yield f"{name}: without {key}", edit(states, lambda state, key=key: state.pop(key))
            for one, other in itertools.pairwise(keys):
                yield (
                    f"{name}: {one} as {other}",
                    edit(states, lambda state, one=one, other=other: state.update({other: copy.deepcopy(state[one])})),
                )
            for extra in ("extra_", "nodes_", "packed_", "coef_", "features_", "_anything"):
                if extra not in keys:
                    yield f"{name}: with {extra}", edit(states, lambda state, extra=extra: state.update({extra: 0}))
            if path != ("root",):
                for number, other in enumerate(NEW_OBJECTS):
                    yield f"{name}: object {number}", replace(path, other)
        elif not isinstance(node, (dict, list)) and "object" in path and path[-2:-1] != ("object",):
            for value in SCALARS:
                yield f"{name}: {value!r}", replace(path, value)


# --- the child --------------------------------------------------------------------------------------------------------


def ask(model: Any, table: Any, finite: bool) -> str:
    """What became of a loaded model: its answers are as many as rows, or it said in a sentence what is wrong.

    ``finite`` asks for numbers that are: those of the file were.
    """
    from tests.files.cases import ANSWERS

    rows = table.shape[0] if hasattr(table, "shape") else len(table)
    if isinstance(model, er.Hierarchical):  # a tree of clusters knows its own rows only
        model.cut(1), model.cut(height=1.0)
        return "answered"
    said = "refused"
    for name in (*ANSWERS, *MORE):
        try:
            found = getattr(model, name)(table) if hasattr(model, name) else None
        except (EmpiriskError, NotFittedError):
            continue  # a table of numbers has no probabilities, one of classes no intervals
        # Bounds, and probabilities of several labels, are lists of arrays.
        found = found[0] if (name == "predict_interval" and found is not None) or isinstance(found, list) else found
        if found is not None and np.shape(found)[0] != rows:
            return f"{name} has {np.shape(found)[0]} answers for {rows} rows"
        if finite and np.asarray(found).dtype.kind == "f" and not np.all(np.isfinite(found)):
            return f"{name} is not finite"
        said = said if found is None else "answered"
    return said


def try_one(path: Path, table: Any, finite: bool = False) -> str:
    """Load a file and ask it; what is neither a sentence nor an answer is named."""
    begin = time.process_time()
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"), er.config(memory=MEMORY):
            warnings.simplefilter("ignore")
            try:
                found = ask(er.load(path, limit="1GB"), table, finite)
            except EmpiriskError as error:
                found = "refused" if "\n" not in str(error) else "a refusal of several lines"
    except Exception as error:  # noqa: BLE001  the point of the exercise
        # Inside steps of scikit-learn an ordinary exception is its own sentence; our machines have theirs.
        files = [frame.filename for frame in traceback.extract_tb(error.__traceback__)]
        theirs = "/sklearn/" in [name for name in files if "/sklearn/" in name or "/empirisk/" in name][-1]
        found = "refused" if theirs and isinstance(error, ValueError) else f"{type(error).__name__}: {str(error)[:150]}"
    spent = time.process_time() - begin
    return found if spent < SECONDS else f"{found} after {spent:.1f} s"


def child(names: list[str], count: int, seed: int, skip: set[str], only: set[str]) -> None:
    """Try mutants of the named subjects and print one line of JSON each for what is not in order."""
    from tests.files.subjects import subjects

    faulthandler.enable()
    known, hard = subjects(), resource.getrlimit(resource.RLIMIT_AS)[1]
    with tempfile.TemporaryDirectory() as folder:
        path, log = Path(folder) / "a.model", sys.stdout
        for name in names:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model, table = known[name]()
            file = File(model)
            file.write(path, file.tree, {})
            sound = try_one(path, table)  # also compiles what predicting needs, before time and memory count
            sound = try_one(path, table) if " after " in sound else sound
            if not sound.startswith("answered"):
                print(json.dumps({"subject": name, "mutant": "none", "found": sound}), file=log, flush=True)
                continue
            used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
            resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, hard))
            chosen = list(mutations(file))
            if only:
                chosen = [(label, change) for label, change in chosen if f"{name} {label}" in only]
            elif count < len(chosen):
                some = np.random.default_rng([seed, len(name)]).choice(len(chosen), count, replace=False)
                chosen = [chosen[number] for number in sorted(some)]
            if not only:
                chosen += hollow(file, path)
            tally = {"answered": 0, "refused": 0}
            for label, change in chosen:
                if f"{name} {label}" in skip:
                    continue
                print(json.dumps({"trying": f"{name} {label}"}), file=log, flush=True)
                file.write(path, *change())
                signal.alarm(LONGEST)  # it ends the process, and the parent goes on after this mutant
                found = try_one(path, table, label.startswith(HOLLOW))
                if " after " in found:  # a way that is gone for the first time is compiled: the second time counts
                    found = try_one(path, table, label.startswith(HOLLOW))
                tally[found] = tally.get(found, 0) + 1
                if found not in ("answered", "refused"):
                    print(json.dumps({"subject": name, "mutant": label, "found": found}), file=log, flush=True)
            signal.alarm(0)
            print(json.dumps({"done": name, "tally": {key: tally[key] for key in ("answered", "refused")}}), flush=True)
            resource.setrlimit(resource.RLIMIT_AS, (hard, hard))


# --- the parent -------------------------------------------------------------------------------------------------------


def run(
    names: list[str], count: int, seed: int = 0, timeout: float = 600.0, only: list[str] | None = None
) -> tuple[list[dict], dict[str, int]]:
    """What was found among ``count`` mutants of each subject, or ``only`` some; how many answered and refused."""
    finds: list[dict] = []
    totals = {"answered": 0, "refused": 0}
    left, skip = list(names), set[str]()
    while left:
        request = json.dumps([left, count, seed, sorted(skip), only or []])
        made = subprocess.run(
            [sys.executable, "-m", "tests.files.mutants", "--child"],
            input=request,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
            cwd=Path(__file__).parents[2],
        )
        lines = [json.loads(line) for line in io.StringIO(made.stdout) if line.startswith("{")]
        finds += [line for line in lines if "found" in line]
        for line in lines:
            if "done" in line:
                left.remove(line["done"])
                for key in totals:
                    totals[key] += line["tally"][key]
        if made.returncode == 0:
            break
        trying = [line["trying"] for line in lines if "trying" in line][-1:]
        finds.append(
            {"subject": "", "mutant": "".join(trying), "found": f"exit {made.returncode}: {made.stderr[-600:]}"}
        )
        if not trying or trying[0] in skip:
            break
        skip.add(trying[0])
    return finds, totals


def main() -> int:
    from tests.files.subjects import subjects

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--child", action="store_true")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    if options.child:
        names, count, seed, skip, only = json.load(sys.stdin)
        child(names, count, seed, set(skip), set(only))
        return 0
    names, count = options.names or list(subjects()), 10**9 if options.all else options.count
    parts = min(len(names), 2 * options.processes)
    total, failed = 0, False
    with ThreadPoolExecutor(options.processes) as pool:
        runs = [pool.submit(run, names[part::parts], count, options.seed, 1e5) for part in range(parts)]
        for ended in as_completed(runs):
            finds, totals = ended.result()
            total, failed = total + sum(totals.values()) + len(finds), failed or bool(finds)
            print(f"{totals['answered']} answered, {totals['refused']} refused, {len(finds)} finds", flush=True)
            for find in finds:
                print(f"  {find['subject']} {find['mutant']} -> {find['found']}", flush=True)
    print(f"{total} files of {len(names)} subjects")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
