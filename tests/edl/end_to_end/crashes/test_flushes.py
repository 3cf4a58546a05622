"""Each flush to disk is needed: without the flushes of any one place in the source, a crash loses something.

The record of a run without them is what the run would have done if that place did not flush.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.edl.end_to_end.crashes.disk import CRASHES, Tree, digest, tree
from tests.edl.end_to_end.crashes.kinds import KINDS, RESUMED
from tests.edl.end_to_end.crashes.recording import Operation
from tests.edl.end_to_end.crashes.resuming import Promised, Run, new_disk
from tests.edl.end_to_end.crashes.test_crashes import IGNORED, MEMORY, recorded

STATES = 350  # of operations, after each of which the machine crashes
LINE = re.compile(r":\d+")
OF_MACHINE = [how for name, how in CRASHES.items() if name != "processes"]
# Kinds that notice what is missing where others do not: the state of a search refers to no checkpoint, for example.
NOTICED_BY = {
    "data, files.py replace_file < jobs/cluster_folder.py _write": RESUMED,
    "names, files.py make_folders < ps/checkpoint/shard_file.py write": "sync",
    "names, master/state_store.py write": "trees",
}
# Flushes that no crash notices, and why they are there all the same.
SPARE = {
    "names, files.py replace_file < jobs/cluster_folder.py _write": "the older file says the same",
    "names, files.py replace_file < jobs/job_folder.py _write": "the older status says that the job runs",
    "names, files.py replace_file < models/pending.py write_intent": "the master flushes the folder of the job",
    "data, files.py replace_file < models/pending.py write_intent": "needed if a resumed job gets another output",
    "names, files.py replace_file < master/stored_checkpoints.py add_state": "needed if the state store is damaged",
    "data, files.py replace_file < master/stored_checkpoints.py add_state": "needed if the state store is damaged",
    "names, ps/checkpoint/manifests.py write_manifest": "the server that made the folder has flushed its name",
    "names, files.py replace_file < run/search/judge.py _write_checksums": "the record that follows flushes them",
}


def crashes(operations: Sequence[Operation], known: set[object]) -> Iterator[tuple[Tree, Promised]]:
    """States after crashes of the machine that are not known."""
    disk, promised, every = new_disk(), Promised(), max(1, len(operations) // STATES)
    for number, operation in enumerate(operations):
        disk.apply(operation)
        promised.add(operation)
        if number % every == 0 or (operation.what == "ack" and operation.path != "push"):
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
    unnoticed = {LINE.sub("", site) for site, found in noticed.items() if not found} - SPARE.keys()
    assert not {site for site in unnoticed if NOTICED_BY.get(site, kind) == kind}
