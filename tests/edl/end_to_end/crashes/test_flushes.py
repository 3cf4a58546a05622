"""Each flush to disk is needed: without those of any one place in the source, a crash loses something.

The record of a run without them is what the run would have done if that place did not flush.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.edl.end_to_end.crashes.disk import CRASHES, Tree, digest, tree
from tests.edl.end_to_end.crashes.kinds import KINDS
from tests.edl.end_to_end.crashes.recording import Operation
from tests.edl.end_to_end.crashes.resuming import Promised, Run, new_disk
from tests.edl.end_to_end.crashes.test_crashes import IGNORED, MEMORY, recorded

EVERY = 3  # operations between two crashes
OF_MACHINE = [how for name, how in CRASHES.items() if name != "processes"]
# Flushes that no crash notices, by their function, and why they are there all the same.
SPARE: dict[str, str] = {}


def crashes(operations: Sequence[Operation], known: set[object]) -> Iterator[tuple[Tree, Promised]]:
    """States after crashes of the machine that are not known."""
    disk, promised = new_disk(), Promised()
    for number, operation in enumerate(operations):
        disk.apply(operation)
        promised.add(operation)
        if number % EVERY == 0 or operation.what == "ack":
            for how in OF_MACHINE:
                content = tree(disk.root, *how)
                key = digest(content, without=IGNORED), promised.key
                if key not in known:
                    known.add(key)
                    yield content, promised


def is_noticed(run: Run, site: str, known: set[object], folder: Path) -> bool:
    """Return True if something is lost without the flushes of a place in the source."""
    left = [each for each in run.operations if each.what != "sync" or each.more != (site,)]
    for content, promised in crashes(left, {*known}):
        try:
            run.check(content, promised, folder)
        except Exception:
            return True
    return False


@pytest.mark.soak
@pytest.mark.parametrize("kind", KINDS)
def test_a_crash_notices_each_flush_that_is_not_there(kind: str) -> None:
    run = recorded(kind)
    sites = sorted({str(each.more[0]) for each in run.operations if each.what == "sync"})
    known: set[object] = set()
    for _ in crashes(run.operations, known):
        """All of them are sound: `test_crashes`."""
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as place:
        noticed = {site: is_noticed(run, site, known, Path(place) / "state") for site in sites}
    for site, found in noticed.items():
        print(f"{kind}: {'lost without' if found else 'nothing is lost without'} {site}")
    unnoticed = {site for site, found in noticed.items() if not found and site.split()[1] not in SPARE}
    assert not unnoticed
