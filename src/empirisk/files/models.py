"""Model files: saving and loading."""

import json
import math
import os
from pathlib import Path
from typing import Any

import sklearn

import empirisk
from empirisk.errors import EmpiriskError
from empirisk.files import arrays
from empirisk.files.account import Account, Damaged
from empirisk.files.archive import TREE, reading, write
from empirisk.files.decode import decode
from empirisk.files.encode import ModelEncoder
from empirisk.settings import parse_bytes, settings

ATTEMPTS = 3  # to find a model at rest while other threads use it


def save(model: Any, path: str | os.PathLike[str], *, durations: bool = True) -> None:
    """Write a machine, map, transformer or pipeline to a model file.

    The file is a zip of one JSON tree and plain arrays. It holds no code: functions of your own are refused, with the
    path to them. What is written has passed the rules of `load`; it is written whole or not at all, and replaces an
    older file only then. A machine that another thread is fitting is refused.

    Parameters
    ----------
    model : estimator
        Anything public of Empirisk, fitted or not, and pipelines of it with the usual steps of scikit-learn.
    path : str or path
        Where to write.
    durations : bool
        Whether the seconds that fits took are kept; without them the same work gives the same bytes.

    Examples
    --------
    >>> import os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "line.model")
    >>> er.save(er.LeastSquares().fit([[0.0], [1.0]], [1.0, 3.0]), path)
    >>> er.load(path).predict([[2.0]]).round(6)
    array([5.])
    """
    place = Path(os.fspath(path)).absolute()
    if not place.name or place.is_dir():
        raise EmpiriskError(f"path={str(path)!r} is a folder; name a file in it, such as 'my.model'.")
    encoder, tree = _encoded(model, durations)
    members = {f"arrays/{number}.npy": arrays.chunks(array) for number, array in enumerate(encoder.arrays)}
    _check_loads(type(model).__name__, tree, encoder)
    about = {"library": f"empirisk {empirisk.__version__}", "scikit-learn": sklearn.__version__}
    write(place, about, {TREE: (tree.encode("ascii"),), **members})


def _encoded(model: Any, durations: bool) -> tuple[ModelEncoder, str]:
    """The tree of a model as text, at one moment: where another thread changes it meanwhile it is encoded again."""
    name = type(model).__name__
    for _ in range(ATTEMPTS):
        encoder = ModelEncoder(durations)
        try:
            tree = json.dumps({"root": encoder.value(model, name)}, allow_nan=False)
        except EmpiriskError:
            raise
        except ValueError as error:
            raise EmpiriskError(f"{name} holds a number too long for a model file; give a smaller one.") from error
        if not encoder.changed():
            return encoder, tree
    raise EmpiriskError(f"Another thread changes the {name} while it is saved; save it when that is done.")


def _check_loads(name: str, tree: str, encoder: ModelEncoder) -> None:
    """Raise where the loader would refuse what is about to be written: by its own rules, before a file is replaced."""
    length = len(tree) + sum(array.nbytes for array in encoder.arrays)
    try:
        decode(json.loads(tree), arrays.ArraysToSave(encoder.arrays), Account(math.inf, length), encoder.written)
    except Damaged as error:
        raise EmpiriskError(f"{name} is not saved, since it would not load: {error.what}; correct it.") from error


def load(path: str | os.PathLike[str], limit: int | str | None = None) -> Any:
    """Read the model of a file that `save` wrote; predictions are the same to the last bit.

    Nothing in the file is run, whoever wrote it: it can name only classes of Empirisk and a fixed list of steps of
    scikit-learn. Sizes and types are checked before memory is taken, and digests before contents are used. A file
    that is cut short, changed, or newer than the library is an `EmpiriskError` that says so.

    Parameters
    ----------
    path : str or path
        The file.
    limit : int or str, optional
        Largest size to accept, such as "2GB"; by default the budget of ``er.config(memory=...)``.

    Examples
    --------
    >>> import os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "line.model")
    >>> er.save(er.LeastSquares().fit([[0.0], [1.0]], [1.0, 3.0]), path)
    >>> er.load(path).certificate_.converged
    True
    """
    allowed = settings().memory if limit is None else parse_bytes(limit, "limit")
    with reading(Path(os.fspath(path)), allowed) as reader:
        return decode(reader.tree(), arrays.Stored(reader), reader.account)
