"""Tables: reading them, finding out what their columns hold, and turning them into numbers that machines learn from."""

from empirisk.extras import need

need("A table", "learn", "polars")

from empirisk.tables.encoding.encoder import TableEncoder
from empirisk.tables.model import TableModel
from empirisk.tables.reading.read import read
from empirisk.tables.understanding.column import Column
from empirisk.tables.understanding.leaks import look_for_leaks
from empirisk.tables.understanding.schema import Schema, understand
from empirisk.tables.understanding.target import Target

__all__ = ["Column", "Schema", "TableEncoder", "TableModel", "Target", "look_for_leaks", "read", "understand"]
