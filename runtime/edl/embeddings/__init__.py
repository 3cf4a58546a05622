"""Row tables: embeddings outside of the model's graph. No framework is imported here.

A model with a few million embedding rows uses a few thousand in a minibatch; inside the graph, a step costs as much
as the whole table. A `RowTable` keeps the rows in the process, or parameter servers keep them; a step gets the rows
of its minibatch as an argument, and their gradient updates them.
"""

from edl.embeddings.cut import TableCut
from edl.embeddings.initializers import Initial
from edl.embeddings.optimizers import Optimizer
from edl.embeddings.table import RowTable, StoredTable, TableCopy, TableSpec, distinct_ids, sum_parts

__all__ = [
    "Initial",
    "Optimizer",
    "RowTable",
    "StoredTable",
    "TableCopy",
    "TableCut",
    "TableSpec",
    "distinct_ids",
    "sum_parts",
]
