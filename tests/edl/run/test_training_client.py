"""Training processes and their client: real processes, of the framework that starts fastest."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from edl import exit_codes
from edl.data.results import ResultFolder
from edl.errors import JobError, SemanticError
from edl.jobs.events import Progress
from edl.jobs.outcome import JobCancelledError, JobInterruptedError
from edl.models.archive import read_archive
from edl.models.weights import save
from edl.program import UserCodeError
from edl.run.training_client import TrainingProcess
from edl.spec import Output, Rows, from_json, to_json
from tests.edl.programs import Events, simple
from tests.edl.run.conftest import contents, line, log, new_job

pytestmark = pytest.mark.usefixtures("own_processes")

LONG = {"epochs": 1_000_000}


def program(folder: Path, rows: int = 200, **options: Any) -> Path:
    return simple(folder / "program", rows=Rows(True, rows, rows - 50, 50), **options)


def as_kind(folder: Path, kind: str, **changes: Any) -> Path:
    spec = msgspec.structs.replace(from_json((folder / "job.json").read_bytes()), kind=kind, **changes)
    (folder / "job.json").write_bytes(to_json(spec))
    return folder


def test_a_job_gives_a_model_and_its_events(process: TrainingProcess, tmp_path: Path) -> None:
    job, events = new_job(line(200)), Events()
    outcome = process.run(program(tmp_path, epochs=3, batch_size=10), job.path, events)
    assert (outcome.kind, outcome.epochs, outcome.steps, outcome.edited) == ("train", 3, 45, False)
    assert contents(job) == {"archive.zip", "logs/worker-0.log"}
    archive = read_archive(job.path / outcome.archive)
    assert archive.metrics == outcome.figures
    assert [row["epoch"] for row in archive.curve] == [1, 2, 3]
    assert {"loss", "validation_loss", "rmse", "step", "seconds"} <= archive.curve[0].keys()
    assert set(archive.weights()) == {"hidden.weight", "hidden.bias", "output.weight", "output.bias"}
    assert (archive.lineage.rows, archive.lineage.training_rows) == (200, 150)
    assert archive.spec.rows.digest == archive.lineage.data_digest != ""
    assert {"torch", "python", "numpy"} <= archive.lineage.versions.keys()
    assert [type(event).__name__ for event in events].count("EpochEnd") == 3


def test_jobs_one_after_another_do_not_know_of_each_other(process: TrainingProcess, tmp_path: Path) -> None:
    folder = program(tmp_path, epochs=2)
    first, second = (new_job(line(200)) for _ in range(2))
    outcomes = [process.run(folder, job.path, Events()) for job in (first, second)]
    assert outcomes[0].figures == outcomes[1].figures
    weights = [read_archive(job.path / "archive.zip").weights() for job in (first, second)]
    assert all(np.array_equal(weights[0][name], weights[1][name]) for name in weights[0])


@pytest.mark.soak
def test_a_model_predicts_and_is_evaluated(process: TrainingProcess, tmp_path: Path) -> None:
    folder, data = program(tmp_path, epochs=20, batch_size=10), line(200)
    job = new_job(data)
    process.run(folder, job.path, Events())
    archive = job.path / "archive.zip"

    predicting = new_job(data.drop(["y"]), "predict")
    as_kind(folder, "predict", output=Output(column="p", keep=("x",)))
    outcome = process.run(folder, predicting.path, Events(), weights=archive)
    found = ResultFolder(predicting.results).read(outcome.tasks).read_all()
    error = found["p"].to_numpy() - data["y"].to_numpy()

    evaluating = new_job(data, "evaluate")
    unpacked = tmp_path / "weights.safetensors"
    save(read_archive(archive).weights(), unpacked)
    outcome = process.run(as_kind(folder, "evaluate"), evaluating.path, Events(), weights=unpacked)
    assert outcome.figures["rmse"] == pytest.approx(float(np.sqrt(np.mean(error**2))), rel=1e-6)


def test_what_a_program_prints_goes_to_the_log_and_disturbs_nothing(
    process: TrainingProcess, tmp_path: Path
) -> None:
    text = """

import os
import sys

