"""Small files that mean much: they end within seconds and within the limit, in load, in repr and in use."""

import subprocess
import sys
import time
from contextlib import suppress

import numpy as np
import pytest
import sklearn

import empirisk as er
from empirisk.errors import EmpiriskError
from tests.files import cases
from tests.files.cases import rows
from tests.files.tampering import forge_tree, refuses

#: Run by `make test-all`.
pytestmark = pytest.mark.long

SECONDS = 5.0  # of the processor that any file may take, on a slow machine under load
LARGE = 3 * 10**6  # bytes of a file
MERSENNE = 2**61 - 1  # whole numbers that differ by it have one hash


def holding(value):
    """The tree of a step that holds any value."""
    return {"object": ["sklearn.FunctionTransformer", 10**6, {"kw_args": {"dict": [["value", value]]}, **PLAIN}]}


VERSION = {"_sklearn_version": sklearn.__version__}
PLAIN = {"func": None, "inverse_func": None, "inv_kw_args": None, "validate": False, "check_inverse": True}
PLAIN |= {"accept_sparse": False, "feature_names_out": None, **VERSION}


def array(number, values):
    return {"array": [number, values.dtype.str, list(values.shape), False]}


def many(item, size=LARGE):
    """So many of an item that their text has a size; a function of the number makes each anew."""
    made = item(0) if callable(item) else item
    count = size // (len(str(made)) + 1)
    return [item(number) if callable(item) else item for number in range(count)]


def colliding_pairs(count):
    """Tuples of two whole numbers that all have one hash: the second is solved for, since the hash can be inverted."""
    first, second, fifth = 11400714785074694791, 14029467366897019727, 2870177450012600261
    mask, back = 2**64 - 1, pow(14029467366897019727, -1, 2**64)

    def turned(x, by):
        return ((x << by) | (x >> (64 - by))) & mask

    pairs, number = [], 0
    while len(pairs) < count:
        number += 1
        state = turned((fifth + number * second) & mask, 31) * first & mask
        wanted = ((12345 - state) * back) & mask
        signed = wanted - 2**64 if wanted >> 63 else wanted
        if abs(signed) < MERSENNE and signed != -1:
            pairs.append((number, signed))
    assert len({hash(pair) for pair in pairs}) == 1
    return pairs


def laughs(depth, make, leaf):
    """Objects that each hold the one before twice."""
    items = [{"object": [*leaf[:1], 0, leaf[1]]}]
    for number in range(1, depth):
        items.append({"object": [make[0], number, make[1]({"same": number - 1})]})
    return items


def kernels(depth):
    """Sums of a kernel with itself, each of the one before: 2^depth kernels in 70 bytes each."""
    return laughs(depth, ("kernels.Sum", lambda same: {"left": same, "right": same}), ("kernels.Linear", {}))


STEP = "sklearn.FunctionTransformer"


def fifty(same):
    """The state of a step that holds one part fifty times."""
    return PLAIN | {"kw_args": {"dict": [["v", [same] * 50]]}}


def one_hot(categories):
    """An encoder whose only column has these categories, none of them rare."""
    plain = {"categories": "auto", "drop": None, "drop_idx_": None, "sparse_output": True, "handle_unknown": "ignore"}
    plain |= {"min_frequency": None, "max_categories": None, "feature_name_combiner": "concat", "n_features_in_": 1}
    plain |= {"dtype": {"dtype": "<f8"}, "infrequent_categories_": [None], **VERSION}
    return {
        "object": ["sklearn.OneHotEncoder", 0, plain | {"categories_": [{"objects": [[len(categories)], categories]}]}]
    }


def encoder(number):
    """A step that holds the first array."""
    return {"object": ["sklearn.LabelEncoder", number, {"classes_": array(0, LABELS), **VERSION}]}


def power(number):
    """A step that is fitted again."""
    options = {"method": "box-cox", "standardize": False, "copy": True, "n_features_in_": 1, **VERSION}
    return {
        "object": [
            "sklearn.PowerTransformer",
            number,
            {"lambdas_": array(0, ENDS[:1] + 1.0), **options},
        ]
    }


