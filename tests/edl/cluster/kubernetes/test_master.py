"""Whole jobs in pods without any client: MariaDB in, a model and a table out, whatever dies on the way."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from edl.cluster.kubernetes import status_map
from edl.data import Source, connect
from edl.data.server_url import SECRETS
from edl.jobs.cluster_folder import RunSpec
from edl.jobs.events import EpochEnd
from edl.jobs.failure import Failed
from edl.jobs.job_folder import JobFolder
from edl.jobs.outcome import Outcome
from edl.models.pending import Intent
from edl.models.registry.factory import open_registry
from edl.models.registry.records import ModelRecord
from edl.spec import Checkpoints, Output, Rows
from edl.spec import Cluster as ClusterSpec
from tests.edl.cluster.kubernetes.deployed import Deployed, deploy, job_of, outcome_of
from tests.kubernetes.process import Cluster
from tests.mariadb import PASSWORD, Server

ROWS, VALIDATION, TABLE = 2_000, 400, 70_000
RECORD = ModelRecord("DNNRegressor", "torch", ROWS, {}, "SELECT …")

# A program that does not conclude its first epochs before the test wants it.
GATE = """

class Gate(Callback):
    def on_epoch_end(self, epoch, metrics, control):
        while epoch in {epochs} and not Path(f"{folder}/gate-{{epoch}}").exists():
            time.sleep(0.02)


def callbacks():
    return [Gate()]
