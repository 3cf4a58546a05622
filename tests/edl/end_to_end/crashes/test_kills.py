"""All processes of a job of each kind are killed at once, after an operation on files that is drawn: 20 times a kind.

A kill comes after a number of operations, so that a seed repeats it as far as the processes run alike.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.edl.end_to_end.crashes.kinds import KINDS, RESUMED
from tests.edl.end_to_end.crashes.recording import Recording
from tests.edl.end_to_end.crashes.resuming import Promised, Run, finish, job_in
from tests.edl.end_to_end.crashes.test_crashes import check_weights, has_weights, recorded

KILLS = 20


@pytest.mark.soak
@pytest.mark.parametrize("number", range(KILLS))
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != RESUMED])
def test_a_job_of_which_all_is_killed_goes_on_to_the_same_model(
    kind: str, number: int, tmp_path: Path
) -> None:
    whole = recorded(kind)
    seed = random.SystemRandom().randrange(1 << 30)
    after = random.Random(seed).randrange(len(whole.operations))  # noqa: S311 (a test)
    run = Recording(kind, tmp_path / "state")
    if not run.kill(lambda operations: len(operations) > after):
        run.wait()
    operations, promised = run.operations(), Promised()
    for operation in operations:
        promised.add(operation)
    killed = Run(operations, whole.weights, lambda found: has_weights(kind, found, whole.weights))
    found = killed.check_folder(run.folder, promised)
    print(
        f"{kind}, kill {number}, seed {seed}: after {len(operations)} operations, {found.end} {found.point}"
    )
    if found.end in ("resumed", "beginning"):
        job = job_in(run.folder)
        assert job is not None
        check_weights(kind, finish(job), whole.weights)
