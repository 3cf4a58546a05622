"""The folder of a quota, and jobs of several processes that share it."""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from edl.cluster.quota.quota import FOLDER, Quota, use_of
from edl.errors import ClusterError
from edl.jobs.cluster_folder import QuotaUse
from edl.jobs.slots import SlotRequest
from edl.spec import Cluster

JOB = """\
import json, pathlib, sys
from edl.jobs.slots import SlotRequest
from edl.cluster.quota.quota import Quota
member = Quota(pathlib.Path(sys.argv[1])).join(sys.argv[2], SlotRequest(**json.loads(sys.argv[3])))
print("joined", flush=True)
for line in sys.stdin:
    print(member.turn(int(line)), flush=True)
member.leave()
"""


class Elsewhere:
    """A job in another process."""

    def __init__(self, quota: Quota, name: str, **request: int) -> None:
        command = [sys.executable, "-c", JOB, str(quota.folder), name, json.dumps(request)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._line() == "joined"

    def turn(self, occupied: int) -> int:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{occupied}\n")
        self.process.stdin.flush()
        return int(self._line())

    def _line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def end(self, *, kill: bool) -> None:
        if kill:
            self.process.kill()
        self.process.communicate()


@contextmanager
def elsewhere(quota: Quota, name: str, **request: int) -> Iterator[Elsewhere]:
    job = Elsewhere(quota, name, **request)
    try:
        yield job
    finally:
        job.end(kill=True)


@pytest.fixture
def quota(tmp_path: Path) -> Quota:
    made = Quota(tmp_path / "quota")
    made.resize(4)
    return made


def holds(quota: Quota) -> dict[str, int]:
    return {demand.job: demand.holds for demand in quota.look()[1]}


@pytest.mark.soak
@pytest.mark.parametrize("kill", [True, False])
def test_the_slots_of_a_job_are_free_when_its_process_has_ended(quota: Quota, kill: bool) -> None:
    ours = quota.join("ours", SlotRequest(1, 3))
    with elsewhere(quota, "theirs", least=1, most=3) as theirs:
        assert theirs.turn(0) == 2
        assert (ours.turn(0), holds(quota)) == (2, {"ours": 2, "theirs": 2})
        theirs.end(kill=kill)
        assert (ours.turn(2), holds(quota)) == (3, {"ours": 3})
    ours.leave()
    assert quota.look() == (4, [])


def test_a_job_that_is_to_have_fewer_holds_its_slots_until_its_instances_have_ended(quota: Quota) -> None:
    low = quota.join("low", SlotRequest(1, 4))
    assert low.turn(0) == 4
    high = quota.join("high", SlotRequest(1, 3, priority=1))
    assert high.turn(0) == 0
    assert (low.turn(4), high.turn(0)) == (1, 0)
    assert (low.turn(3), high.turn(0)) == (1, 1)
    assert (low.turn(1), high.turn(1)) == (1, 3)
    high.leave()
    assert low.turn(1) == 4


def test_a_job_begins_when_all_of_its_least_is_free(quota: Quota) -> None:
    first = quota.join("first", SlotRequest(1, 4))
    first.turn(0)
    second = quota.join("second", SlotRequest(2, 2))
    first.turn(4)
    assert (first.turn(3), second.turn(0), holds(quota)["second"]) == (2, 0, 0)
    assert (first.turn(2), second.turn(0)) == (2, 2)


def test_a_slot_that_nobody_occupies_yet_is_kept_for_its_job(quota: Quota) -> None:
    ours = quota.join("ours", SlotRequest(1, 2))
    other = quota.join("other", SlotRequest(1, 4))
    assert (ours.turn(0), other.turn(0)) == (2, 2)
    assert (ours.turn(0), other.turn(2)) == (2, 2)


def test_a_quota_grows_and_shrinks_under_its_jobs(quota: Quota) -> None:
    ours = quota.join("ours", SlotRequest(2, 9))
    assert ours.turn(0) == 4
    quota.resize(6)
    assert ours.turn(4) == 6
    quota.resize(1)
    assert ours.turn(6) == 2
    assert ours.turn(1) == 2  # its least stays its own, whoever of it has just ended


def test_a_job_that_needs_more_than_there_is_does_not_begin_to_wait(quota: Quota) -> None:
    with pytest.raises(ClusterError, match=r"needs at least 5 slots, and the quota .* has 4") as raised:
        quota.join("ours", SlotRequest(5, 5))
    assert raised.value.hint == f"edl quota {quota.folder} --slots 5 makes it larger"
    assert holds(quota) == {}


def test_a_folder_that_is_no_quota_is_an_error_that_says_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(ClusterError, match="there is no quota") as raised:
        Quota(tmp_path / "nowhere").look()
    assert raised.value.hint is not None
    assert "--slots N creates one" in raised.value.hint
    assert not (tmp_path / "nowhere").exists()


def test_a_folder_with_something_else_in_it_is_not_made_a_quota(tmp_path: Path) -> None:
    theirs = tmp_path / "jobs" / "thesis.txt"
    theirs.parent.mkdir()
    theirs.write_text("years of work")
    with pytest.raises(ClusterError, match="is not a quota, and not empty"):
        Quota(tmp_path).resize(4)
    with pytest.raises(ClusterError, match="there is no quota"):
        Quota(tmp_path).look()
    assert [*tmp_path.iterdir()] == [theirs.parent]
    assert theirs.read_text() == "years of work"


def test_a_quota_can_be_made_again_after_its_making_was_cut_short(tmp_path: Path) -> None:
    (tmp_path / "lock").touch()
    (tmp_path / "quota.json.partial").touch()
    Quota(tmp_path).resize(4)
    assert Quota(tmp_path).look() == (4, [])


@pytest.mark.parametrize("content", [b"", b"{}", b'{"slots": "many"}', b'{"slots": 1, "version": 2}'])
def test_a_damaged_quota_is_an_error(quota: Quota, content: bytes) -> None:
    (quota.folder / "quota.json").write_bytes(content)
    with pytest.raises(ClusterError, match="cannot be used"):
        quota.look()


def test_jobs_of_a_quota_that_was_removed_are_in_the_one_that_takes_its_place(quota: Quota) -> None:
    low, high = quota.join("low", SlotRequest(1, 4)), quota.join("high", SlotRequest(1, 4, priority=1))
    assert (low.turn(0), high.turn(0)) == (1, 3)
    shutil.rmtree(quota.folder)
    for job in (low, high):
        with pytest.raises(ClusterError, match="there is no quota"):
            job.turn(2)
    quota.resize(4)
    for job in (low, high):
        with pytest.raises(ClusterError, match="was created anew"):
            job.turn(2)
    assert (low.turn(1), high.turn(3), holds(quota)) == (1, 3, {"low": 1, "high": 3})
    high.leave()
    assert low.turn(1) == 4


def test_what_a_full_disk_did_not_take_is_written_later(
    quota: Quota, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*arguments: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    ours = quota.join("ours", SlotRequest(1, 4))
    with monkeypatch.context() as disk:
        disk.setattr(os, "pwrite", full)
        with pytest.raises(ClusterError, match="No space left"):
            ours.turn(0)
        with pytest.raises(ClusterError, match="No space left"):
            quota.join("other", SlotRequest(1, 4))
    assert ours.turn(0) == 4
    assert holds(quota) == {"ours": 4}


def test_a_lock_that_somebody_keeps_stops_a_turn_and_changes_nothing(quota: Quota) -> None:
    ours = quota.join("ours", SlotRequest(1, 4))
    with quota.lock(), pytest.raises(ClusterError, match="another process holds the lock"):
        ours.turn(0)
    assert ours.turn(0) == 4


def test_the_folder_is_the_users_alone(quota: Quota) -> None:
    assert quota.folder.stat().st_mode & 0o777 == 0o700


def test_a_job_asks_for_its_workers_and_servers_and_can_begin_with_one_worker(
    quota: Quota, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = Cluster(workers=9, parameter_servers=2, priority=7)
    used = QuotaUse(str(quota.folder), SlotRequest(3, 11, 7))
    assert use_of(cluster, quota.folder) == used
    assert use_of(cluster, None) is None
    monkeypatch.setenv(FOLDER, str(quota.folder))
    assert use_of(cluster, None) == used
    with pytest.raises(ClusterError, match="at least 5 slots"):
        use_of(Cluster(workers=1, parameter_servers=4), None)


def test_servers_that_joined_a_job_are_not_given_to_others(quota: Quota) -> None:
    ours = quota.join("ours", SlotRequest(2, 3))
    assert ours.turn(0) == 3
    assert ours.turn(3, (3, 4)) == 4
    theirs = quota.join("theirs", SlotRequest(1, 4, 1))
    assert theirs.turn(0) == 0
    assert (ours.turn(4, (3, 4)), ours.turn(3, (3, 4)), theirs.turn(0)) == (3, 3, 1)
    for member in (ours, theirs):
        member.leave()
