"""What is chosen of how a training is shared, where nothing is written."""

from __future__ import annotations

import pytest

from edl.spec import Cluster
from edl.spec.strategy import LARGEST_IN_WORKERS, complete_settings, problems


@pytest.mark.parametrize(
    ("written", "found"),
    [
        (Cluster(), Cluster(strategy="local")),
        (Cluster(workers=1), Cluster(workers=1, strategy="local")),
        (Cluster(workers=2), Cluster(2, 0, "allreduce")),
        (Cluster(strategy="allreduce"), Cluster(1, 0, "allreduce")),
        (Cluster(workers=2, parameter_servers=4), Cluster(2, 4, "async")),
        (Cluster(parameter_servers=2), Cluster(1, 2, "async")),
        (Cluster(local_steps=4), Cluster(1, 1, "async", local_steps=4)),
        (Cluster(workers=3, max_staleness=2), Cluster(3, 2, "async", max_staleness=2)),
        (Cluster(durable_updates="machine"), Cluster(1, 1, "async", durable_updates="machine")),
        (Cluster(workers=3, grads_to_wait=2), Cluster(3, 2, "sync", grads_to_wait=2)),
        (Cluster(workers=3, strategy="sync"), Cluster(3, 2, "sync", grads_to_wait=3)),
        (Cluster(workers=2, strategy="async"), Cluster(2, 1, "async")),
        (Cluster(workers=5, strategy="async"), Cluster(5, 3, "async")),
        (Cluster(max_workers=8), Cluster(2, 0, "allreduce", max_workers=8)),
        (Cluster(max_workers=1), Cluster(1, 0, "allreduce", max_workers=1)),
        (Cluster(workers=1, max_workers=4), Cluster(1, 0, "allreduce", max_workers=4)),
        (Cluster(parameter_servers=1, max_workers=4), Cluster(2, 1, "async", max_workers=4)),
    ],
)
def test_what_is_not_written_is_chosen(written: Cluster, found: Cluster) -> None:
    assert not list(problems(written))
    assert complete_settings(written) == found
    assert complete_settings(found) == found


def test_tables_too_large_for_each_worker_are_left_to_servers() -> None:
    assert complete_settings(Cluster(workers=2), LARGEST_IN_WORKERS) == Cluster(2, 0, "allreduce")
    assert complete_settings(Cluster(workers=2), LARGEST_IN_WORKERS + 1) == Cluster(2, 1, "async")
    assert complete_settings(Cluster(workers=1), LARGEST_IN_WORKERS + 1) == Cluster(1, 0, "local")
    written = Cluster(workers=2, strategy="allreduce")
    assert complete_settings(written, LARGEST_IN_WORKERS + 1) == written


@pytest.mark.parametrize(
    ("written", "field"),
    [
        (Cluster(parameter_servers=1, strategy="allreduce"), "strategy"),
        (Cluster(strategy="allreduce", local_steps=2), "local_steps"),
        (Cluster(strategy="allreduce", grads_to_wait=2), "grads_to_wait"),
        (Cluster(workers=2, strategy="local"), "strategy"),
        (Cluster(parameter_servers=1, strategy="local"), "strategy"),
        (Cluster(strategy="sync", local_steps=2), "local_steps"),
        (Cluster(grads_to_wait=2, local_steps=2), "local_steps"),
        (Cluster(strategy="async", grads_to_wait=2), "grads_to_wait"),
        (Cluster(strategy="allreduce", durable_updates="process"), "durable_updates"),
        (Cluster(grads_to_wait=2, durable_updates="process"), "durable_updates"),
        (Cluster(strategy="sync", max_staleness=1), "max_staleness"),
        (Cluster(strategy="sync", max_workers=4), "max_workers"),
        (Cluster(grads_to_wait=2, max_workers=4), "max_workers"),
        (Cluster(strategy="local", max_workers=4), "max_workers"),
        (Cluster(workers=5, max_workers=4), "max_workers"),
    ],
)
def test_what_does_not_go_together_is_a_problem_of_one_field(written: Cluster, field: str) -> None:
    assert [problem.field for problem in problems(written)] == [field]
