"""Training scripts whose workers are killed on one schedule: under torchrun, torchft, `edl run` and `edl.elastic`.

Workers run the loop of `benchmarks.scripts.ddp` in the form that each way asks for. Steps take a tenth of a
second in which no core is busy, so that starting a worker does not slow down the others. Goodput is the rows of the
steps that the last weights have had, against the rows that the undisturbed loop of PyTorch's tutorials takes in the
same time. Steps are lost where the weights go back to a checkpoint; the step that was interrupted is not counted.
torchft goes on with smaller steps and leaves out the interrupted rows, the others take every row of an epoch.
"""

from __future__ import annotations

import contextlib
import difflib
import importlib.util
import json
import os
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.scripts.workload import RECORD, WORKERS
from benchmarks.table import Row
from edl.cluster.environment import RESOLVER

START = 120.0  # seconds within which the first steps are taken
GOODPUT = 0.9  # target of edl.elastic
SCRIPTS = Path(__file__).parent / "scripts"
TORCHRUN = (sys.executable, "-m", "torch.distributed.run")
RESTARTED = ("--max-restarts", "100")
EDL_RUN = (sys.executable, "-m", "edl.cli.main", "run", "--max_restarts", "100")


@dataclass(frozen=True, slots=True)
class Schedule:
    """Number of workers, and the kills of which each `period` seconds have one, in their middle."""

    workers: int
    period: float
    kills: int

    @property
    def seconds(self) -> float:
        """Length of the run from the first steps of all workers."""
        return self.period * max(self.kills, 1)


SHORT = Schedule(3, 20.0, 3)
PUBLISHED = Schedule(8, 29.0, 62)  # with which a goodput of 0.977 was published for torchft
PUBLISHED_GOODPUT = 0.977


@dataclass(frozen=True, slots=True)
class Step:
    """A step as one worker recorded it; rows: those of all workers."""

    pid: int
    second: float
    step: int
    rows: int


@dataclass(frozen=True, slots=True)
class Course:
    """Outcome of a run: rows per second, and for each kill the steps lost and the seconds to the next new step."""

    rate: float
    lost: tuple[int, ...]
    seconds: tuple[float, ...]


def measure(folder: Path, rounds: int, rows: int) -> list[Row]:
    """Run each way for a minute and three kills, `rounds` times. The rows are always the same."""
    ways: dict[str, tuple[str, Callable[[str, Path, int], Any]]] = {
        "torchrun, a checkpoint each 50 steps": ("restarted.py", _torchrun),
        "edl run, the same script": ("restarted.py", _edl_run),
        "torchft": ("fault_tolerant.py", _torchft),
        "edl.elastic": ("elastic.py", _edl_run),
    }
    if importlib.util.find_spec("torchft") is None:
        ways.pop("torchft")
    found: dict[str, list[Course]] = {name: [] for name in ways}
    ideal = []
    for _ in range(rounds):
        ideal.append(_course("ddp.py", _torchrun, replace(SHORT, kills=0)).rate)
        for name, (script, launch) in ways.items():
            found[name].append(_course(script, launch, SHORT))
    return [
        _row(
            name,
            ways[name][0],
            [one.rate / best for one, best in zip(found[name], ideal, strict=True)],
            found[name],
        )
        for name in ways
    ]


def measure_published(folder: Path, rounds: int, rows: int) -> list[Row]:
    """Run `edl.elastic` for half an hour on the published schedule, beside three minutes without a kill."""
    undisturbed = _course("elastic.py", _edl_run, replace(PUBLISHED, period=180.0, kills=0))
    course = _course("elastic.py", _edl_run, PUBLISHED)
    figure = (
        f"{len(course.seconds)} kills; {statistics.median(course.seconds):.1f} s to a new step,"
        f" at most {max(course.seconds):.1f} s; {sum(course.lost)} steps lost"
    )
    goodput = [course.rate / undisturbed.rate]
    return [Row("goodput of edl.elastic, 8 workers", figure, goodput, least=PUBLISHED_GOODPUT)]


def _row(name: str, script: str, goodput: list[float], courses: Sequence[Course]) -> Row:
    seconds = [each for course in courses for each in course.seconds]
    lost = [each for course in courses for each in course.lost]
    figure = (
        f"{statistics.median(seconds):.1f} s to a new step, at most {max(seconds):.1f} s;"
        f" {statistics.mean(lost):.1f} steps lost; {_changed(script)} lines changed"
    )
    return Row(f"goodput of {name}", figure, goodput, least=GOODPUT if name == "edl.elastic" else None)


def _changed(script: str) -> int:
    """Return the number of lines that are new or differ from `ddp.py` in more than their indentation."""
    plain, other = (_lines(SCRIPTS / name) for name in ("ddp.py", script))
    return sum(line.startswith("+ ") for line in difflib.ndiff(plain, other))


def _lines(script: Path) -> list[str]:
    """Return the lines after the docstring."""
    lines = script.read_text(encoding="utf-8").split('"""')[2].splitlines()
    return [line.strip() for line in lines if line.strip()]


