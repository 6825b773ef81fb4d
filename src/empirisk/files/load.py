"""Reading a model file."""

import os
from pathlib import Path
from typing import Any

from empirisk.files.archive import damaged, reading
from empirisk.files.decode import decode
from empirisk.settings import parse_bytes, settings


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
    allowed = settings().memory if limit is None else parse_bytes(limit)
    with reading(Path(os.fspath(path)), allowed) as reader:
        tree = reader.tree()
        if not isinstance(tree, dict) or set(tree) != {"root"}:
            raise damaged("its tree has no root")
        return decode(tree["root"], reader)
