"""Lazy attributes: computed once, kept, and never waited for."""

import gc
import threading
from pathlib import Path

import pytest

import empirisk as er
from empirisk.lazy import lazy


class Item:
    count = 0

    @lazy
    def value(self):
        """What it is."""
        self.count += 1
        return object()


def test_it_is_computed_once_and_may_be_set():
    item = Item()
    assert item.value is item.value
    assert item.count == 1
    other = Item()
    other.value = 3
    assert other.value == 3
    assert other.count == 0
    assert Item.value.__doc__ == "What it is."


def test_instances_do_not_wait_for_each_other():
    meeting = threading.Barrier(2, timeout=20)

    class Slow:
        @lazy
        def value(self):
            return meeting.wait()

    threads = [threading.Thread(target=lambda: Slow().value) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not meeting.broken


def test_no_lock_of_a_class_is_left():
    sources = Path(er.__file__).parent.rglob("*.py")
    assert [file.name for file in sources if "import cached_property" in file.read_text()] == []


def test_an_import_leaves_garbage_collection_as_it_was():
    for collecting in (True, False):
        gc.enable() if collecting else gc.disable()
        try:
            assert er._imported("empirisk.lazy").lazy is lazy
            with pytest.raises(ModuleNotFoundError):
                er._imported("empirisk.no_such_module")
            assert gc.isenabled() is collecting
        finally:
            gc.enable()
