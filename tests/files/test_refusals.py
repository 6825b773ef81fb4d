"""What a model file refuses: at saving what it cannot hold, at loading whatever is not as it was written."""

import hashlib
import json
import os
import struct
import zipfile

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

import empirisk as er
from empirisk.errors import EmpiriskError
from empirisk.files import archive, arrays
from tests.files.cases import fitted, rows


@pytest.fixture
def path(tmp_path):
    return tmp_path / "a.model"


@pytest.fixture
def machine():
    return fitted(er.TreeClassifier(max_depth=2))


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


def refuses(path, match, **options):
    with pytest.raises(EmpiriskError, match=match) as caught:
        er.load(path, **options)
    assert str(caught.value).count("\n") == 0


# --- saving ---------------------------------------------------------------------------------------------------------


def square(x):
    return x**2


def test_functions_are_refused_with_the_path_to_them(path):
    pipeline = make_pipeline(FunctionTransformer(square), er.SVM())
    with pytest.raises(EmpiriskError, match=r"Pipeline\.steps\[0\]\[1\]\.func is the function square"):
        er.save(pipeline, path)
    with pytest.raises(EmpiriskError, match=r"SVM\.C is the function .*<lambda>"):
        er.save(er.SVM(C=lambda: 1.0), path)
    with pytest.raises(EmpiriskError, match=r"TfidfVectorizer\.tokenizer is the function"):
        er.save(TfidfVectorizer(tokenizer=str.split), path)
    assert not path.exists()


class Mine(er.SVM):
    pass


def test_classes_that_we_do_not_know_are_refused(path):
    with pytest.raises(EmpiriskError, match=r"Mine is a .*Mine, which a model file cannot hold"):
        er.save(Mine(), path)
    with pytest.raises(EmpiriskError, match=r"StandardScaler\.copy is a complex number|cannot hold"):
        er.save(StandardScaler(copy=1j), path)
    with pytest.raises(EmpiriskError, match=r"array of type"):
        er.save(StandardScaler(copy=np.zeros(2, dtype=[("a", float)])), path)
    with pytest.raises(EmpiriskError, match=r"steps|memory"):
        er.save(make_pipeline(StandardScaler(), memory="cache"), path)


def test_an_object_inside_itself_is_refused(path):
    scaler = StandardScaler()
    scaler.copy = [scaler]
    with pytest.raises(EmpiriskError, match="refers back"):
        er.save(scaler, path)
    endless = []
    endless.append(endless)
    with pytest.raises(EmpiriskError, match="without end"):
        er.save(StandardScaler(copy=endless), path)


def test_a_failed_save_leaves_the_old_file_and_nothing_else(path, machine, monkeypatch):
    er.save(machine, path)
    before = path.read_bytes()
    with pytest.raises(EmpiriskError):
        er.save(er.SVM(C=square), path)
    assert path.read_bytes() == before
    monkeypatch.setattr(os, "fsync", lambda handle: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(EmpiriskError, match="No space left"):
        er.save(er.SVM(), path)
    assert path.read_bytes() == before
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_a_place_that_cannot_be_written_is_named(tmp_path):
    with pytest.raises(EmpiriskError, match=r"path='.*nowhere.*' cannot be written"):
        er.save(er.SVM(), tmp_path / "nowhere" / "a.model")
    with pytest.raises(EmpiriskError, match="is a folder"):
        er.save(er.SVM(), tmp_path)


# --- loading what is no model ---------------------------------------------------------------------------------------


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


# --- zips that lie --------------------------------------------------------------------------------------------------


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
    er.save(StandardScaler(copy=np.zeros(10**6)), path)
    refuses(path, "more than the limit of 0.001 GB", limit="1MB")
    assert er.load(path, limit="9MB").copy.shape == (10**6,)
    er.save(StandardScaler(copy=["x"] * 10**5), path)
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


# --- trees that lie -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "root",
    [
        {"object": ["os.system", 0, {}]},
        {"object": ["builtins.eval", 0, {}]},
        {"object": ["errors.EmpiriskError", 0, {}]},
        {"object": ["sklearn.SVC", 0, {}]},
        {"object": ["files.load.load", 0, {}]},
        {"object": ["config", 0, {}]},
        {"object": [["SVM"], 0, {}]},
    ],
    ids=str,
)
def test_only_classes_in_the_tables_are_built(path, root):
    er.save(er.SVM(), path)
    rewrite(path, tree=lambda tree: tree.update(root=root))
    refuses(path, "does not load")


