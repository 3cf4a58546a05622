"""Where the checkpoints of a job are: as its environment says."""

from __future__ import annotations

from pathlib import Path

import pytest

from edl.checkpoints import factory
from edl.checkpoints.folder import SharedFolder
from edl.checkpoints.master_client import Relay
from edl.checkpoints.object_store import ObjectStore
from edl.cluster import Instance
from edl.cluster.kubernetes.deployment import Deployment, write_deployment
from edl.jobs.cluster_folder import ClusterFolder
from edl.spec import Checkpoints

WORKER = Instance("worker-0", "worker", 2)


@pytest.fixture
def job(tmp_path: Path) -> Path:
    folder = tmp_path / "20261122-a1b2c3"
    folder.mkdir()
    cluster = ClusterFolder(folder)
    cluster.path.mkdir()
    cluster.make_token()
    cluster.write_master_address("127.0.0.1:1")
    return folder


def test_instances_of_one_machine_share_the_folder_of_the_job(job: Path) -> None:
    for store in (factory.for_master(job), factory.for_instance(job, WORKER)):
        assert isinstance(store, SharedFolder)
        assert store.folder == job / "checkpoints"
    assert factory.keeper(job) is None
    assert factory.curves(job) == ""


@pytest.mark.parametrize("pods", [True, False])
def test_pods_send_them_to_the_master_as_do_processes_that_are_told_to(
    job: Path, pods: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if pods:
        write_deployment(job, Deployment("n", "ns", job.name, {}, {}))
    else:
        monkeypatch.setenv(factory.VARIABLE, "master")
    assert factory.for_master(job).folder == job / "checkpoints"
    assert factory.keeper(job) is not None
    store = factory.for_instance(job, WORKER)
    assert isinstance(store, Relay)
    assert store.folder == job / "own" / "worker-0-2"


def test_a_volume_has_a_folder_for_each_job_which_goes_with_it(
    job: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(factory.VARIABLE, str(tmp_path / "volume"))
    write_deployment(job, Deployment("n", "ns", job.name, {}, {}))
    for store in (factory.for_master(job), factory.for_instance(job, WORKER)):
        assert isinstance(store, SharedFolder)
        assert store.folder == tmp_path / "volume" / job.name
        store.folder.mkdir(parents=True)
        store.clear()
        assert not store.folder.exists()
    assert factory.keeper(job) is None
    assert factory.curves(job) == f"{tmp_path}/volume/tensorboard/{job.name}"


def test_a_url_is_an_object_store(job: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("fsspec")
    monkeypatch.setenv(factory.VARIABLE, f"file://{tmp_path}/bucket/")
    one, other = factory.for_master(job), factory.for_instance(job, WORKER)
    assert isinstance(one, ObjectStore)
    assert one.folder != other.folder
    (one.folder / "1").mkdir(parents=True)
    (one.folder / "1" / "w").write_bytes(b"w")
    one.publish("1", "w")
    assert (tmp_path / "bucket" / job.name / "1" / "w").exists()
    assert other.names() == ["1"]


@pytest.mark.parametrize(
    ("where", "servers", "copies"),
    [("", 2, "files"), ("master", 1, "files"), ("master", 2, "neighbours"), ("/volume", 2, "files")],
)
def test_several_servers_keep_their_parameters_with_each_other_rather_than_with_the_master(
    job: Path, where: str, servers: int, copies: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(factory.VARIABLE, where)
    assert factory.adapt_settings(Checkpoints(secs=7.0), job, servers) == Checkpoints(secs=7.0, copies=copies)  # type: ignore[arg-type]