ATTACKS = {
    "steps that are fitted again": lambda: (holding(many(power)), ENDS[:1] + 1.0),
    "kernels nested by sharing": lambda: (holding(kernels(60)),),
    "lists nested by sharing": lambda: (holding(laughs(60, (STEP, fifty), (STEP, PLAIN | {"kw_args": None}))),),
    "one object a million times": lambda: (holding([{"object": ["SVM", 1, {}]}, *many({"same": 1})]),),
    "a chain of shared objects": lambda: (
        holding(
            [
                {"object": ["kernels.Linear", 0, {}]},
                *many(lambda n: {"object": ["kernels.Scaled", n + 1, {"kernel": {"same": n}, "factor": 1.0}]}),
            ]
        ),
    ),
    "whole numbers of one hash": lambda: (holding({"set": many(lambda n: MERSENNE * 10**9 + MERSENNE * n)}),),
    "keys of one hash": lambda: (holding({"dict": many(lambda n: [MERSENNE * 10**9 + MERSENNE * n, 0])}),),
    "pairs of one hash": lambda: (holding({"frozenset": [{"tuple": list(pair)} for pair in colliding_pairs(40_000)]}),),
    "keys that are pairs of one hash": lambda: (
        holding({"dict": [[{"tuple": list(pair)}, 0] for pair in colliding_pairs(40_000)]}),
    ),
    "classes of one hash": lambda: (
        {
            "object": [
                "sklearn.LabelEncoder",
                0,
                {"classes_": {"objects": [[100_000], [MERSENNE * (n + 10**9) for n in range(100_000)]]}},
            ]
        },
    ),
    "categories of one hash": lambda: (one_hot([{"tuple": list(pair)} for pair in colliding_pairs(60_000)]),),
    "complex categories of one hash": lambda: (
        one_hot([{"scalar": ["<c16", f"{1000003 * n}-{n}j"]} for n in range(1, 100_000)]),
    ),
    "one array in many objects": lambda: (holding(many(encoder, LARGE // 2)), LABELS),
    "one array in many sparse matrices": lambda: (
        holding(
            many(
                {"sparse": ["csr_array", [1, LABELS.size], array(0, LABELS), array(1, BACKWARDS), array(2, ENDS)]},
                LARGE // 4,
            )
        ),
        LABELS,
        BACKWARDS,
        ENDS,
    ),
    "padded texts": lambda: (holding(many({"texts": [[100], 1024, [""] * 100]})),),
    "empty lists": lambda: (holding(many([])),),
    "empty sets": lambda: (holding(many({"set": []})),),
    "tables": lambda: (holding(many({"frame": [["a", "Int8", []]]})),),
    "generators": lambda: (holding(many(GENERATOR)),),
    "small objects": lambda: (holding(many(lambda n: {"object": ["losses.Hinge", n, {}]})),),
    "deep lists": lambda: (holding(deep(300)),),
    "many arrays": lambda: (
        holding([array(n, np.zeros(1)) for n in range(4_000)]),
        *[np.zeros(1) for _ in range(4_000)],
    ),
}
LABELS = np.arange(LARGE // 16, dtype=np.float64)
BACKWARDS = np.arange(LABELS.size, dtype=np.int32)[::-1].copy()
ENDS = np.array([0, LABELS.size], dtype=np.int32)
GENERATOR = {
    "generator": {
        "dict": [
            ["bit_generator", "PCG64"],
            ["state", {"dict": [["state", 1], ["inc", 1]]}],
            ["has_uint32", 0],
            ["uinteger", 0],
        ]
    }
}


def deep(levels):
    return [] if levels == 0 else [deep(levels - 1)]


@pytest.mark.parametrize("name", ATTACKS)
def test_a_file_ends_within_seconds(name, path):
    forge_tree(path, *ATTACKS[name]())
    assert path.stat().st_size < 1.5 * LARGE
    begin = time.process_time()
    with suppress(EmpiriskError):
        er.load(path, limit="2GB")
    assert time.process_time() - begin < SECONDS


def test_a_limit_is_one_of_all_contents_together(path):
    """Texts of a kilobyte each, padded by NumPy: each array is small, and a megabyte of them were two gigabytes."""
    forge_tree(path, holding([{"texts": [[100], 1024, [""] * 100]}] * 2_000))
    assert path.stat().st_size < 1.9e6
    refuses(path, "more than the limit of 0.1 GB", limit="100MB")
    text = np.ones(2_000_000)
    forge_tree(path, holding([array(number, text) for number in range(4)]), *[text] * 4)
    refuses(path, "needs 0.064 GB, more than the limit of 0.05 GB", limit="50MB")


def test_memory_stays_within_the_limit(path):
    """A process that may not take half a gigabyte beyond what it has."""
    paths = []
    for name in ("padded texts", "one array in many sparse matrices", "empty sets", "generators", "tables"):
        paths.append(path.with_name(f"{name}.model"))
        forge_tree(paths[-1], *ATTACKS[name]())
    asked = subprocess.run([sys.executable, "-c", CHILD, *paths], capture_output=True, text=True, check=False)
    assert asked.returncode == 0, asked.stderr
    assert asked.stdout.count("\n") == len(paths), asked.stdout


CHILD = f"""
import resource, sys
import empirisk as er, empirisk.errors
er.load  # what loading needs is imported before memory counts
from empirisk.files import models
with open("/proc/self/statm") as file:
    used = int(file.read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + {5 * 10**8}, used + {5 * 10**8}))
for path in sys.argv[1:]:
    try:
        er.load(path, limit="300MB")
        print("loaded")
    except er.errors.EmpiriskError as error:
        print(error)
"""


@pytest.mark.parametrize("depth", [5, 12])
def test_what_loads_can_be_shown_and_used(path, depth):
    """A kernel that is the sum of itself with itself, again and again: 2^12 are within what may be shared."""
    forge_tree(path, kernel_of(depth))
    begin = time.process_time()
    kernel = er.load(path)
    assert kernel(rows(2)).shape == (2, 2)
    assert len(repr(kernel)) < 10**6
    assert len(kernel.get_params()) < 10**5
    assert time.process_time() - begin < SECONDS


@pytest.mark.parametrize("depth", [14, 20, 90])
def test_parts_that_double_without_end_are_refused(path, depth):
    forge_tree(path, kernel_of(depth))
    refuses(path, "its objects share others without end")


def kernel_of(depth):
    """The last of the kernels, with the others inside it where they are first met."""
    found = {"object": ["kernels.Linear", 0, {}]}
    for number in range(1, depth + 1):
        found = {"object": ["kernels.Sum", number, {"left": found, "right": {"same": number - 1}}]}
    return found


def test_parts_shared_as_models_share_them_load(path):
    kernel = er.kernels.Gaussian(2.0) + er.kernels.Linear()
    er.save(cases.holding([er.SVM(features=kernel) for _ in range(3_000)]), path)
    assert len(er.load(path).kw_args["value"]) == 3_000
