"""Jobs as tables and as one object."""

from __future__ import annotations

import os
from datetime import datetime

import msgspec
import pytest

from edl.jobs import job_folder
from edl.jobs.cluster_folder import ClusterFolder, Process
from edl.jobs.snapshot import Counts, InstanceLoad, Row, ServerCounts, Snapshot, Staleness
from edl.models.pending import Intent, write_intent
from sqlflow_edl.backends import find as handles
from sqlflow_edl.backends import report as reports
from sqlflow_edl.backends.local import LocalJobHandle
from sqlflow_edl.backends.report import (
    INSTANCES,
    JOBS,
    SERVERS,
    JobReport,
    facts,
    instance_rows,
    list_rows,
    server_rows,
)
from sqlflow_edl.reports.text import duration

SNAPSHOT = Snapshot(
    "2026-01-01T00:00:00.000+00:00",
    "2026-01-01T00:00:01.000+00:00",
    tasks={"train": Counts(1200, 2, 1), "evaluate": Counts(done=4)},
    epoch=2,
    epochs=9,
    rows=81_920,
    instances=(Row("worker-0", "worker", 2, "running", "pid 7", "", 2, "train 0:8192"),),
    generation=1,
    master_relaunches=1,
)


def report(job: job_folder.JobFolder) -> JobReport:
    return reports.report(job, LocalJobHandle(job).details())


def supervised(snapshot: Snapshot | None = SNAPSHOT) -> job_folder.JobFolder:
    job = job_folder.create("train", "SELECT *\n  FROM t TO TRAIN DNN LABEL y INTO m")
    folder = ClusterFolder(job.path)
    folder.write_process("supervisor", Process.of(os.getpid()))
    folder.write_master_address("127.0.0.1:4711")
    if snapshot is not None:
        folder.write_process("master", Process.of(os.getppid()))
        snapshot.write(folder.snapshot)
    return job


def test_a_running_job_has_its_tasks_and_every_process() -> None:
    found = report(supervised())
    assert found.tasks["train"] == Counts(1200, 2, 1)
    assert (found.state, found.epoch, found.rows, found.generation) == ("running", 2, 81_920, 1)
    assert [(row.name, row.role, row.place, row.relaunches) for row in found.instances] == [
        ("supervisor", "supervisor", f"pid {os.getpid()}", 0),
        ("master", "master", f"pid {os.getppid()}", 1),
        ("worker-0", "worker", "pid 7", 2),
    ]
    assert found.instances[1].address == "127.0.0.1:4711"
    assert dict(zip(INSTANCES, instance_rows(found)[2], strict=True)) == {
        "name": "worker-0",
        "role": "worker",
        "state": "running",
        "place": "pid 7",
        "address": "",
        "incarnation": 2,
        "relaunches": 2,
        "task": "train 0:8192",
        "note": "",
    }


def test_a_group_is_told_with_its_members() -> None:
    snapshot = msgspec.structs.replace(SNAPSHOT, group=7, members=("worker-1", "worker-0"))
    assert ("group", "7: worker-1, worker-0") in facts(report(supervised(snapshot)))
    assert "group" not in dict(facts(report(supervised())))


def test_what_became_of_updates_is_told_if_there_were_any() -> None:
    snapshot = msgspec.structs.replace(
        SNAPSHOT,
        lost_updates=1_200,
        lost_rows=76_800,
        counts=ServerCounts(stale=3, staleness=Staleness(2_000, 2_500, 7, 12)),
    )
    known = dict(facts(report(supervised(snapshot))))
    assert (
        known["lost updates"] == "1,200, of 76,800 rows, with lost servers or workers (train.durable_updates)"
    )
    assert known["staleness"] == (
        "1.2 updates on average, at most 7; 12 of 2,000 gradients were beyond train.max_staleness"
    )
    assert known["stale gradients"] == "3, computed again for a later round"
    assert not {"lost updates", "staleness", "stale gradients"} & dict(facts(report(supervised()))).keys()


def test_parameter_servers_have_a_row_of_what_they_hold_and_do() -> None:
    server = Row("ps-0", "ps", 0, "running", "pid 8", "127.0.0.1:4712", note="hot")
    load = InstanceLoad(1_200_000, 153_600_000, 5e6, 31_000.4, 0.876, {"f0": 1_000_000, "f1": 200_000})
    loaded = msgspec.structs.replace(server, load=load)
    rows = (*SNAPSHOT.instances, loaded, msgspec.structs.replace(server, name="ps-1"))
    snapshot = msgspec.structs.replace(
        SNAPSHOT,
        instances=rows,
        generation=3,
        checkpoint="000002-000007",
        counts=ServerCounts(5_000, 12),
    )
    found = report(supervised(snapshot))
    assert [dict(zip(SERVERS, row, strict=True)) for row in server_rows(found)] == [
        {
            "parameter server": "ps-0",
            "rows": "1,200,000",
            "MB": "153.6",
            "pulled rows/s": "5,000,000",
            "pushed rows/s": "31,000",
            "busy": "87.6 %",
        }
    ]
    assert instance_rows(found)[3][list(INSTANCES).index("note")] == "hot"
    known = dict(facts(found))
    assert (known["generation"], known["checkpoint"]) == ("3", "000002-000007")
    assert known["embedding rows"] == "f0 1,000,000, f1 200,000"
    assert known["evicted rows"] == "5,000 (train.embedding_max_rows, train.embedding_ttl_steps)"
    assert known["refused gradients"] == "12, of ids without a row yet (train.embedding_min_count)"