print('{"type": "done"}')
print("to stderr", file=sys.stderr)
os.write(1, b"from native code\\n")
"""
    job = new_job(line(200))
    outcome = process.run(program(tmp_path, append=text), job.path, Events())
    assert outcome.kind == "train"
    assert all(words in log(job) for words in ('{"type": "done"}', "to stderr", "from native code"))
    assert stat.S_IMODE((job.path / "logs" / "worker-0.log").stat().st_mode) == 0o600


def test_an_error_of_the_program_is_raised_with_its_line_and_logged_with_its_traceback(
    process: TrainingProcess, tmp_path: Path
) -> None:
    job = new_job(line(200))
    text = "\n\ndef loss(labels, predictions):\n    return labels.nothing\n"
    with pytest.raises(UserCodeError, match=r"model\.py:\d+, in loss: AttributeError") as caught:
        process.run(program(tmp_path, append=text), job.path, Events())
    assert caught.value.hint == "return labels.nothing"
    assert "Traceback (most recent call last)" in log(job)
    assert contents(job) == {"logs/worker-0.log"}


def test_an_error_of_the_data_is_raised_as_itself(process: TrainingProcess, tmp_path: Path) -> None:
    data = line(200).rename_columns(["x", "z"])
    with pytest.raises(Exception, match="no column y"):
        process.run(program(tmp_path), new_job(data).path, Events())
    nulls = line(200).set_column(0, "x", line(200)["x"].cast("string"))
    with pytest.raises(SemanticError, match="column x is of type string where a number is needed"):
        process.run(program(tmp_path), new_job(nulls).path, Events())


def test_a_program_that_exits_is_an_error_not_the_end_of_the_process(
    process: TrainingProcess, tmp_path: Path
) -> None:
    with pytest.raises(UserCodeError, match="SystemExit"):
        process.run(program(tmp_path, append="\n\nraise SystemExit(0)\n"), new_job(line(200)).path, Events())
    assert process.is_alive


def test_a_cancelled_job_leaves_its_log_and_the_process_goes_on(
    process: TrainingProcess, tmp_path: Path
) -> None:
    job = new_job(line(200))
    with pytest.raises(JobCancelledError):
        process.run(program(tmp_path, **LONG), job.path, lambda event: process.cancel())
    assert contents(job) == {"logs/worker-0.log"}
    process.cancel()  # nothing runs: nothing happens
    assert process.run(program(tmp_path), new_job(line(200)).path, Events()).kind == "train"


def test_a_cancelled_prediction_leaves_no_result(process: TrainingProcess, tmp_path: Path) -> None:
    """The program stops in the second task, after the first one's result is staged, until the job was cancelled."""
    folder, job = program(tmp_path), new_job(line(200))
    process.run(folder, job.path, Events())
    begun, go = tmp_path / "begun", tmp_path / "go"
    os.mkfifo(begun)
    os.mkfifo(go)
    wait = f"""

_FEED = feed
WAITED = []


def feed(batch, mode):
    if batch.column("x")[0].as_py() >= 0.05 and not WAITED:
        WAITED.append(True)
        open({str(begun)!r}, "w").close()
        open({str(go)!r}).close()
    return _FEED(batch, mode)
"""
    (folder / "model.py").write_text((folder / "model.py").read_text() + wait)
    as_kind(folder, "predict", output=Output(column="p"))
    predicting = new_job(line(2_000_000).drop(["y"]), "predict")
    staged: list[set[str]] = []

    def cancel() -> None:
        begun.open().close()
        staged.append(contents(predicting))
        process.cancel()
        go.open("w").close()

    thread = threading.Thread(target=cancel)
    thread.start()
    with pytest.raises(JobCancelledError):
        process.run(folder, predicting.path, Events(), weights=job.path / "archive.zip")
    thread.join()
    assert "results/00000000.0.arrow" in staged[0]
    assert contents(predicting) == {"logs/worker-0.log"}


def test_an_error_of_the_observer_cancels_the_job(process: TrainingProcess, tmp_path: Path) -> None:
    def observe(event: object) -> None:
        raise KeyboardInterrupt

    job = new_job(line(200))
    with pytest.raises(KeyboardInterrupt):
        process.run(program(tmp_path, **LONG), job.path, observe)
    assert contents(job) == {"logs/worker-0.log"}
    assert process.run(program(tmp_path), new_job(line(200)).path, Events()).kind == "train"


