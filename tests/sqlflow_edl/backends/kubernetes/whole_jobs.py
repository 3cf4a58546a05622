"""Statements that run as whole jobs at a `place`, and what is left there when they have ended."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import IO, Any

import pytest

from edl.checkpoints.kept import CHECKPOINTS
from edl.jobs import job_folder
from edl.models.registry.tables import CHUNKS, MODELS
from edl.sources.staging_tables import RESULTS, STAGED
from sqlflow_edl.cli import exit_codes
from sqlflow_edl.cli.main import main
from tests.sqlflow_edl.backends.kubernetes.place import Place, place, until

__all__ = ["place", "points"]

ROWS = 6_000
QUERY = "SELECT n, a, b, y FROM points"
TRAIN = (
    "SELECT a, b, y FROM points TO TRAIN DNNRegressor "
    "WITH model.framework = torch, hidden_units = [8], batch_size = 20, epochs = {epochs}, {how} LABEL y INTO m"
)
QUICK = "SELECT a, b, y FROM points TO TRAIN LinearRegressor WITH model.framework = torch, epochs = 1 LABEL y INTO m"
KINDS = {
    "/api/v1": ("pods", "services", "configmaps", "secrets", "serviceaccounts"),
    "/apis/batch/v1": ("jobs",),
    "/apis/rbac.authorization.k8s.io/v1": ("roles", "rolebindings"),
}  # of the objects of a job, by the path of their version
TTL = "10"  # seconds that a finished job is kept in tests of what is left


@pytest.fixture
def points(place: Place) -> Place:
    """y = a + 2 b."""
    place.query(
        f"CREATE TABLE points AS SELECT seq AS n, seq % 97 / 97.0 AS a, seq % 89 / 89.0 AS b FROM seq_1_to_{ROWS}"
    )
    place.query("ALTER TABLE points ADD y DOUBLE AS (a + 2 * b) STORED")
    return place


class Said:
    """What a command says on stderr, as it comes."""

    def __init__(self, process: subprocess.Popen[str], stderr: IO[str]) -> None:
        self.process = process
        self._stderr = stderr
        self.lines: list[str] = []

    def until(self, text: str) -> None:
        """A line with that in it."""
        for line in self._stderr:
            self.lines.append(line)
            if text in line:
                return
        raise AssertionError(f"it ended before it said {text!r}: {''.join(self.lines)}")

    def end(self) -> int:
        self.lines += self._stderr
        return self.process.wait()

    def interrupt(self) -> int:
        self.process.send_signal(signal.SIGINT)
        return self.end()

    def __str__(self) -> str:
        return "".join(self.lines)

    __repr__ = __str__  # of failed assertions


@contextmanager
def sqlflow(*arguments: str) -> Iterator[Said]:
    command = [sys.executable, "-m", "sqlflow_edl.cli.main", *arguments]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            yield Said(process, process.stderr)
        finally:
            process.kill()


def run(place: Place, capsys: pytest.CaptureFixture[str], text: str, *options: str) -> list[dict[str, Any]]:
    """The rows of the result, if it has any."""
    capsys.readouterr()
    code = main(["run", "-e", text, "--format", "json", *place.options, *options])
    done = capsys.readouterr()
    assert code == exit_codes.OK, done.err
    return json.loads(done.out) if done.out else []


def refused(place: Place, capsys: pytest.CaptureFixture[str], text: str, *options: str) -> str:
    """What is said of a statement that fails."""
    capsys.readouterr()
    assert main(["run", "-e", text, *place.options, *options]) == exit_codes.FAILED
    return capsys.readouterr().err


def report(capsys: pytest.CaptureFixture[str], job: str) -> dict[str, Any]:
    capsys.readouterr()
    assert main(["job", job, "--format", "json"]) == exit_codes.OK
    return json.loads(capsys.readouterr().out)  # type: ignore[no-any-return]


def last_job() -> job_folder.JobFolder:
    return job_folder.jobs()[-1]


def relaunches(found: dict[str, Any]) -> dict[str, int]:
    """Of the instances of a report that were started again."""
    return {row["name"]: row["relaunches"] for row in found["instances"] if row["relaunches"]}


def limit(place: Place, **hard: str) -> None:
    """Make a quota, and wait until it counts."""
    place.make("/api/v1", "resourcequotas", "few", spec={"hard": hard})
    until(
        lambda: all(each.get("status", {}).get("used") for each in place.objects("/api/v1", "resourcequotas"))
    )


def remove_limit(place: Place) -> None:
    place.calls.ask("DELETE", f"/api/v1/namespaces/{place.namespace}/resourcequotas/few")
    until(lambda: not place.objects("/api/v1", "resourcequotas"))


def pinned(place: Place) -> list[Any]:
    return place.query("SHOW TABLES LIKE 'sqlflow_edl_rows%'")


def brief(place: Place) -> Sequence[str]:
    """Options of a job that leaves its objects only for a short time after its end."""
    return [*place.options, "--set", f"ttl_secs={TTL}"]


def nothing_left(place: Place, *tables: str) -> None:
    """Wait until all objects of jobs are gone. The database has `points`, these tables, and records of models and
    results; nothing is pinned or staged.
    """
    left: list[str] = []

    def clean() -> bool:
        left[:] = objects(place)
        return not left

    until(clean, pause=0.3, words=lambda: f"left: {left}")
    found = {next(iter(row.values())) for row in place.query("SHOW TABLES")}
    found = {name.decode() if isinstance(name, bytes) else str(name) for name in found}
    assert found - {MODELS, CHUNKS, RESULTS, STAGED, CHECKPOINTS} == {"points", *tables}, str(found)
    if STAGED in found:
        assert place.query(f"SELECT * FROM {STAGED}") == []


def objects(place: Place) -> list[str]:
    """All that belongs to jobs, as kind/name."""
    return [
        f"{plural}/{found['metadata']['name']}"
        for group, kinds in KINDS.items()
        for plural in kinds
        for found in place.objects(group, plural, "app.kubernetes.io/name=sqlflow-edl")
    ]
