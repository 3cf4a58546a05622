"""Registries, model stores, pinned orders and job folders that earlier versions wrote."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from edl.cluster.local.client import SupervisedJob
from edl.data import connect
from edl.errors import SemanticError
from edl.jobs.cluster_folder import ClusterFolder
from edl.master.resume import prepare
from edl.models.archive import read_archive
from edl.models.registry.base import Registry
from edl.models.registry.factory import open_registry
from edl.program import read_spec
from tests.databases import Databases
from tests.museum import interrupted, orders, registries
from tests.museum.registries import FIRST, NAME, REASON, RENAMED, SECOND, STORE, TAG, record

SERVERS = ("mysql", "postgres", "maxcompute")


def variants(paths: Iterable[Path]) -> list[Any]:
    """Parameters by the names of sources: every change is tested on all that need no server."""
    return [
        pytest.param(path, id=path.stem, marks=pytest.mark.soak if path.stem in SERVERS else [])
        for path in paths
    ]


def assert_holds_the_versions(registry: Registry, folder: Path) -> None:
    """All that the registry of the museum had when it was written, and a new version gets the next number."""
    versions = registry.list()
    assert [(each.version, each.state, each.current, each.tags) for each in versions] == [
        (1, "ready", True, (TAG,)),
        (2, "ready", False, ()),
        (3, "failed", False, ()),
    ]
    assert [each.record for each in versions] == [record(1), record(2), record(3)]
    assert versions[2].reason == REASON
    for reference, archive in ((NAME, FIRST), (f"{NAME}@{TAG}", FIRST), (f"{NAME}@2", SECOND)):
        registry.load(reference, folder / "loaded.zip")
        assert (folder / "loaded.zip").read_bytes() == archive.read_bytes()
    with pytest.raises(SemanticError, match=r"the training of model größe\.line@3 failed"):
        registry.find(f"{NAME}@3")
    assert registry.save(NAME, SECOND, record(5)) == 5
    assert registry.find(NAME).version == 5
    registry.activate(f"{NAME}@2")
    assert registry.untag(NAME, TAG).version == 1
    assert registry.drop(NAME) == 4


@pytest.mark.parametrize("dump", variants(map(registries.path_of, registries.DATABASES)))
def test_a_registry_that_a_database_holds_is_read_and_continued(
    dump: Path, databases: Databases, tmp_path: Path
) -> None:
    name = dump.stem
    url = databases.url(name)
    if name in ("duckdb", "sqlite"):
        connect(url, create=True).close()
    registries.load(name, url)
    with connect(url) as source:
        assert_holds_the_versions(open_registry(source), tmp_path)


@pytest.mark.parametrize("store", [STORE, RENAMED], ids=["as it was saved", "renamed"])
def test_a_model_store_is_read_and_continued(store: Path, tmp_path: Path) -> None:
    shutil.copytree(store, tmp_path / "store")
    with connect("duckdb:") as source:
        assert_holds_the_versions(open_registry(source, str(tmp_path / "store")), tmp_path)


@pytest.mark.variants(2)
@pytest.mark.parametrize("digests", variants(orders.ORDERS / f"{name}.json" for name in orders.SOURCES))
def test_rows_are_pinned_in_the_order_and_with_the_values_of_their_time(
    digests: Path, databases: Databases, tmp_path: Path
) -> None:
    name = digests.stem
    url = databases.url(name) if name not in orders.FILES else f"{name}:{tmp_path}/typed.{name}"
    if name in orders.FILES:  # the source makes a database beside the file
        shutil.copy(orders.ORDERS / f"typed.{name}", tmp_path)
    with connect(url, create=name not in orders.FILES) as source:
        measured = orders.measure(source, orders.make_table(source, name), tmp_path / "rows")
    stored = orders.read(name)
    for part in ("columns", "ways"):
        changed = [key for key, value in stored[part].items() if measured[part].get(key) != value]
        assert not changed, f"{part} of other rows, values or types than they were: {', '.join(changed)}"


def test_a_paused_job_is_prepared_to_go_on_from_its_last_checkpoint(tmp_path: Path) -> None:
    resumption = prepare(interrupted.unpack(tmp_path))
    assert str(resumption) == "training resumes from step 150, in epoch 31"  # 5 steps each


@pytest.mark.soak
def test_a_paused_job_is_resumed_to_the_weights_of_the_training_without_a_pause(tmp_path: Path) -> None:
    job = interrupted.unpack(tmp_path)
    prepare(job)
    with SupervisedJob.start(job, ClusterFolder(job.path).run_spec()) as running:
        outcome = running.follow(lambda event: None)
    spec = read_spec(job.program)
    assert outcome.rows == spec.training.epochs * spec.rows.training
    whole, resumed = read_archive(interrupted.WHOLE).weights(), read_archive(job.archive).weights()
    assert whole.keys() == resumed.keys()
    for name, values in whole.items():
        np.testing.assert_allclose(resumed[name], values, rtol=1e-6, atol=1e-7)
