"""Model files: saving and loading."""

import json
import os
from pathlib import Path
from typing import Any

import sklearn

import empirisk
from empirisk.errors import EmpiriskError
from empirisk.files import arrays
from empirisk.files.archive import TREE, damaged, reading, write
from empirisk.files.decode import decode
from empirisk.files.encode import Encoder
from empirisk.settings import parse_bytes, settings


def save(model: Any, path: str | os.PathLike[str], *, durations: bool = True) -> None:
    """Write a machine, map, transformer or pipeline to a model file.

    The file is a zip of one JSON tree and plain arrays. It holds no code: functions of your own are refused, with the
    path to them. It is written whole or not at all, and replaces an older file only then.

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
    encoder = Encoder(durations)
    tree = json.dumps({"root": encoder.value(model, type(model).__name__)}, allow_nan=False)
    members = {f"arrays/{number}.npy": arrays.chunks(array) for number, array in enumerate(encoder.arrays)}
    about = {"library": f"empirisk {empirisk.__version__}", "scikit-learn": sklearn.__version__}
    write(place, about, {TREE: (tree.encode("ascii"),), **members})


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
        tree = reader.tree()
        if not isinstance(tree, dict) or set(tree) != {"root"}:
            raise damaged("its tree has no root")
        return decode(tree["root"], reader)
