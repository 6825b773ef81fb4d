import os
import threading

import numpy as np
import pytest

import empirisk as er
from empirisk import settings
from empirisk.errors import EmpiriskError, TooLarge


@pytest.fixture(autouse=True)
def _restored():
    with er.config():
        yield


@pytest.mark.parametrize(
    ("text", "size"),
    [("2GB", 2 * 10**9), ("1.5 mb", 1_500_000), ("3.KB", 3000), (" 10B ", 10), ("1TB", 10**12), (77, 77)],
)
def test_sizes(text, size):
    assert settings.parse_bytes(text) == size


NO_SIZES = [True, "lots", float("nan"), float("inf"), "9" * 400 + "TB", [1], b"2GB", {}, 1j]


@pytest.mark.parametrize("text", [*NO_SIZES, "", "GB", "2", "two GB", "1.2.3GB", "-1GB", "2GiB", "0GB", 0, -5, 0.5])
def test_what_is_no_size_is_named(text):
    with pytest.raises(EmpiriskError, match="memory="):
        er.config(memory=text)


def test_a_setting_lasts_and_leaves_the_others():
    threads = settings.settings().threads
    er.config(memory="3MB")
    assert settings.settings() == settings.Settings(memory=3_000_000, threads=threads)
    assert repr(er.config(threads=7)) == (
        "Settings(memory=3000000, threads=7, device='auto', cluster='none', interrupt='raise', stop=None)"
    )
    assert settings.settings() == settings.Settings(memory=3_000_000, threads=7)


def test_a_block_restores_even_after_an_error():
    before = settings.settings()
    with er.config(memory="1KB", threads=3) as inside:
        assert inside == settings.settings() == settings.Settings(memory=1000, threads=3)
        with er.config(threads=1):
            assert settings.settings().threads == 1
        assert settings.settings() == inside
    assert settings.settings() == before
    with pytest.raises(KeyError), er.config(memory="1KB"):
        raise KeyError
    assert settings.settings() == before


def test_sizes_may_be_numbers_of_any_kind():
    assert [settings.parse_bytes(size) for size in (2e9, np.int64(7), np.float32(8.0))] == [2_000_000_000, 7, 8]


def test_a_limit_is_named_as_the_argument_that_it_is(tmp_path):
    er.save(er.SVM(), tmp_path / "a.model")
    with pytest.raises(EmpiriskError, match="limit='lots' is not a size"):
        er.load(tmp_path / "a.model", limit="lots")


@pytest.mark.parametrize("threads", [0, -1, 1.5, 2.0, "many", "2", True, float("nan"), [2], np.float64(3)])
def test_threads_are_a_whole_number_from_1_on(threads):
    before = settings.settings()
    with pytest.raises(EmpiriskError, match="threads="):
        er.config(memory="1KB", threads=threads)
    assert settings.settings() == before


def test_require_names_the_bytes_and_the_alternative():
    er.config(memory="2GB")
    settings.require(2 * 10**9, "a kernel matrix", "use Nystrom")
    with pytest.raises(TooLarge, match=r"a kernel matrix needs 3\.0 GB, more than the 2\.0 GB.*; use Nystrom\."):
        settings.require(3 * 10**9, "a kernel matrix", "use Nystrom")


def test_the_default_is_half_of_what_there_is(monkeypatch, tmp_path):
    limit = tmp_path / "memory.max"
    monkeypatch.setattr(settings, "CONTAINER_LIMITS", (limit,))
    machine = settings._half_of_memory()
    assert machine == os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    limit.write_text("max\n")
    assert settings._half_of_memory() == machine
    limit.write_text("1000000\n")
    assert settings._half_of_memory() == 500_000
    assert settings._cores() >= 1


def test_what_the_main_thread_sets_for_good_holds_in_threads_that_have_set_nothing():
    def seen():
        found = []
        thread = threading.Thread(target=lambda: found.append(settings.settings()))
        thread.start()
        thread.join()
        return found[0]

    def other():
        er.config(threads=5)
        found.append(settings.settings().threads)

    before = settings.settings()
    with er.config(threads=3):
        assert seen() == before
        er.config(memory="3MB")
        assert seen().memory == 3_000_000
    assert seen() == settings.settings() == before
    found = []
    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    assert found == [5]
    assert settings.settings() == before


def test_a_share_of_the_cores_is_known(monkeypatch, tmp_path):
    share = tmp_path / "cpu.max"
    monkeypatch.setattr(settings, "CONTAINER_SHARES", (share,))
    monkeypatch.setattr(settings.os, "sched_getaffinity", lambda process: set(range(16)), raising=False)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert settings._cores() == 16
    share.write_text("max 100000\n")
    assert settings._cores() == 16
    share.write_text("150000 100000\n")
    assert settings._cores() == 2
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert settings._told(settings._cores()) == 1
