"""Relations of trainings on several workers, and of trainings that die and go on."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from functools import partial

import msgspec
import pytest

from edl.jobs.cluster_folder import TESTING
from edl.testing import KILL
from sqlflow_edl.backends import submit
from tests.relations.comparing import Pair, answer
from tests.relations.registry import Case, Pairs, relation, training_input
from tests.relations.statements import TREES

distributed = partial(
    relation,
    trains=True,
    slow=True,
    sources=("duckdb", "sqlite", "mysql", "postgres"),
    shapes=("plain", "nulls", "skew"),
)
NETWORKS = ("linear_number", "linear_classes", "dense_number", "dense_classes")


@distributed(models=NETWORKS)
def with_one_worker(case: Case) -> Pairs:
    """A network trained by a master and one worker has the weights of one trained without."""
    yield Pair(
        answer(lambda: case.place.fit(case.table, case.train, case.source)),
        answer(
            lambda: case.place.fit(case.table, case.train.with_options(train__num_workers="1"), case.source)
        ),
    )


@distributed("split held", tolerance="workers", models=TREES, draw=training_input(train__num_workers="1"))
def with_three_workers(case: Case) -> Pairs:
    """Trees whose histograms three workers add up have the figures of one worker."""
    first, second = (
        answer(
            lambda workers=workers: case.place.fit(
                case.table,
                case.train.in_order.with_options(train__num_workers=workers),
                case.source,
                position=True,
            )
        )
        for workers in ("1", "3")
    )
    yield Pair(getattr(first, "figures", first), getattr(second, "figures", second))


@contextlib.contextmanager
def dying(order: str) -> Iterator[None]:
    """Let workers of jobs die at a point of `edl.testing`."""
    original = submit.make_run_spec

    def how(*arguments: object, **settings: object) -> object:
        return msgspec.structs.replace(
            original(*arguments, **settings), worker="edl.testing:worker", environment={KILL: order}
        )

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(TESTING, "edl.testing:worker")
        patch.setattr(submit, "make_run_spec", how)
        yield


@distributed(models=NETWORKS)
def interrupted(case: Case) -> Pairs:
    """A training whose worker is killed and goes on from its last checkpoint has the same weights."""
    train = case.train.with_options(
        train__num_workers="1",
        train__checkpoint_steps=str(case.draw.randint(1, 4)),
        epochs="4",
        train__batch_size="16",
    )
    order = f"worker-0/0 in a task {case.draw.randint(1, 12)}"
    first = answer(lambda: case.place.fit(case.table, train, case.source))
    with dying(order):
        second = answer(lambda: case.place.fit(case.table, train, case.source))
    yield Pair(first, second, what=order)