"""
IMPORTS = "import time\nfrom pathlib import Path\n\nfrom edl import Callback\n"


@pytest.fixture(scope="module")
def source(mariadb: Server) -> Iterator[Source]:
    """y = 3 x + 1."""
    with pytest.MonkeyPatch.context() as patch, connect(mariadb.url()) as found:
        patch.setenv(SECRETS, os.environ[SECRETS])
        found.execute("CREATE TABLE t AS SELECT seq AS n, (seq % 97) / 48.0 - 1 AS x FROM seq_1_to_70000")
        found.execute("ALTER TABLE t ADD y DOUBLE AS (3 * x + 1)")
        yield found


def run(
    double: Cluster, job: JobFolder, source: Source, folder: Path, state_store: dict[str, str] | None = None
) -> Deployed:
    assert PASSWORD not in "".join(path.read_text() for path in job.path.rglob("*") if path.is_file())
    how = RunSpec("torch", master_arguments=("--lease-secs", "3"))
    return deploy(double, job, how, {source.url: PASSWORD}, folder, state_store)


def left_in(source: Source) -> list[str]:
    """Tables of rows that are pinned, or staged."""
    reader = source.execute("SHOW TABLES LIKE 'sqlflow_edl_%'")
    assert reader is not None
    names = reader.read_all().column(0).to_pylist()
    return [name for name in names if name.startswith(("sqlflow_edl_rows_", "sqlflow_edl_stage_"))]


@pytest.fixture(scope="module")
def trained(
    kubernetes: Cluster, source: Source, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Outcome, Deployed]:
    """A group of two, of which one is killed, and then the master, before the second epoch ends."""
    kubernetes.go_wrong()
    folder = tmp_path_factory.mktemp("trained")
    job = job_of(
        source,
        f"SELECT x, y FROM t WHERE n <= {ROWS + VALIDATION}",
        Intent("train", source.url, "a.m", RECORD),
        Rows(True, ROWS + VALIDATION, ROWS, VALIDATION),
        epochs=3,
        replace={"import torch\n": f"{IMPORTS}import torch\n"},
        append=GATE.format(epochs=(2,), folder=folder),
        changes={"cluster": ClusterSpec(workers=2, strategy="allreduce")},
    )
    deployed = run(kubernetes, job, source, folder)
    deployed.until(lambda: any(isinstance(event, EpochEnd) for event in deployed.events()))
    deployed.delete(f"{deployed.deployment.name}-worker-1-0")
    deployed.until(lambda: deployed.phase("worker-1-1") == "Running")
    first = deployed.master()
    deployed.delete(first, grace=20)
    deployed.until(lambda: deployed.events() and deployed.master() != first)
    (folder / "gate-2").touch()
    return outcome_of(deployed), deployed


def test_a_job_goes_on_without_a_worker_and_a_master_and_its_model_is_stored_once(
    trained: tuple[Outcome, Deployed], source: Source
) -> None:
    outcome, deployed = trained
    assert (outcome.stored, outcome.epochs, outcome.rows) == ("a.m@1", 3, 3 * ROWS)
    [version] = open_registry(source).list("a.m")
    assert (version.reference, version.record.metrics) == ("a.m@1", outcome.figures)
    assert deployed.until(lambda: deployed.phases() <= {"Succeeded", "Failed"})
    assert deployed.failures() == 0  # who is told to leave has not failed
    assert not left_in(source)


@pytest.mark.soak
def test_results_of_several_workers_are_one_table_though_the_master_was_lost(
    trained: tuple[Outcome, Deployed], kubernetes: Cluster, source: Source, tmp_path: Path
) -> None:
    job = job_of(
        source,
        "SELECT x, n FROM t",
        Intent("predict", source.url, "scores"),
        Rows(True, TABLE, 0, 0),
        changes={
            "cluster": ClusterSpec(workers=2),
            "trained_model": "a.m@1",
            "output": Output("scores", "y", ("n",)),
        },
    )
    deployed = run(kubernetes, job, source, tmp_path)
    deployed.until(lambda: deployed.phase("worker-0-0") == "Running")
    first = deployed.master()
    deployed.delete(first)
    assert outcome_of(deployed).stored == f"scores: {TABLE:,} rows"
    assert deployed.master() != first
    query = "SELECT COUNT(*) AS found, COUNT(DISTINCT n) AS known, COUNT(y) AS scored FROM scores"
    reader = source.execute(query)
    assert reader is not None
    assert reader.read_all().to_pylist() == [{"found": TABLE, "known": TABLE, "scored": TABLE}]
    assert not left_in(source)


@pytest.mark.soak
def test_a_job_that_no_master_can_go_on_with_fails_at_once_and_is_noted(
    kubernetes: Cluster, source: Source, tmp_path: Path
) -> None:
    intent = Intent("train", source.url, "c.m", RECORD)
    job = job_of(source, "SELECT x, y FROM t", intent, Rows(True, TABLE, TABLE, 0))
    deployed = run(kubernetes, job, source, tmp_path, state_store={"state.1": "bm9uc2Vuc2U="})
    assert deployed.until(lambda: deployed.conditions().get("Failed")) == "PodFailurePolicy"
    end = status_map.read_end(deployed.status())
    assert isinstance(end, Failed)
    assert end.message == "the state of this job is damaged"
    assert deployed.events() == [end]
    [version] = open_registry(source).list("c.m")
    assert (version.state, version.reason) == ("failed", end.message)
    assert not left_in(source)


@pytest.mark.soak
@pytest.mark.parametrize(
    "lacks",
    [("pods", "list"), ("pods", "create"), ("configmaps", "get"), ("configmaps", "update")],
    ids=lambda right: " ".join(reversed(right)),
)
def test_a_job_whose_account_lacks_a_right_ends_with_the_right_and_the_account(
    kubernetes: Cluster, source: Source, tmp_path: Path, lacks: tuple[str, str]
) -> None:
    intent = Intent("train", source.url, "d.m", RECORD)
    changes = {"cluster": ClusterSpec(workers=1)}
    job = job_of(source, "SELECT x, y FROM t", intent, Rows(True, TABLE, TABLE, 0), changes=changes)
    how = RunSpec("torch", master_arguments=("--lease-secs", "3"))
    deployed = deploy(kubernetes, job, how, {source.url: PASSWORD}, tmp_path, lacks=lacks)
    assert deployed.until(lambda: deployed.conditions().get("Failed")) == "PodFailurePolicy"
    [end] = [event for event in deployed.events() if isinstance(event, Failed)]
    resource, verb = lacks
    name, namespace = deployed.deployment.name, deployed.deployment.namespace
    right = f"may not {verb} {resource} in the namespace {namespace}"
    assert end.message == f"the account {name} of the job's master {right}"
    assert f"resources [{resource}], verbs [{verb}]" in (end.hint or "")
    assert "Traceback" not in deployed.log()


@pytest.mark.soak
def test_a_trainer_finds_its_checkpoint_with_the_master_and_with_the_one_that_follows(
    kubernetes: Cluster, source: Source, tmp_path: Path
) -> None:
    job = job_of(
        source,
        f"SELECT x, y FROM t WHERE n <= {ROWS + VALIDATION}",
        Intent("train", source.url, "b.m", RECORD),
        Rows(True, ROWS + VALIDATION, ROWS, VALIDATION),
        epochs=4,
        batch_size=20,
        replace={"import torch\n": f"{IMPORTS}import torch\n"},
        append=GATE.format(epochs=(1, 2), folder=tmp_path),
        changes={"cluster": ClusterSpec(workers=1), "checkpoints": Checkpoints(steps=30, secs=0)},
    )
    deployed = run(kubernetes, job, source, tmp_path)

    def cut_of(worker: str) -> bool:
        found = status_map.read_snapshot(deployed.status())
        return found is not None and found.checkpoint.endswith(worker)

    deployed.until(lambda: cut_of("worker-0-0"))
    deployed.delete(f"{deployed.deployment.name}-worker-0-0")
    (tmp_path / "gate-1").touch()  # the second worker has steps enough for cuts of its own
    deployed.until(lambda: cut_of("worker-0-1"))
    assert "training resumes from step" in deployed.log()
    first = deployed.master()
    deployed.delete(first)  # with its disk
    (tmp_path / "gate-2").touch()
    deployed.until(lambda: deployed.events() and deployed.master() != first)
    assert outcome_of(deployed).rows == 4 * ROWS
    assert "training restarts" not in deployed.log()
