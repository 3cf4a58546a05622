"""The check of one seed: its pairs, the first that differs, and the smallest input on which it does."""

from __future__ import annotations

import contextlib
import os
import time
import traceback
from dataclasses import dataclass, field
from pathlib import Path

from edl.errors import SQLFlowError
from tests.relations.comparing import TOLERANCES, Refusal, difference
from tests.relations.places import Place
from tests.relations.registry import Case, Input, Relation
from tests.relations.shrinking import shrunk
from tests.relations.tables import LABEL


@dataclass(frozen=True)
class Failure:
    """sort: what kind of failure it is, which a smaller input must have too."""

    sort: str
    text: str
    pairs: int = 0  # before it, of this seed


@dataclass
class Outcome:
    """Result of a seed of a relation. refused: pairs of two errors, which show little."""

    relation: str
    seed: int
    source: str
    model: str
    pairs: int = 0
    refused: int = 0
    seconds: float = 0.0
    cpu: float = 0.0  # seconds of processors, those of training processes too
    failure: str = ""
    sort: str = ""
    refusals: list[str] = field(default_factory=list)


def check(
    relation: Relation, place: Place, seed: int, *, shrinks: bool = True, seconds: float = 60.0
) -> Outcome:
    """Check a relation on the input of a seed. seconds: to shrink a failing input in."""
    case = relation.case(place, seed)
    outcome = Outcome(relation.name, seed, case.source, case.model)
    began, used = time.perf_counter(), cpu_seconds()
    failure = _failure(relation, case, outcome)
    outcome.seconds, outcome.cpu = time.perf_counter() - began, max(0.0, cpu_seconds() - used)
    if failure is None:
        return outcome
    smallest = case
    if shrinks:
        smallest = _smallest(relation, place, case, failure, seconds)
        failure = _failure(relation, smallest, Outcome("", 0, "", "")) or failure
    outcome.failure, outcome.sort = describe(relation, smallest, failure), failure.sort
    return outcome


def cpu_seconds() -> float:
    """Seconds of processors that this process and its children have used; those of children that ended are counted."""
    used = sum(os.times()[:4])
    for task in Path("/proc/self/task").glob("*/children"):
        for child in task.read_text().split():
            with contextlib.suppress(OSError):
                stat = Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()
                used += sum(map(int, stat[11:15])) / os.sysconf("SC_CLK_TCK")
    return used


def _failure(relation: Relation, case: Case, outcome: Outcome) -> Failure | None:
    try:
        for pair in relation.check(case):
            outcome.pairs += 1
            if isinstance(pair.first, Refusal):
                outcome.refused += 1
                outcome.refusals.append(pair.first.message)
            tolerance = TOLERANCES[pair.tolerance or relation.tolerance]
            if found := difference(pair.first, pair.second, tolerance):
                return Failure(_sort(pair.first, pair.second), f"{pair.what}\n{found}".strip(), outcome.pairs)
    except SQLFlowError as error:  # outside of `answer`: a statement of the relation itself
        return Failure("refused", str(error))
    except Exception as error:
        frames = traceback.format_exc(limit=-4)
        place = traceback.extract_tb(error.__traceback__)[-1]
        return Failure(f"{type(error).__name__} in {place.name} {place.lineno}", frames)
    return None


def _sort(first: object, second: object) -> str:
    if isinstance(first, Refusal) != isinstance(second, Refusal):
        return "one is refused"
    return "differs"


def _smallest(relation: Relation, place: Place, case: Case, failure: Failure, seconds: float) -> Case:
    def fails(smaller: Input) -> bool:
        found = _failure(relation, relation.case(place, case.seed, smaller), Outcome("", 0, "", ""))
        return found is not None and found.sort == failure.sort

    return relation.case(place, case.seed, shrunk(case.input, fails, seconds))


def describe(relation: Relation, case: Case, failure: Failure) -> str:
    """The report of a failure: the command that repeats it, the smallest input, and what was shown."""
    table, train = case.table, case.input.train
    lines = [
        f"{relation.name} does not hold: {relation.doc}",
        f"  python -m tests.relations {relation.name} --seed {case.seed}",
        f"source {case.source}, model {case.model}, {table.rows} rows, {len(table.names)} columns",
    ]
    lines += [
        f"  {line}" for line in table.statements("t", case.source if case.source != "frame" else "duckdb")[:3]
    ]
    if train is not None and LABEL in table.names:
        lines.append(f"  {train.text('SELECT * FROM t', 'm', case.source)}")
    lines += [f"  {line}" for line in failure.text.splitlines()]
    return "\n".join(line if len(line) < 3000 else line[:3000] + " …" for line in lines)
