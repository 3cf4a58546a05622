"""The fault matrix again and again, a million drawn schedules, then what a death may cost.

`python -m tests.soak --times 20` does it, as `make soak` does.

A round has every row of the matrix, on the state machine and on processes; a test that has variants (frameworks, modes,
seeds) comes in one of them, each in its turn: two rounds long, of which one runs beside a process that keeps one core
busy. The last has all variants, and all that lies beside the rows, and is followed by the variants of other tests that
are left to us. The first failure ends it, with exit code 1; `--first 7` goes on with round 7. Times are asserted here
and in `make bench` only: they depend on the machine, which the tests of `make test` must not.
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.edl.end_to_end import storm, timed
from tests.edl.end_to_end.distributed import table

PLACES = (  # what takes longest comes first: all processes work to the end
    "tests/sqlflow_edl/backends/kubernetes/test_faults.py",
    "tests/sqlflow_edl/backends/kubernetes/test_jobs.py",
    "tests/edl/jobs",
    "tests/edl/ps",
    "tests/edl/master",
    "tests/edl/cluster",
    "tests/edl/entrypoints/test_replication.py",
    "tests/edl/cli/test_distributed.py",
    "tests/edl/worker/strategies/test_allreduce.py",
    "tests/edl/worker/strategies/test_task_source.py",
    "tests/edl/cluster/kubernetes/test_cluster.py",
    "tests/edl/cluster/kubernetes/test_master.py",
)
ROOT = Path(__file__).parent.parent
SCHEDULES = 1_000_000  # drawn ones
MASTER_SECONDS = 3.0  # from SIGKILL of the master to the next acknowledged task
GAP_RATIO, GAP_SHARE = (
    2.0,
    0.95,
)  # so many gaps between two batches are at most so many medians of those before
POINTS = {
    "in a task": 12,
    "after stage": 1,
    "before report": 1,
    "after report": 1,
}  # where each first worker dies


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at."""

    name: str
    figure: str
    kept: bool


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="tests.soak", description="Repeats the fault tests, then times deaths"
    )
    parser.add_argument("--times", type=int, default=20, help="rounds of the fault tests")
    parser.add_argument("--first", type=int, default=1, metavar="ROUND", help="the one to begin with")
    parser.add_argument("--processes", type=int, default=4, help="that run tests at the same time")
    parser.add_argument("--quick", action="store_true", help="one round, and fewer rows: does it run at all?")
    options = parser.parse_args()
    times = 1 if options.quick else options.times
    first = min(options.first, times)
    for number in range(first, times + 1):
        if not _round(number, times, options.processes):
            return 1
    print(f"{times - first + 1} rounds of the fault tests passed", flush=True)
    number = SCHEDULES // 1000 if options.quick else SCHEDULES
    if subprocess.call([sys.executable, "-m", "tests.schedules", "--number", str(number)], cwd=ROOT):
        return 1
    missed = 0
    for finding in _findings(250_000 if options.quick else 1_000_000):
        print(f"{'kept' if finding.kept else 'MISSED':6}  {finding.name}: {finding.figure}", flush=True)
        missed += not finding.kept
    print("all aims are kept" if not missed else f"{missed} aims are missed")
    return 1 if missed else 0


def _round(number: int, times: int, processes: int) -> bool:
    """Run the fault tests once; whether they pass."""
    loaded, whole = number % 2 == 0, number == times
    where = f"round {number} of {times}{', beside a busy process' if loaded else ''}"
    with _busy() if loaded else contextlib.nullcontext():
        passed = _passes(where, processes, *([] if whole else ["--faults", str(number // 2)]), *PLACES)
    if passed and number == times:
        elsewhere = (f"--ignore={place}" for place in PLACES)
        passed = _passes("the variants of other tests", processes, "-m", "soak", *elsewhere, "tests")
    return passed


def _passes(where: str, processes: int, *arguments: str) -> bool:
    """Run tests, with all their variants; what they print of a failure is printed."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-n", str(processes), "--dist", "worksteal"]
    began = time.monotonic()
    done = subprocess.run(
        [*command, "--soak", *arguments],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if done.returncode:
        print(f"{done.stdout}\nFAILED in {where}", flush=True)
        return False
    print(f"{where}: {done.stdout.splitlines()[-1]} ({time.monotonic() - began:.0f} s)", flush=True)
    return True


@contextlib.contextmanager
def _busy() -> Iterator[None]:
    """Beside a process that keeps one core."""
    process = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        yield
    finally:
        process.kill()
        process.wait()


def _findings(rows: int) -> Iterator[Finding]:
    """What deaths cost, with `rows` to predict, and four times as many where time is measured."""
    with timed.apart():
        wide, narrow = timed.trained(timed.WIDE), timed.trained(timed.NARROW)
        yield _master(wide, 4 * rows)
        yield _gaps(wide, 4 * rows)
        for point, times in POINTS.items():
            yield _once(narrow, rows, point, times)
        yield _storm()


def _master(archive: Path, rows: int) -> Finding:
    seconds = max(timed.after_master(archive, rows) for _ in range(3))
    name = f"SIGKILL of the master to the next acknowledged task, at most {MASTER_SECONDS:g} s"
    return Finding(name, f"{seconds:.2f} s, the longest of 3", seconds <= MASTER_SECONDS)


def _gaps(archive: Path, rows: int) -> Finding:
    before, after = timed.gaps(archive, rows)
    median = statistics.median(before)
    share = sum(gap <= GAP_RATIO * median for gap in after) / len(after)
    name = f"gaps between batches of the other worker within {GAP_RATIO:g} medians, at least {GAP_SHARE:.0%}"
    return Finding(name, f"{share:.1%} of {len(after)}, median {1e3 * median:.1f} ms", share >= GAP_SHARE)


def _once(archive: Path, rows: int, point: str, times: int) -> Finding:
    run = timed.predicted(archive, rows, f"any/0 {point} {times}", units=timed.NARROW)
    died = any(run.of(start, "killed") for start in run.workers)
    same = run.result().column("x").equals(table(rows, seed=1).column("x"))
    figure = (
        f"{'each row once' if same else 'rows are missing or twice'}{'' if died else ', but nobody died'}"
    )
    return Finding(f"PREDICT of {rows:,} rows, workers killed {point}", figure, died and same)


def _storm() -> Finding:
    found = storm.weathered()
    weights = "the same weights" if found.same else "other weights"
    figure = (
        f"{weights}, and {found.calm / found.storm:.0%} of the goodput of a group that nothing happens to"
    )
    return Finding(f"A21, {len(storm.HAPPENS)} faults in one group", figure, found.same)


if __name__ == "__main__":
    sys.exit(main())
