"""TO RUN as a job of one pod: see `place`."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlflow_edl.cli import exit_codes
from sqlflow_edl.cli.main import main
from tests.sqlflow_edl.backends.kubernetes.place import Place
from tests.sqlflow_edl.backends.kubernetes.whole_jobs import (
    ROWS,
    brief,
    last_job,
    pinned,
    place,
    points,
    refused,
    run,
    sqlflow,
)

__all__ = ["place", "points"]

PROGRAM = """
import sys
from edl.runnable import rows, write
total = sum(batch.num_rows for batch in rows())
print("counted", total, sys.argv[1:])
write({"n": [total]}, "counted")
write((batch for batch in rows(["a"])), "copied")
"""

FAILING = "from edl.runnable import rows, write\nwrite(rows(), 'copied')\nraise OSError('odd')\n"


@pytest.fixture(autouse=True)
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Programs of this machine, which has the image's programs too, as pods are its processes."""
    folder = tmp_path / "programs"
    folder.mkdir()
    (folder / "count.py").write_text(PROGRAM)
    (folder / "fail.py").write_text(FAILING)
    (folder / "wait.py").write_text("import signal\nprint('waits')\nsignal.pause()\n")
    monkeypatch.setenv("SQLFLOW_MODEL_PATH", str(folder))
    return folder


@pytest.mark.soak
def test_a_program_of_this_machine_runs_in_a_pod(points: Place, capsys: pytest.CaptureFixture[str]) -> None:
    with sqlflow(
        "run",
        "-e",
        "SELECT n, a FROM points TO RUN count.py CMD '--x=1' INTO counted, copied",
        *brief(points),
    ) as said:
        assert said.end() == exit_codes.OK, said
    assert f"  counted {ROWS} ['--x=1']" in str(said)
    assert f"count.py wrote 1 row to counted and {ROWS:,} rows to copied" in str(said)
    assert points.query("SELECT n FROM counted") == [{"n": ROWS}]
    assert points.query("SELECT COUNT(*) AS n FROM copied") == [{"n": ROWS}]
    assert pinned(points) == []
    assert last_job().status().state == "done"
    assert not points.objects("/apis/rbac.authorization.k8s.io/v1", "roles")


@pytest.mark.soak
def test_a_program_of_an_image_runs_in_its_pod(
    points: Place, capsys: pytest.CaptureFixture[str], repository: Path
) -> None:
    """The image of the double is this machine, but a pod does not see its /tmp."""
    if points.double is None:
        pytest.skip("the image of a real cluster has no samples")
    where = f"--set=env=SQLFLOW_MODEL_PATH={repository / 'samples' / 'runnables'}"
    text = f"SELECT n, a FROM points WHERE n <= 7 TO RUN {points.image} CMD {{}} INTO bins"
    run(points, capsys, text.format("'binning.py', '--columns=n', '--bins=2'"), where)
    assert points.query("SELECT bin, row_count FROM bins ORDER BY bin") == [
        {"bin": 0, "row_count": 3},
        {"bin": 1, "row_count": 4},
    ]
    assert "the image has no program bining.py in" in refused(
        points, capsys, text.format("'bining.py'"), where
    )
    assert "names no program of the image" in refused(points, capsys, text.format("'sh'"))


def test_a_dry_run_shows_the_objects_of_its_job(points: Place, capsys: pytest.CaptureFixture[str]) -> None:
    text = "SELECT n, a FROM points TO RUN count.py CMD '--x=1' INTO counted, copied"
    assert main(["run", "--dry-run", "-e", text, *points.options]) == exit_codes.OK
    shown = capsys.readouterr().out
    assert "kind: Role" not in shown
    assert 'print("counted", total, sys.argv[1:])' in shown
    assert points.pods() == []


@pytest.mark.soak
def test_a_program_that_fails_in_a_pod_says_why(points: Place, capsys: pytest.CaptureFixture[str]) -> None:
    said = refused(points, capsys, "SELECT n, a FROM points TO RUN fail.py INTO copied")
    assert "fail.py ended with exit code 1: OSError: odd" in said
    assert "copied" not in str(points.query("SHOW TABLES"))
    assert pinned(points) == []
    assert last_job().status().state == "failed"


@pytest.mark.soak
def test_an_interrupt_cancels_it(points: Place, capsys: pytest.CaptureFixture[str]) -> None:
    with sqlflow("run", "-e", "SELECT n, a FROM points TO RUN wait.py INTO copied", *brief(points)) as said:
        said.until("waits")
        assert said.interrupt() == exit_codes.INTERRUPTED
    assert last_job().status().state == "cancelled"
    assert pinned(points) == []