@pytest.mark.soak
def test_progress_comes_while_the_job_runs(process: TrainingProcess, tmp_path: Path) -> None:
    seen: list[Progress] = []

    def observe(event: Any) -> None:
        if isinstance(event, Progress):
            seen.append(event)
        if len(seen) == 3:
            process.cancel()

    with pytest.raises(JobCancelledError):
        process.run(program(tmp_path, **LONG), new_job(line(200)).path, observe)
    assert seen[0].rows < seen[1].rows < seen[2].rows
    assert seen[2].rows_per_second > 0


def test_a_missing_model_is_named(process: TrainingProcess, tmp_path: Path) -> None:
    folder = as_kind(program(tmp_path), "evaluate")
    with pytest.raises(JobError, match="a model's weights are required"):
        process.run(folder, new_job(line(200), "evaluate").path, Events())


def test_missing_rows_are_named(process: TrainingProcess, tmp_path: Path) -> None:
    job = new_job(line(200))
    job.remove_rows()
    with pytest.raises(Exception, match=r"pinned"):
        process.run(program(tmp_path), job.path, Events())


# Processes that end ----------------------------------------------------------------------------------------


def test_a_killed_process_is_named_with_the_signal_and_the_log(tmp_path: Path) -> None:
    job, folder = new_job(line(200)), program(tmp_path, framework="lightgbm", **LONG)
    with TrainingProcess.start("lightgbm", 1) as subject:
        with pytest.raises(JobError, match=r"was killed by SIGKILL; its log is .*worker-0\.log"):
            subject.run(folder, job.path, lambda event: os.kill(subject.pid, signal.SIGKILL))
        assert not subject.is_alive
        with pytest.raises(JobError, match="was killed by SIGKILL"):
            subject.run(folder, job.path, Events())


def test_a_process_that_cannot_start_says_why(tmp_path: Path) -> None:
    with (
        TrainingProcess.start("theano", 1) as subject,
        pytest.raises(JobError, match="ended with exit code 2") as caught,
    ):
        subject.run(program(tmp_path), new_job(line(200)).path, Events())
    assert "theano" in str(caught.value.hint)


def test_an_interrupt_of_the_terminal_does_not_reach_it() -> None:
    with TrainingProcess.start("lightgbm", 1) as subject:
        assert os.getsid(subject.pid) == subject.pid != os.getsid(0)


@pytest.mark.soak
def test_closing_ends_a_process_that_is_in_a_job(tmp_path: Path) -> None:
    subject = TrainingProcess.start("lightgbm", 1)
    folder = program(tmp_path, framework="lightgbm", **LONG)
    begun = threading.Event()
    errors: list[BaseException] = []

    def run() -> None:
        try:
            subject.run(folder, new_job(line(200)).path, lambda event: begun.set())
        except JobError as error:
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    assert begun.wait(60)
    subject._requests.close()
    thread.join(60)
    assert isinstance(errors[0], JobInterruptedError)
    subject.close()
    subject.close()
    assert subject._process.returncode == exit_codes.OK


def test_a_process_ends_when_its_parent_dies() -> None:
    """The parent is killed while the child runs; the pipe that the child inherited from us tells when it has ended."""
    reading, writing = os.pipe()
    code = (
        "import os, signal, subprocess\n"
        "from edl.run import training_client\n"
        "start = subprocess.Popen\n"
        f"subprocess.Popen = lambda *a, pass_fds, **k: start(*a, pass_fds=(*pass_fds, {writing}), **k)\n"
        "process = training_client.TrainingProcess.start('lightgbm', 1)\n"
        "process._events.readline()\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    parent = subprocess.run([sys.executable, "-c", code], pass_fds=(writing,), check=False)
    os.close(writing)
    assert parent.returncode == -signal.SIGKILL
    with os.fdopen(reading, "rb") as pipe:
        assert pipe.read() == b""


def test_no_secret_and_no_path_of_a_job_is_in_the_arguments(process: TrainingProcess) -> None:
    command = Path(f"/proc/{process.pid}/cmdline")
    while not command.read_bytes():  # for a moment after the start
        pass
    arguments = command.read_bytes().split(b"\0")
    assert arguments[1:5] == [b"-P", b"-m", b"edl.entrypoints.training_process", b"--framework"]
    assert len(arguments) == 11


def test_a_process_that_never_ran_a_job_ends_at_once() -> None:
    process = TrainingProcess.start("keras")
    process.close()
    assert not process.is_alive
    assert process._process.returncode == -signal.SIGKILL
