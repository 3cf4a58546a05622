"""Trained model as one query in plain SQL over its raw columns: `sqlflow export m --sql`.

A query is a chain of common table expressions: the columns of the table, numbers and ids, features, layers or trees,
scores, and the columns of PREDICT. All arithmetic is in double precision.
"""

from sqlflow_edl.extensions.model_sql.dialects import TARGETS
from sqlflow_edl.extensions.model_sql.query import QueryOptions, model_query

__all__ = ["TARGETS", "QueryOptions", "model_query"]
