"""Archives that are refused: cut short, of another version, with members that no model file has."""

import struct
import zipfile

import numpy as np
import pytest

import empirisk as er
from empirisk.errors import EmpiriskError
from empirisk.files import archive
from tests.files.cases import holding, rows
from tests.files.tampering import refuses, rewrite


def test_no_file_no_zip_no_model(path, tmp_path):
    refuses(tmp_path / "none.model", "is not a file")
    refuses(tmp_path, "is not a file")
    path.write_bytes(b"")
    refuses(path, "not a whole model file")
    path.write_bytes(b"\x80\x04\x95" + b"pickle" * 30)
    refuses(path, "not a whole model file")
    with zipfile.ZipFile(path, "w") as other:
        other.writestr("tree.json", "{}")
    refuses(path, "not a model file: it has no manifest")


def test_a_file_cut_short_is_refused_wherever_it_is_cut(path, machine):
    er.save(machine, path)
    whole = path.read_bytes()
    for end in range(0, len(whole) - 1, max(len(whole) // 150, 1)):
        path.write_bytes(whole[:end])
        with pytest.raises(EmpiriskError):
            er.load(path)


def test_another_version_is_named(path):
    er.save(er.SVM(), path)
    rewrite(path, about=lambda manifest: manifest.update(format=2))
    refuses(path, "format 2, newer than this version of Empirisk reads")
    rewrite(path, about=lambda manifest: manifest.update(format=0))
    refuses(path, "impossible format")
    rewrite(path, about=lambda manifest: manifest.update(format="1"))
    refuses(path, "states no format")


@pytest.mark.parametrize("name", ["../../evil", "/etc/passwd", "arrays/../tree.json", "arrays/x.npy", "extra.txt"])
def test_members_that_no_model_file_has(path, name):
    er.save(er.SVM(), path)
    rewrite(path, change=lambda members: members.update({name: b"x"}))
    refuses(path, "which no model file has")


def test_compressed_members_are_refused_before_they_unfold(path):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as bomb:
        bomb.writestr("tree.json", b"0" * 10**7)
        bomb.writestr("manifest.json", "{}")
    refuses(path, "is compressed")


def test_a_size_that_the_zip_does_not_have_is_refused(path, machine):
    er.save(machine, path)
    whole = bytearray(path.read_bytes())
    entry = whole.rindex(b"PK\x01\x02")  # the last entry of the directory: both sizes say four gigabytes
    struct.pack_into("<II", whole, entry + 20, 2**32 - 2, 2**32 - 2)
    path.write_bytes(whole)
    refuses(path, "announces more than it holds")


def test_twice_the_same_member_links_and_folders(path):
    er.save(er.SVM(), path)
    with zipfile.ZipFile(path, "a") as changed, pytest.warns(UserWarning, match="Duplicate"):
        changed.writestr("tree.json", "{}")
    refuses(path, "is there twice")
    er.save(er.SVM(), path)
    link = zipfile.ZipInfo("arrays/99.npy")
    link.external_attr = 0o120777 << 16
    with zipfile.ZipFile(path, "a") as changed:
        changed.writestr(link, "/etc/passwd")
    refuses(path, "not a plain file")


def test_limits_count_before_anything_is_read(path):
    er.save(holding(np.zeros(10**6)), path)
    refuses(path, "more than the limit of 0.001 GB", limit="1MB")
    assert er.load(path, limit="9MB").kw_args["value"].shape == (10**6,)
    er.save(holding(["x"] * 10**5), path)
    refuses(path, "more than the limit", limit="1MB")


def test_a_changed_member_is_found_by_its_digest(path, machine):
    er.save(machine, path)

    def swap(manifest):
        manifest["members"]["arrays/0.npy"]["sha256"] = "0" * 64

    rewrite(path, about=swap)
    refuses(path, "'arrays/0.npy' is not the one that was written")


def test_members_and_manifest_must_agree(path, machine):
    er.save(machine, path)
    rewrite(path, about=lambda manifest: manifest["members"].pop("arrays/0.npy"))
    refuses(path, "not those that its manifest lists")
    er.save(machine, path)
    rewrite(path, change=lambda members: members.pop("arrays/0.npy"))
    refuses(path, "'arrays/0.npy' is missing")
    er.save(machine, path)
    rewrite(path, change=lambda members: members.update({"arrays/777.npy": b"x"}))
    refuses(path, "nothing uses its member")


def test_the_archive_knows_what_it_writes():
    assert archive._is_array("arrays/12.npy")
    assert not archive._is_array("arrays/²²²²²²²²²²²².npy")
    assert not archive._is_array("arrays/1.npy.npy")
    assert rows().shape == (60, 3)
