"""Model files written again with something else in them, and the one sentence that refuses them."""

import hashlib
import json
import zipfile
from unittest import mock

import numpy as np
import pytest

import empirisk as er
from empirisk.errors import EmpiriskError
from empirisk.files import archive, arrays, models


def rewrite(path, change=lambda members: None, about=lambda manifest: None, tree=lambda tree: None):
    """Write the file again with other members, a manifest that fits them, and then a changed manifest."""
    with zipfile.ZipFile(path) as old:
        members = {name: old.read(name) for name in old.namelist()}
    manifest = json.loads(members.pop("manifest.json"))
    grown = json.loads(members["tree.json"])
    tree(grown)
    members["tree.json"] = json.dumps(grown).encode()
    change(members)
    for name, data in members.items():
        manifest["members"][name] = {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    manifest["members"] = {name: entry for name, entry in manifest["members"].items() if name in members}
    about(manifest)
    with zipfile.ZipFile(path, "w") as new:
        for name, data in {**members, "manifest.json": json.dumps(manifest)}.items():
            new.writestr(name, data)


def forge(model, path):
    """Save a model whose state the rules may refuse, as a forger does; `er.save` would refuse it before the loader."""
    with mock.patch.object(models, "_check_loads"):
        er.save(model, path)


def forge_tree(path, root, *found):
    """Write a file with this tree and these arrays, in which everything but their meaning is in order."""
    members = {"tree.json": (json.dumps({"root": root}).encode(),)}
    members |= {f"arrays/{number}.npy": arrays.chunks(array) for number, array in enumerate(found)}
    archive.write(path, {}, members)


def refuses(path, match, **options):
    with pytest.raises(EmpiriskError, match=match) as caught:
        er.load(path, **options)
    assert str(caught.value).count("\n") == 0


def change_array(path, name, change):
    """Change one array of the only `Nodes` in a file, in place, with digests that fit."""
    with zipfile.ZipFile(path) as old:
        tree = json.loads(old.read("tree.json"))

    def find(node):
        if isinstance(node, dict) and "object" in node and node["object"][0] == "Nodes":
            return node["object"][2][name]["array"]
        children = node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
        return next((found for child in children if (found := find(child))), None)

    number, kind, shape, fortran = find(tree)

    def edit(members):
        start = arrays.header(kind, shape, fortran)
        array = np.frombuffer(members[f"arrays/{number}.npy"][len(start) :], dtype=kind).copy()
        change(array)
        members[f"arrays/{number}.npy"] = start + array.tobytes()

    rewrite(path, change=edit)
