"""Selection: choosing what the equation leaves open."""

from empirisk.selection.path import Path, path

__all__ = ["Path", "path"]
