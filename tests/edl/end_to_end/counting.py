"""A model that counts in its parameters how often each row was applied, so that a job says itself what it lost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from edl.models.archive import read_archive
from edl.spec import CategoryId, Embedding, Numeric
from tests.edl.end_to_end.distributed import Job, table

BATCH = 64
IDS = 200_000  # so that their vectors are rows on the servers, and not in the graph
FEATURES = (Numeric("x"), Embedding(CategoryId("id", IDS), 2))
AS_TEXT = {"fc.numeric('x')": f"fc.numeric('x'), fc.embedding(fc.category_id('id', {IDS}), dim=2)"}
RATE = 2.0**-10

# Each dense number has the gradient 1, each id of a minibatch has its share of the rows, and SGD adds them up.
# The two parameters are on two servers, the larger one on the first.
MODEL = f"""

from edl.torch import Embedding


class Counting(nn.Module):
    def __init__(self):
        super().__init__()
        self.one = nn.Parameter(torch.zeros(600))
        self.other = nn.Parameter(torch.zeros(500))
        self.rows = Embedding("rows", 2, initial="zeros")

    def forward(self, features):
        total = self.one.sum() + self.other.sum() + 0 * features["dense"]
        return total + self.rows(features["f1"]).sum(dim=1, keepdim=True)


def custom_model():
    return Counting()


def loss(labels, predictions):
    return predictions


def optimizer(parameters):
    return torch.optim.SGD(parameters, {RATE})
"""
# The same without ids, of which only `steps` can be counted.
DENSE = MODEL.replace('        self.rows = Embedding("rows", 2, initial="zeros")\n', "").replace(
    'total + self.rows(features["f1"]).sum(dim=1, keepdim=True)', "total"
)


def data(rows: int, per_id: int = 1) -> pa.Table:
    """Ids of so many rows each."""
    return table(rows).append_column("id", pa.array(np.arange(rows) // per_id * 37 % IDS))


def program(**more: Any) -> dict[str, Any]:
    """Arguments of a `Job` that trains the model; more: of its JobSpec."""
    return {
        "batch_size": BATCH,
        "replace": AS_TEXT,
        "append": MODEL,
        "spec": {"inputs": {"features": FEATURES}, **more},
    }


class Counts(NamedTuple):
    """steps: applied on each of two servers. rows: how often each id was applied, if a step has one gradient."""

    steps: tuple[float, float]
    ids: npt.NDArray[np.int64]
    rows: npt.NDArray[np.float64]


def steps(weights: Mapping[str, npt.NDArray[Any]]) -> tuple[float, float]:
    """Number of applied ones on each of two servers."""
    [one], [other] = (
        np.unique(weights[name]) / -RATE for name in ("one", "other")
    )  # the numbers of a parameter are all the same
    return float(one), float(other)


def counts(job: Job) -> Counts:
    return counts_in(dict(read_archive(job.archive).weights()))


def counts_in(found: Mapping[str, npt.NDArray[Any]]) -> Counts:
    rows = found["rows:rows"] / -RATE * BATCH
    assert (rows[:, 0] == rows[:, 1]).all()
    return Counts(steps(found), found["rows:ids"], rows[:, 0].astype(np.float64))
