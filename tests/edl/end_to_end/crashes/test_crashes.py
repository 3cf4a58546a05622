"""A crash at every write of a job of each kind: of its processes, and of the machine, which loses what is not flushed.

The operations of a run on files are recorded (`recorder`), the folder is built as each prefix of them leaves it
(`disk`), and resumed (`resuming`): what has to be there is there, and what a job goes on from is as it was, bit for
bit. So two states that go on from the same point go on alike: of each point, one is trained to its end, by real
processes.
"""

from __future__ import annotations

import random
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from edl.models.archive import read_archive
from tests.edl.end_to_end import counting
from tests.edl.end_to_end.crashes.disk import CRASHES, Tree, damage, digest, drawn, read_tree, tree, write
from tests.edl.end_to_end.crashes.kinds import COUNTED, EPOCHS, KINDS, RESUMED
from tests.edl.end_to_end.crashes.recording import JOBS, MODEL, Operation, record
from tests.edl.end_to_end.crashes.resuming import (
    NO_PART,
    LostError,
    Promised,
    Resumed,
    Run,
    Weights,
    at,
    finish,
    job_in,
    new_disk,
    same,
)

EXACT = ("local", "trees", "search", RESUMED)  # kinds with weights that are promised bit for bit
STATES = 1000  # of a kind, at least
FEW = 60  # in `make test`
MEMORY = Path("/dev/shm")  # noqa: S108 (a file system in memory: a thousand folders are written there)
IGNORED = ("logs", "snapshot.json")  # what no resumption reads


