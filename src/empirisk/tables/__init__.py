"""Tables: reading them, finding out what their columns hold, and turning them into numbers that machines learn from."""

from empirisk.tables.columns import Column
from empirisk.tables.encoder import TableEncoder
from empirisk.tables.leaks import look_for_leaks
from empirisk.tables.model import TableModel
from empirisk.tables.read import read
from empirisk.tables.schema import Schema, understand
from empirisk.tables.target import Target

__all__ = ["Column", "Schema", "TableEncoder", "TableModel", "Target", "look_for_leaks", "read", "understand"]