@pytest.mark.parametrize(
    "root",
    [
        {"object": ["SVM", 0, {"predict": 1}]},
        {"object": ["SVM", 0, {"__class__": 1}]},
        {"object": ["SVM", 0, {"a b": 1}]},
        {"object": ["SVM", 0]},
        {"object": ["kernels.Scaled", 0, {"factor": 2.0}]},
        {"object": ["Certificate", 0, {}]},
        {"object": ["sklearn.Pipeline", 0, {"memory": "/tmp/pickles", "steps": []}]},
        {"object": ["sklearn.TfidfVectorizer", 0, {"input": "filename"}]},
        {"same": 5},
        {"unknown": 5},
        {"a": 1, "b": 2},
        {},
        {"float": "1e5"},
        {"tuple": 3},
        {"dict": [[{"dict": []}, 1]]},
        {"set": [[]]},
        {"array": [0, "|O", [1], False]},
        {"array": [0, "<f8", [2**62], False]},
        {"array": [0, "<f8", [-1], False]},
        {"array": [5, "<f8", [1], False]},
        {"array": ["../x", "<f8", [1], False]},
        {"objects": [[10**9], []]},
        {"texts": [[1], 10**12, ["a"]]},
        {"sparse": ["csr_matrix", [1, 1], [1.0], [7], [0, 1]]},
        {"scalar": ["<f8", "text"]},
        {"generator": {"dict": [["bit_generator", "os"]]}},
        {"frame": [["a", "Object", [1]]]},
        {"type": "os.system"},
        {"dtype": "O8"},
    ],
    ids=str,
)
def test_a_tree_that_does_not_fit_is_one_sentence(path, root):
    er.save(er.SVM(), path)
    rewrite(path, tree=lambda tree: tree.update(root=root))
    refuses(path, "model file is damaged")


def test_deep_and_broken_json(path):
    er.save(er.SVM(), path)
    deep = b'{"root": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    rewrite(path, change=lambda members: members.update({"tree.json": deep}))
    refuses(path, "damaged")
    for text in (b"\xff", b"{", b'{"root": NaN}', b"[]", b'{"root": ' + b"9" * 5000 + b"}"):
        er.save(er.SVM(), path)
        rewrite(path, change=lambda members, text=text: members.update({"tree.json": text}))
        refuses(path, "damaged")


def test_arrays_must_be_what_the_tree_announces(path):
    er.save(StandardScaler(copy=np.array([True, False])), path)
    rewrite(
        path, change=lambda members: members.update({"arrays/0.npy": arrays.header("|b1", (2,), False) + b"\x01\x07"})
    )
    refuses(path, "true and false")
    er.save(StandardScaler(copy=np.zeros(4)), path)
    rewrite(path, change=lambda members: members.update({"arrays/0.npy": arrays.header("<f8", (4,), True) + bytes(32)}))
    refuses(path, "size or type")
    er.save(StandardScaler(copy=np.zeros(4)), path)
    rewrite(path, change=lambda members: members.update({"arrays/0.npy": members["arrays/0.npy"] + b"x"}))
    refuses(path, "size or type")


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


