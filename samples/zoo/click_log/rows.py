"""The click log's columns as arrays, for both frameworks."""

import numpy as np

from edl import features as fc

FIELDS = 26
IDS = 100_000  # of each field, at most
LABEL = fc.class_label("label", [0, 1])


def ids_and_clicks(batch, mode):
    """int64 ids (n, 26), each field's in a range of its own, and clicks (n, 1); mode as of `feed`."""
    ids = np.column_stack([batch.column(f"c{field}").to_numpy() for field in range(FIELDS)])
    return ids + np.arange(FIELDS) * IDS, LABEL.transform(batch, mode)
