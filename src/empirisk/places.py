"""Where to write what only saves time, on machines where neither the installation nor a home can be written."""

import os
import stat
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path
from tempfile import gettempdir, mkdtemp


@cache
def private_folder() -> Path | None:
    """A folder under the temporary one that is this user's alone, None where nothing can be written at all.

    It stays for the next process. Others can make a folder of its name first, and what Numba keeps there is run: one
    that is not ours, or that others may write to, is not used.
    """
    with suppress(OSError):
        if not hasattr(os, "getuid"):  # the temporary folder of Windows is this user's alone
            folder = Path(gettempdir()) / "empirisk"
            folder.mkdir(exist_ok=True)
            return folder
        user = os.getuid()
        folder = Path(gettempdir()) / f"empirisk-{user}"
        with suppress(FileExistsError):
            folder.mkdir(mode=0o700)
        about = folder.lstat()
        ours = stat.S_ISDIR(about.st_mode) and about.st_uid == user and not about.st_mode & 0o077
        return folder if ours and os.access(folder, os.W_OK) else Path(mkdtemp(prefix="empirisk-"))
    return None


def home_is_known() -> bool:
    """Whether this user has a home: a container may run under a number that nobody has."""
    return not os.path.expanduser("~").startswith("~")


def lead_matplotlib() -> None:
    """Give Matplotlib a folder where its own cannot be written, before it is imported: it would warn of it."""
    if "matplotlib" in sys.modules or "MPLCONFIGDIR" in os.environ:
        return
    usual = Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser() if home_is_known() else "~")
    nearest = next((place for place in (usual / "matplotlib", *usual.parents) if place.exists()), usual)
    folder = None if home_is_known() and os.access(nearest, os.W_OK) else private_folder()
    if folder is not None:
        os.environ["MPLCONFIGDIR"] = str(folder / "matplotlib")