def test_a_running_job_tells_where_its_figures_and_curves_are() -> None:
    job = supervised(msgspec.structs.replace(SNAPSHOT, step=160, loss=0.123456, rate=99.5))
    ClusterFolder(job.path).write_metrics("127.0.0.1:9090")
    job.tensorboard.mkdir()
    found = report(job)
    assert (found.step, found.loss, found.rows_per_second) == (160, 0.123456, 99.5)
    known = dict(facts(found))
    assert known["loss"] == "0.1235"
    assert known["metrics"] == "http://127.0.0.1:9090/metrics"
    assert known["tensorboard"] == str(job.tensorboard)
    job.end("failed", "nothing")
    assert (report(job).metrics, report(job).tensorboard) == ("", str(job.tensorboard))


def test_the_facts_are_those_that_there_are() -> None:
    known = dict(facts(report(supervised())))
    assert known["train tasks"] == "1,200 to do, 2 in work, 1 done"
    assert (known["epoch"], known["rows"]) == ("2 of 9", "81,920")
    assert not {"error", "generation", "checkpoint"} & known.keys()
    job = supervised(None)
    job.end("failed", "there is no table t")
    known = dict(facts(report(job)))
    assert known["error"] == "there is no table t"
    assert not {"epoch", "rows", "train tasks"} & known.keys()


def test_a_job_says_that_its_first_master_is_not_there_yet() -> None:
    [_, master] = report(supervised(None)).instances
    assert (master.state, master.place) == ("pending", "")


def test_of_a_job_that_is_over_no_instance_runs() -> None:
    job = supervised()
    job.update(started_as="another boot:1")
    found = report(job)
    assert found.state == "died"
    assert {row.state for row in found.instances} == {"ended"}
    job.end("done")
    assert report(job).state == "done"


def test_a_job_that_died_took_the_time_to_its_last_sign_of_life() -> None:
    job = supervised()
    began = datetime.fromisoformat(job.status().started).timestamp()
    log = job.logs / "worker-0.log"
    log.write_text("epoch 3")
    for path in (log, job.rows, job.program, ClusterFolder(job.path).snapshot):
        if path.exists():
            os.utime(path, (began + 90, began + 90))
    job.update(started_as="another boot:1", started="2026-01-01T00:00:00.000+00:00")
    started = datetime.fromisoformat(job.status().started).timestamp()
    dead = report(job)
    job_folder.sweep()  # may be days later
    assert report(job).seconds == dead.seconds == pytest.approx(began + 90 - started, abs=0.01)
    [line] = list_rows(handles.summaries())
    assert line[JOBS.index("took")] == duration(dead.seconds)


def test_a_job_says_where_its_result_is_if_it_was_not_stored() -> None:
    job = job_folder.create("train")
    job.archive.write_bytes(b"a model")
    write_intent(job.path, Intent("train", "", "", file="/models/m.zip"))
    job.end("failed", "the disk is full")
    assert report(job).notes == (f"the model is in {job.archive}; `edl fetch {job.id}` stores it",)


def test_a_job_with_damaged_orders_offers_no_resumption_but_the_export_of_its_checkpoints() -> None:
    job = supervised()
    job.checkpoints.mkdir()
    (ClusterFolder(job.path).path / "spec.json").write_bytes(b'{"framework": "to')
    job.end("died")
    why, export = report(job).notes
    assert why.startswith(f"it cannot be resumed: the run specification of job {job.id} is damaged")
    assert export == f"`edl checkpoints {job.id} --export newest m.safetensors` writes its newest weights"


def test_a_job_of_one_process_has_that() -> None:
    [client] = report(job_folder.create("train")).instances
    assert (client.role, client.place, client.state) == ("client", f"pid {os.getpid()}", "running")


def test_the_logs_are_named_by_instance() -> None:
    job = job_folder.create("train")
    for name in ("worker-1.log", "master.log", "other.txt"):
        (job.logs / name).write_text("")
    assert report(job).logs == ("master", "worker-1")


def test_the_list_has_a_line_for_each_job_and_goes_on_after_a_damaged_one() -> None:
    first, damaged, last = (
        supervised(),
        job_folder.create("predict"),
        job_folder.create("evaluate", "SELECT " + "x" * 99),
    )
    (damaged.path / "status.json").write_text("{")
    last.end("done")
    found = [dict(zip(JOBS, row, strict=True)) for row in list_rows(handles.summaries())]
    assert [(row["job"], row["kind"], row["state"]) for row in found] == [
        (first.id, "train", "running"),
        (damaged.id, None, "damaged"),
        (last.id, "evaluate", "done"),
    ]
    assert found[0]["statement"] == "SELECT * FROM t TO TRAIN DNN LABEL y INTO m"
    assert found[2]["statement"] == "SELECT " + "x" * 52 + "…"


def test_the_list_names_the_state_of_a_later_version() -> None:
    job = job_folder.create("train")
    file = job.path / "status.json"
    file.write_bytes(file.read_bytes().replace(b'"running"', b'"moved"'))
    [row] = list_rows(handles.summaries())
    assert row[:3] == (job.id, None, "moved (of a later version)")


def test_a_report_is_json() -> None:
    found = msgspec.json.decode(msgspec.json.encode(report(supervised())))
    assert found["tasks"]["evaluate"] == {"todo": 0, "doing": 0, "done": 4}
    assert found["instances"][2]["task"] == "train 0:8192"
