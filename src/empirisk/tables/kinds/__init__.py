"""What columns may hold: a class for each kind, in a file of its own, and their list.

A new kind is a file with a subclass of `Kind` and an entry in `KINDS`; `Kind` says what it may state.
"""

from empirisk.tables.kinds.base import Kind
from empirisk.tables.kinds.boolean import Boolean
from empirisk.tables.kinds.category import Category
from empirisk.tables.kinds.date import Date
from empirisk.tables.kinds.number import Number
from empirisk.tables.kinds.sequence import Sequence
from empirisk.tables.kinds.several import Several
from empirisk.tables.kinds.text import Text
from empirisk.tables.kinds.unused import Constant, Identifier, Nested

#: By name; the first that recognises a column of text has it.
KINDS: dict[str, Kind] = {
    kind.name: kind
    for kind in (
        Constant(),
        Number(),
        Boolean(),
        Date(),
        Several(),
        Sequence(),
        Text(),
        Identifier(),
        Category(),
        Nested(),
    )
}
#: The names of those that machines learn from.
USED = tuple(name for name, kind in KINDS.items() if kind.used)
