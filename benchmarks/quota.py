"""Two jobs on a quota that is too small for both: as gangs one after the other, or elastic at once.

Simulated: the cases that ElasticDL published in its benchmark reports (jobs of 13 of 24 CPUs, of 175 of 320, of
4 of 6 GPUs). The start time of a process is not given there; it is read from the traces beside the reports. The
work of a job follows from its duration when it ran alone.

Real: 24 training processes whose steps have a known duration, with all the processes between them: supervisors,
masters, parameter servers. For each second the benchmark records the number of slots held, and of slots in a
step.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

from benchmarks import calibrated
from benchmarks.calibrated import BATCH, ROW_SECONDS, Observed
from benchmarks.drawing import Panel, picture
from benchmarks.simulation import Job, bound, elastic, gang, simulate, used
from benchmarks.table import Row
from tests.edl.end_to_end import timed

RATIO = 0.73  # target, of the seconds of jobs that wait for all their slots
USED = 0.9  # target, of the slots that jobs ask for while there is work
JOB_SECONDS = 80.0  # duration of a real job with all its workers
SECOND_COMES = 7.5  # seconds after the first; 30 of 395, as published


@dataclass(frozen=True)
class Published:
    """Pair of equal jobs, as published.

    comes: second at which the second job comes. alone: seconds of the first job alone, `starting` of them
    without a step. gang, elastic: seconds until both were done, as published.
    """

    slots: int
    most: int
    comes: float
    alone: float
    starting: float
    gang: float
    elastic: float

    @property
    def jobs(self) -> tuple[Job, Job]:
        work = self.most * (self.alone - self.starting)
        return Job("first", 0.0, self.most, work), Job("second", self.comes, self.most, work)


PUBLISHED = (
    Published(24, 13, 30.0, 395.0, 10.0, gang=795.0, elastic=580.0),
    Published(320, 175, 300.0, 650.0, 20.0, gang=1300.0, elastic=1100.0),
    Published(6, 4, 120.0, 465.0, 15.0, gang=968.0, elastic=809.0),
)


def measure(folder: Path, rounds: int, rows: int) -> list[Row]:
    """Measure once, which takes minutes, and draw quota.svg and quota.csv.

    `rounds` is ignored. For few `rows` the real jobs are small.
    """
    found = [_simulated(case) for case in PUBLISHED]
    slots, workers, seconds = (24, 12, JOB_SECONDS) if rows > 100_000 else (5, 2, JOB_SECONDS / 10)
    return found + _real(folder, slots, workers, seconds)


def _simulated(case: Published) -> Row:
    ours, theirs = (simulate(case.jobs, case.slots, policy, case.starting) for policy in (elastic, gang))
    least = bound(case.jobs, case.slots) + case.starting
    name = f"simulated: {case.slots} slots, two jobs of {case.most}, the second after {case.comes:.0f} s"
    figure = (
        f"{ours.makespan:.0f} s (ElasticDL {case.elastic:.0f}); gang {theirs.makespan:.0f} ({case.gang:.0f}); "
        f"at least {least:.0f}; slots used {used(ours, case.jobs, case.slots):.0%}, "
        f"gang {used(theirs, case.jobs, case.slots):.0%}"
    )
    return Row(name, figure, value=ours.makespan, most=case.elastic)


def _real(folder: Path, slots: int, workers: int, seconds: float) -> list[Row]:
    rows = int(workers * seconds / ROW_SECONDS) // BATCH * BATCH
    comes = SECOND_COMES * seconds / JOB_SECONDS
    with timed.apart():
        ours, theirs = (
            calibrated.run(folder / name, slots, workers, rows, comes, gang=name == "gang")
            for name in ("elastic", "gang")
        )
    jobs = [
        Job(name, at, workers + 1, (workers + 1) * seconds)
        for name, at in (("first", 0.0), ("second", comes))
    ]
    least = bound(jobs, slots)
    _draw(folder / "drawn", {"gang": theirs, "elastic": ours}, slots, least)
    name = f"real: {slots} slots, two jobs of {workers + 1}, the second after {comes:.1f} s"
    return compared(name, jobs, slots, ours, theirs)


def compared(
    name: str, jobs: Sequence[Job], slots: int, ours: Observed, theirs: Observed, *, most: float = RATIO
) -> list[Row]:
    """Compare two elastic jobs (ours) with the same jobs as gangs (theirs). most: the target of the ratio."""
    shares = [used(each, jobs, slots) for each in (ours, theirs)]
    busy = [share * sum(each.busy) / _held(each) for share, each in zip(shares, (ours, theirs), strict=True)]
    return [
        Row(
            f"{name}; against gang scheduling",
            f"{ours.makespan:.0f} s; gang {theirs.makespan:.0f}; at least {bound(jobs, slots):.0f}",
            [ours.makespan / theirs.makespan],
            most=most,
        ),
        Row(
            "… slots that are held, of those that are asked for",
            f"{shares[0]:.1%}; gang {shares[1]:.1%}",
            value=shares[0],
            least=USED,
        ),
        Row(
            "… slots that are in a step, of those that are asked for (servers and starts are in none)",
            f"{busy[0]:.1%}; gang {busy[1]:.1%}",
        ),
    ]


def _held(course: Observed) -> float:
    """Sum up the slot-seconds held by the jobs."""
    return sum(sum(course.per_second(name)) for name in course.ends)


def _draw(folder: Path, courses: dict[str, Observed], slots: int, least: float) -> None:
    """Draw a picture, and write its values second by second."""
    folder.mkdir(exist_ok=True)
    seconds = max(len(course.busy) for course in courses.values())
    panels, columns = [], {"second": [float(second) for second in range(seconds)]}
    for how, course in courses.items():
        areas = {f"{name} job": course.per_second(name) for name in ("first", "second")}
        title = f"{how}: {course.makespan:.0f} s"
        panels.append(Panel(title, areas, ("in a step", course.busy), (f"at least {least:.0f} s", least)))
        columns |= {f"{how}, {name}": values for name, values in areas.items()}
        columns[f"{how}, in a step"] = course.busy
    (folder / "quota.svg").write_text(picture(panels, seconds, slots))
    with (folder / "quota.csv").open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        for values in zip_longest(*columns.values(), fillvalue=0.0):
            writer.writerow(f"{value:.1f}".removesuffix(".0") for value in values)
