"""Memory of pods where nobody says it."""

from __future__ import annotations

from decimal import Decimal

from edl import spec
from edl.cluster.kubernetes import quantities
from edl.input.cache import ROOM
from sqlflow_edl.backends.kubernetes.manifests import resources
from sqlflow_edl.backends.kubernetes.settings import read_configuration
from tests.sqlflow_edl.backends.kubernetes import jobs

LARGE = {"features": (spec.Embedding(spec.HashBucket("word", 10_000_000), 16),)}


def test_a_small_model_takes_what_its_framework_takes() -> None:
    assert quantities.value(resources.default_worker_memory(jobs.job_spec())) < 2 << 30
    assert quantities.value(resources.default_server_memory(jobs.with_workers(2, servers=1))) < 1 << 30


def test_rows_that_stay_for_the_next_epochs_have_room_up_to_a_limit() -> None:
    def memory(rows: int, epochs: int) -> Decimal:
        training = spec.Training(epochs, 64)
        return quantities.value(
            resources.default_worker_memory(
                jobs.job_spec(rows=spec.Rows(True, rows, rows, 0), training=training)
            )
        )

    assert memory(10**8, epochs=1) == memory(1000, epochs=1)
    assert memory(10**8, epochs=2) - memory(10**8, epochs=1) == ROOM


def test_workers_of_trees_have_room_for_their_share_of_the_rows() -> None:
    def memory(rows: int, workers: int) -> Decimal:
        training = spec.Training(100, spec.ALL_ROWS)
        job = jobs.job_spec(
            framework="lightgbm",
            rows=spec.Rows(True, rows, rows, 0),
            training=training,
            cluster=jobs.with_workers(workers).cluster,
        )
        return quantities.value(resources.default_worker_memory(job))

    assert memory(1000, workers=2) < 2 << 30
    held = 10**8 * 3 * 8  # two one-hot columns and a number
    assert 2 * held < memory(10**8, workers=1) < 8 * held
    assert memory(10**8, workers=4) < memory(10**8, workers=1) / 2


def test_tables_are_where_they_are_held() -> None:
    table = 10_000_000 * 16 * 4
    held = jobs.job_spec(inputs=LARGE)
    on_servers = jobs.job_spec(inputs=LARGE, cluster=jobs.with_workers(2, servers=4).cluster)
    assert quantities.value(resources.default_worker_memory(held)) > 3 * 3 * table
    assert (
        quantities.value(resources.default_worker_memory(on_servers))
        < quantities.value(resources.default_worker_memory(held)) / 2
    )
    assert (
        3 * 3 * table / 4 < quantities.value(resources.default_server_memory(on_servers)) < 4 * 3 * table / 2
    )


def test_copies_with_neighbours_take_twice_as_much() -> None:
    cluster = jobs.with_workers(2, servers=2).cluster
    once = jobs.job_spec(inputs=LARGE, cluster=cluster)
    twice = jobs.job_spec(inputs=LARGE, cluster=cluster, checkpoints=spec.Checkpoints(copies="neighbours"))
    assert quantities.value(resources.default_server_memory(twice)) > 1.8 * float(
        quantities.value(resources.default_server_memory(once))
    )


def test_servers_without_a_place_for_checkpoints_have_room_for_each_others() -> None:
    def memory(*written: tuple[str, str], servers: int = 2) -> Decimal:
        job = jobs.job_spec(inputs=LARGE, cluster=jobs.with_workers(2, servers=servers).cluster)
        found = resources.resources(read_configuration(pairs=[*written]).settings(), job, "ps")
        return quantities.value(found["requests"]["memory"])

    alone = memory(("volume", "claim"))
    assert memory() > Decimal("1.8") * alone
    assert memory(("checkpoints", "s3://bucket/cuts")) == alone
    assert memory(servers=1) == memory(("volume", "claim"), servers=1)