@cache
def recorded(kind: str) -> Run:
    """A run of a kind, of which all operations are recorded: they lead to what is there at its end."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "state"
        operations = record(kind, folder)
        run = Run(operations, dict(read_archive(folder / MODEL).weights()))
        there = read_tree(Path(f"{folder}.copy"))
    disk = new_disk()
    for operation in operations:
        if operation.path == "stored":
            found = tree(disk.root, *CRASHES["processes"])
            assert digest(found, without=("logs",)) == digest(there, without=("logs",))
        disk.apply(operation)
    return run


def crashes(operations: Sequence[Operation], least: int, seed: int) -> Iterator[tuple[str, Tree, Promised]]:
    """Distinct states after crashes, at least so many if there are: after each operation or each of some, the state of
    the processes, and two drawn states of the machine.
    """
    draw = random.Random(seed)  # noqa: S311 (a test)
    names = [*(name for name in CRASHES if name != "processes"), *(["drawn"] * 3)]
    every = max(1, len(operations) * 2 // least)
    disk, promised, seen = new_disk(), Promised(), set()
    for number, operation in enumerate(operations):
        disk.apply(operation)
        promised.add(operation)
        if number % every:
            continue
        for name in ("processes", *draw.sample(names, 2)):
            how = drawn(draw.randrange(1 << 30)) if name == "drawn" else CRASHES[name]
            content = tree(disk.root, *how)
            key = digest(content, without=IGNORED), promised.key
            if key not in seen:
                seen.add(key)
                yield (
                    f"{name}, after operation {number} ({operation.what} {operation.path})",
                    content,
                    promised,
                )


def check_states(kind: str, least: int, seed: int) -> tuple[Run, dict[Resumed, Tree], Counter[str]]:
    """Resume from states of a kind. Return one of each point from which training goes on, and the numbers of ends."""
    run, points, ends, lost = recorded(kind), {}, Counter[str](), []
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as place:
        for name, content, promised in crashes(run.operations, least, seed):
            try:
                found = run.check(content, promised, Path(place) / "state")
            except (LostError, Exception) as error:
                lost.append(f"{name}: {type(error).__name__}: {error}")
                continue
            ends[found.end] += 1
            if found.end in ("resumed", "beginning"):
                points.setdefault(found, content)
    assert not lost, f"{len(lost)} of {len(lost) + ends.total()} states of {kind} (seed {seed}): {lost[:5]}"
    return run, points, ends


def has_weights(kind: str, found: Weights, expected: Weights) -> bool:
    check_weights(kind, found, expected)
    return True


def check_weights(kind: str, found: Weights, expected: Weights) -> None:
    if kind in EXACT:
        gains = [dict(weights).pop("gain", None) for weights in (found, expected)]
        if gains[0] is not None:  # a booster that is read again adds up rounded gains
            np.testing.assert_allclose(*gains, rtol=1e-5)
        assert same(
            *(
                {name: value for name, value in weights.items() if name != "gain"}
                for weights in (found, expected)
            )
        )
        return
    assert found.keys() == expected.keys()
    if kind == "async":
        check_counts(found)
        return
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-4, atol=1e-4, err_msg=name)


def check_counts(weights: Weights) -> None:
    """Check that each row was applied as often as there are epochs, but for the part of one minibatch that one of the
    servers had when its worker died before it pushed the other one.
    """
    found, steps = counting.counts_in(weights), EPOCHS * COUNTED // counting.BATCH
    assert steps - 1 <= min(found.steps) <= max(found.steps) <= steps
    missing = EPOCHS - found.rows
    assert len(found.ids) == COUNTED
    assert missing.min() >= 0
    assert missing.sum() <= counting.BATCH


def check_end(kind: str, run: Run, content: Tree, folder: Path) -> None:
    """Train from a state to the end."""
    write(content, folder)
    run.check_folder(folder, Promised())
    job = job_in(folder)
    assert job is not None
    check_weights(kind, finish(job), run.weights)


def test_after_a_crash_at_some_writes_nothing_is_lost(tmp_path: Path) -> None:
    run, points, ends = check_states("trees", FEW, seed=0)
    assert ends.total() >= FEW
    [*_, content] = (content for point, content in points.items() if point.end == "resumed")
    check_end("trees", run, content, tmp_path / "state")


def damages(run: Run, states: int, seed: int) -> Iterator[tuple[str, Tree]]:
    """So many states of a run: its processes were killed, and then its newest checkpoint or its state is damaged. Not
    that checkpoint's own copy of the state, which is read only if the state is damaged.
    """
    draw = random.Random(seed)  # noqa: S311 (a test)
    disk, promised = new_disk(), Promised()
    numbers = {*draw.sample(range(len(run.operations)), min(states, len(run.operations)))}
    for number, operation in enumerate(run.operations):
        disk.apply(operation)
        promised.add(operation)
        if number in numbers and promised.checkpoint and not promised.model:
            content = tree(disk.root, *CRASHES["processes"])
            [job] = at(disk.root, *JOBS.parts).names
            name = max(at(disk.root, *JOBS.parts, job, "checkpoints").names.keys() & run.checkpoints.keys())
            files = at(disk.root, *JOBS.parts, job, "checkpoints", name).names
            paths = [("checkpoints", name, file) for file in files if not file.endswith(NO_PART)]
            path = draw.choice([("cluster", "state"), *paths])
            if name == promised.checkpoint and "archive.zip" not in at(disk.root, *JOBS.parts, job).names:
                where = f"{'/'.join(path)}, after operation {number}, seed {seed}"
                yield where, damage(content, (*JOBS.parts, job, *path), draw.randrange(1 << 30))


@pytest.mark.soak
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "search"])
def test_a_file_that_is_damaged_besides_is_noticed(kind: str) -> None:
    """The newest sound checkpoint takes the place of one that is damaged, and its state replaces the master's."""
    run, seed, states = recorded(kind), random.SystemRandom().randrange(1 << 30), 0
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as place:
        for where, content in damages(run, STATES, seed):
            states += 1
            try:
                run.check_damaged(content, Path(place) / "state")
            except Exception as error:
                raise LostError(where) from error
    print(f"{kind}, seed {seed}: {states} states with damage")
    assert states > STATES // 10


@pytest.mark.soak
@pytest.mark.parametrize("kind", KINDS)
def test_after_a_crash_at_any_write_nothing_is_lost(kind: str, tmp_path: Path) -> None:
    seed = random.SystemRandom().randrange(1 << 30)
    run, points, ends = check_states(kind, STATES, seed)
    print(f"{kind}, seed {seed}: {ends.total()} states, {dict(ends)}, {len(points)} points to go on from")
    assert ends.total() >= STATES
    assert set(ends) == {"nothing", "beginning", "resumed", "model", "stored"}
    for number, content in enumerate(points.values()):
        check_end(kind, run, content, tmp_path / f"{number}")
