"""What the contents of a model file cost: memory, and work as if nothing in them were shared.

A small file can mean much: texts that NumPy pads, parts that are shared by parts that are shared, one array that a
thousand objects hold. Everything is counted before it is done, so that a file of ten megabytes is read within seconds.
"""

from typing import NamedTuple

from empirisk.errors import NotLoaded, TooLarge

#: Bytes to look at in the arrays and lists of any file, which take a second or two, and how many for each of its own.
FREE_WORK, WORK_GROWTH = 2 * 10**8, 16
#: Objects that the shared ones may count as when each is written out, and how many more for each that is written.
FREE_OBJECTS, OBJECT_GROWTH = 10_000, 16
#: Work in those bytes: to check an object, to look at a value, to make a table, its column or a random generator.
OBJECT, VALUE, TABLE, COLUMN, GENERATOR = 4_000, 32, 64_000, 4_000, 16_000
#: Memory in bytes beside that of the tree: of a list, of its entries, and of what is neither a list nor plain.
LIST, ENTRY, TAGGED = 64, 8, 512


class Damaged(NotLoaded):
    """A model file is not as one that was written; ``what`` says why."""

    def __init__(self, what: str):
        super().__init__(f"The model file is damaged: {what}; copy or write it again.")
        self.what = what


class Cost(NamedTuple):
    """What an object has cost with all that it holds."""

    work: int
    objects: int


class Account:
    """What was spent on a file so far.

    Parameters
    ----------
    limit : float
        Bytes of memory that its contents may take.
    length : int
        Bytes of the file.
    """

    def __init__(self, limit: float, length: int):
        self._limit, self._most_work = limit, FREE_WORK + WORK_GROWTH * length
        self._memory = self._work = self._objects = self._written = 0

    def take(self, size: int) -> None:
        """Count memory before it is taken: that of all contents together is limited."""
        self._memory += size
        if self._memory > self._limit:
            raise TooLarge(
                f"The model file needs {self._memory / 1e9:.3g} GB, more than the limit of {self._limit / 1e9:.3g} GB; "
                "raise er.load(path, limit='...') if you trust it."
            )

    def add_work(self, size: int) -> None:
        """Count work: bytes that the rules are going to look at."""
        self._work += size
        if self._work > self._most_work:
            raise Damaged("to check all that it holds would take for ever")

    def begin(self) -> Cost:
        """Note that an object begins, and what was spent before it."""
        before = Cost(self._work, self._objects)
        self._written += 1
        self._objects += 1
        self.add_work(OBJECT)
        return before

    def since(self, before: Cost) -> Cost:
        """What was spent since then."""
        return Cost(self._work - before.work, self._objects - before.objects)

    def repeat(self, cost: Cost) -> None:
        """Count an object that is there already once more, with all that it holds."""
        self._objects += cost.objects
        if self._objects > FREE_OBJECTS + OBJECT_GROWTH * self._written:
            raise Damaged("its objects share others without end")
        self.add_work(cost.work)
