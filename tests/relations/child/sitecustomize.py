"""Puts a fault back in a child of `tests.relations.faults`, which has this folder in its PYTHONPATH."""

from tests.relations.faults import put_back_in_child

put_back_in_child()
