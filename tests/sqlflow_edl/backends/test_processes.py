"""How a job runs as processes of this machine."""

from __future__ import annotations

import re

import pyarrow as pa
import pytest

from edl.cluster.local.standby import VARIABLE, Standby
from edl.errors import SpecError
from edl.jobs import job_folder
from edl.jobs.cluster_folder import ClusterFolder
from sqlflow_edl.backends.submit import make_run_spec
from sqlflow_edl.session.session import Session
from tests.databases import fill
from tests.sqlflow_edl.backends.kubernetes.jobs import with_workers


def test_a_wrong_variable_is_an_error_before_any_process_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EDL_UNREACHABLE_SECS", "soon")
    with pytest.raises(SpecError, match="EDL_UNREACHABLE_SECS is 'soon', not a number of seconds"):
        make_run_spec(with_workers(2), None)


def test_the_next_job_with_workers_runs_in_the_processes_that_waited_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(VARIABLE, "1")
    started: list[int] = []
    start = Standby.start

    def record_start(*arguments: object, **options: object) -> Standby | None:
        standby = start(*arguments, **options)  # type: ignore[arg-type]
        assert standby is not None
        started.append(standby._process.pid)
        return standby

    monkeypatch.setattr(Standby, "start", record_start)
    with Session("duckdb:") as session:
        fill(session, "points", pa.table({"x": [0.0, 1.0, 2.0, 3.0] * 9, "y": [1.0, 3.0, 5.0, 7.0] * 9}))
        for _ in range(2):
            session.run(
                "SELECT * FROM points TO TRAIN LGBMRegressor "
                "WITH train.num_boost_round = 1, train.num_workers = 1 LABEL y INTO m"
            )
    supervisors = [ClusterFolder(job.path).process("supervisor") for job in job_folder.jobs()]
    assert [process.pid for process in supervisors if process] == started[:2]
    assert len(started) == 3  # one waits when the session ends
    logs = [ClusterFolder(job.path).log("supervisor").read_text() for job in job_folder.jobs()]
    assert all(re.search(r"the forkserver is ready after [\d.]+ s", log) for log in logs)
