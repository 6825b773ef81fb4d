"""What cannot be saved is refused, and a save that fails leaves what was there."""

import os

import numpy as np
import pytest
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

import empirisk as er
from empirisk.errors import EmpiriskError
from tests.files.cases import holding


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
    with pytest.raises(EmpiriskError, match=r"FunctionTransformer\.kw_args.* is a complex number|cannot hold"):
        er.save(holding(1j), path)
    with pytest.raises(EmpiriskError, match=r"array of type"):
        er.save(holding(np.zeros(2, dtype=[("a", float)])), path)
    with pytest.raises(EmpiriskError, match=r"CountVectorizer\.input must be 'content'"):
        er.save(CountVectorizer(input="filename"), path)


def test_places_on_this_disk_are_no_part_of_a_model(path):
    for model, name in (
        (make_pipeline(StandardScaler(), memory="cache"), "memory"),
        (er.selection.Search(er.Ridge(), {"C": [1.0]}, journal="a.journal"), "journal"),
        (er.Network([2], checkpoint="a.checkpoint"), "checkpoint"),
    ):
        er.save(model, path)
        assert getattr(er.load(path), name) is None
        assert getattr(model, name) is not None


def test_an_object_inside_itself_is_refused(path):
    scaler = StandardScaler()
    scaler = holding([scaler])
    scaler.kw_args["value"] = [scaler]
    with pytest.raises(EmpiriskError, match="refers back"):
        er.save(scaler, path)
    endless = []
    endless.append(endless)
    with pytest.raises(EmpiriskError, match="without end"):
        er.save(holding(endless), path)


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