@pytest.mark.parametrize(
    ("name", "place", "value"),
    [
        ("left", 0, 10**8),
        ("left", 0, -5),
        ("left", 0, 0),
        ("feature", 0, 3),
        ("feature", 0, -2),
        ("roots", 0, 1),
        ("category_start", 0, 10**6),
        ("category_counts", 0, -1),
    ],
)
def test_trees_that_point_outside_are_refused(path, machine, name, place, value):
    er.save(machine, path)
    change_array(path, name, lambda array: array.__setitem__(place, value))
    refuses(path, "its trees")


@pytest.mark.parametrize(
    ("kept", "change"),
    [
        (er.SVM(features=er.kernels.Laplacian(2.0)), {"support_vectors_": np.zeros((5, 2))}),
        (
            er.SVM(features=er.maps.Nystrom(er.kernels.Laplacian(2.0), 5, random_state=0)),
            {"landmarks_": np.zeros((5, 1))},
        ),
        (er.KNNClassifier(), {"rows_": np.zeros((60, 1))}),
        (er.KNNClassifier(), {"rows_": np.zeros((10, 3))}),
        (er.KNNClassifier(), {"codes_": np.full(60, 7)}),
        (er.KNNClassifier(), {"codes_": np.full(60, -1)}),
        (er.ForestClassifier(n_estimators=2, max_depth=2, random_state=0), {"n_features_in_": 1}),
        (er.BoostingRegressor(n_estimators=2, max_leaves=3, random_state=0), {"n_estimators_": 50}),
        (er.TreeClassifier(max_depth=2), {"n_features_in_": 1}),
    ],
    ids=lambda value: str(value)[:40],
)
def test_rows_and_trees_that_do_not_fit_are_refused(path, kept, change):
    """Compiled code would read, or write, beyond the end of an array."""
    kept = fitted(kept)
    owner = kept.features_ if "landmarks_" in change else kept
    vars(owner).update(change)
    er.save(kept, path)
    refuses(path, "damaged: (its trees|the rows)")


@pytest.mark.parametrize(
    "options", [{}, {"min_frequency": 10}, {"drop": "first"}, {"drop": "first", "max_categories": 3}]
)
@pytest.mark.parametrize(
    "change",
    [
        {"_n_features_outs": [1, 1, 1]},
        {"_n_features_outs": [50, 50, 50]},
        {"_drop_idx_after_grouping": np.array([-5, None, None], dtype=object)},
        {"_infrequent_enabled": True, "_default_to_infrequent_mappings": [np.full(7, 90), None, None]},
        {"_infrequent_enabled": True, "_default_to_infrequent_mappings": [np.arange(-7, 0), None, None]},
    ],
    ids=str,
)
def test_encoders_that_would_write_outside_are_refused(path, options, change):
    encoder = OneHotEncoder(**options).fit(rows().round(0))
    er.save(encoder, path)
    assert er.load(path).transform(rows().round(0)).nnz == encoder.transform(rows().round(0)).nnz
    vars(encoder).update(change)
    er.save(encoder, path)
    refuses(path, "damaged")


def test_vocabularies_and_words_that_would_write_outside_are_refused(path):
    texts = ["a bee", "bee sea", "sea dee"]
    for place in (10**6, -1, 0.5):
        vectorizer = TfidfVectorizer().fit(texts)
        vectorizer.vocabulary_["bee"] = place
        er.save(vectorizer, path)
        refuses(path, "not numbered in a row")
    table = {"t": ["a", "b", None] * 20, "n": list(range(60))}
    encoder = er.tables.TableEncoder(er.tables.understand(table)).fit(table)
    object.__setattr__(encoder.words_, "others", np.array([-3], dtype=np.int8))
    er.save(encoder, path)
    refuses(path, "words in it do not fit")


def test_the_archive_knows_what_it_writes():
    assert archive._is_array("arrays/12.npy")
    assert not archive._is_array("arrays/²²²²²²²²²²²².npy")
    assert not archive._is_array("arrays/1.npy.npy")
    assert rows().shape == (60, 3)