def _course(script: str, launch: Callable[[str, Path, int], Any], schedule: Schedule) -> Course:
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        record = Path(name) / "steps"
        record.touch()
        stack.enter_context(launch(str(SCRIPTS / script), Path(name), schedule.workers))
        begun = _wait_for_steps(record, schedule.workers)
        killed = []
        for number in range(schedule.kills):
            _sleep_until(begun + schedule.period * (number + 0.5))
            killed.append(_kill(record, number))
        _sleep_until(begun + schedule.seconds)
        return _found(_steps(record), begun, killed, schedule.seconds)


def _found(steps: list[Step], begun: float, killed: list[float], seconds: float) -> Course:
    """Read the course from the record."""
    steps = sorted((one for one in steps if one.second <= begun + seconds), key=lambda one: one.second)
    last = max(steps, key=lambda one: one.second).step
    counted = {one.step: one.rows for one in steps if one.step <= last}
    first = min(one.step for one in steps if one.second >= begun)
    lost, waited = [], []
    for kill in killed:
        before = max(one.step for one in steps if one.second < kill)
        after = [one for one in steps if one.second > kill]
        again = [one.step for one in after if one.step <= before]
        lost.append(before - min(again) + 1 if again else 0)
        waited.append(next((one.second for one in after if one.step > before), begun + seconds) - kill)
    return Course(
        sum(rows for step, rows in counted.items() if step >= first) / seconds, tuple(lost), tuple(waited)
    )


def _steps(record: Path) -> list[Step]:
    return [Step(**json.loads(line)) for line in record.read_text(encoding="utf-8").splitlines()]


def _wait_for_steps(record: Path, workers: int) -> float:
    """Wait until all workers take steps. Return the time."""
    limit = time.monotonic() + START
    while len({one.pid for one in _steps(record)}) < workers:
        if time.monotonic() > limit:
            raise RuntimeError(f"no steps of {workers} workers within {START:.0f} s")
        time.sleep(0.1)
    return time.monotonic()


def _kill(record: Path, number: int) -> float:
    """Kill one of the workers that took the last steps, in turn. Return the time."""
    recent = [one for one in _steps(record) if one.second > time.monotonic() - 1]
    pids = sorted({one.pid for one in recent or _steps(record)[-1:]})
    moment = time.monotonic()
    with contextlib.suppress(ProcessLookupError):  # it is down: no step was taken since the last kill
        os.kill(pids[number % len(pids)], signal.SIGKILL)
    return moment


def _sleep_until(second: float) -> None:
    time.sleep(max(0.0, second - time.monotonic()))


# Ways to run a script ----------------------------------------------------------------------------------------


@contextmanager
def _torchrun(script: str, folder: Path, workers: int) -> Iterator[None]:
    # Without a store of its own each restart finds its predecessors' addresses, and often fails (see `lost_member`).
    own = {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}
    command = [*TORCHRUN, "--standalone", "--nproc-per-node", str(workers), *RESTARTED, script]
    with _process(command, folder, own, workers):
        yield


@contextmanager
def _edl_run(script: str, folder: Path, workers: int) -> Iterator[None]:
    with _process([*EDL_RUN, "--workers", str(workers), script], folder, {}, workers):
        yield


@contextmanager
def _torchft(script: str, folder: Path, workers: int) -> Iterator[None]:
    """Run a lighthouse, and a torchrun for each worker, with the settings of torchft's documentation."""
    address = f"127.0.0.1:{_free_port()}"
    lighthouse = [str(Path(sys.executable).with_name("torchft_lighthouse")), "--bind", address]
    options = ["--min_replicas", "1", "--quorum_tick_ms", "100", "--join_timeout_ms", "10000"]
    with ExitStack() as stack:
        stack.enter_context(_process([*lighthouse, *options], folder, {}, workers))
        for number in range(workers):
            run = [
                *TORCHRUN,
                f"--master-port={_free_port()}",
                "--nnodes=1",
                "--nproc-per-node=1",
                *RESTARTED,
                script,
            ]
            variables = {
                "TORCHFT_LIGHTHOUSE": f"http://{address}",
                "REPLICA_GROUP_ID": str(number),
                "NUM_REPLICA_GROUPS": str(workers),
            }
            stack.enter_context(_process(run, folder, variables, workers))
        yield


@contextmanager
def _process(command: Sequence[str], folder: Path, variables: dict[str, str], workers: int) -> Iterator[None]:
    own = {
        RECORD: str(folder / "steps"),
        WORKERS: str(workers),
        "CHECKPOINT": str(folder / "checkpoint.pt"),
        "PYTHONPATH": os.pathsep.join(
            [str(SCRIPTS.parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])]
        ),
        "XDG_STATE_HOME": str(folder / "state"),
    }
    with (folder / "output").open("ab") as output:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env={**RESOLVER, **os.environ, **own, **variables},
            start_new_session=True,
        )
    try:
        yield
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])
