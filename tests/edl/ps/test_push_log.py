"""What a server remembers of workers and their leases."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from edl.ps.messages import Push
from edl.ps.push_log import PushLog, PushLogState
from tests.edl.ps.servers import progress

FIRST = np.array([7, 7], np.float32)


def push(
    instance: str, sequence: int, rows: int = 10, incarnation: int = 0, lease: int = 0, done: int = 0
) -> Push:
    found = progress(lease, done) if lease else None
    return Push(0, instance, incarnation, sequence, 0.1, rows, progress=found, private=f"{sequence}".encode())


def state(value: float) -> np.ndarray:
    return np.full(2, value, np.float32)


def test_the_state_before_any_push_is_the_first() -> None:
    assert PushLog(FIRST).state().tolist() == [7, 7]


def test_the_state_of_one_worker_is_exactly_its_own() -> None:
    push_log, own = PushLog(FIRST), np.array([0.1, 1e-30], np.float32)
    for sequence in (1, 2):
        push_log.record(push("a", sequence), own * np.float32(sequence))
    np.testing.assert_array_equal(push_log.state(), own * np.float32(2))


def test_the_state_of_several_is_weighted_by_the_rows_that_each_pushed() -> None:
    push_log = PushLog(FIRST)
    push_log.record(push("a", 1, rows=10), state(100))
    push_log.record(push("a", 2, rows=10), None)
    push_log.record(push("a", 3, rows=10), state(1))
    push_log.record(push("b", 1, rows=10), state(5))
    assert push_log.state().tolist() == [2, 2]


def test_states_that_come_without_rows_weigh_alike() -> None:
    push_log = PushLog(FIRST)
    push_log.record(push("a", 1, rows=0), state(1))
    push_log.record(push("b", 1, rows=0), state(3))
    assert push_log.state().tolist() == [2, 2]


@pytest.mark.parametrize(
    ("incarnation", "sequence", "known"),
    [(1, 5, True), (1, 4, True), (0, 9, True), (1, 6, False), (2, 1, False)],
)
def test_a_push_is_known_by_instance_start_and_sequence(incarnation: int, sequence: int, known: bool) -> None:
    push_log = PushLog(FIRST)
    push_log.record(push("a", 5, incarnation=1), None)
    assert push_log.knows(push("a", sequence, incarnation=incarnation)) == known
    assert not push_log.knows(push("b", 1))


def test_each_worker_has_its_private_blob() -> None:
    push_log = PushLog(FIRST)
    push_log.record(push("a", 1), None)
    push_log.record(msgspec.structs.replace(push("a", 2), private=b""), None)
    assert (push_log.private("a"), push_log.private("b")) == (b"1", b"")


def test_a_revoked_lease_is_void_and_answered_with_its_progress() -> None:
    push_log = PushLog(FIRST)
    push_log.record(push("a", 1, lease=3, done=20), None)
    push_log.record(push("a", 2, lease=3, done=40), None)
    push_log.record(push("a", 3, lease=4, done=10), None)
    assert push_log.revoke([3, 9]) == (progress(3, 40),)
    assert push_log.is_void(9) and not push_log.is_void(4)


def test_a_cut_tells_of_a_finished_lease_twice_and_of_an_open_one_always() -> None:
    push_log = PushLog(FIRST)
    push_log.record(push("a", 1, lease=1, done=100), None)
    push_log.record(push("a", 2, lease=2, done=40), None)
    found = [[each.task.attempt for each in push_log.snapshot(reported=True)[0].progress] for _ in range(4)]
    assert found == [[1, 2], [1, 2], [2], [2]]


def test_a_cut_that_the_master_does_not_hear_of_tells_nothing() -> None:
    push_log = PushLog(FIRST)
    push_log.record(push("a", 1, lease=1, done=100), None)
    for _ in range(3):
        push_log.snapshot(reported=False)
    assert [len(push_log.snapshot(reported=True)[0].progress) for _ in range(3)] == [1, 1, 0]


def restored(*, same_leases: bool) -> PushLog:
    push_log = PushLog(FIRST)
    push_log.record(push("a", 5, rows=30, lease=3, done=20), state(1))
    push_log.record(push("b", 5, rows=10, lease=4, done=20), state(5))
    push_log.revoke([4])
    push_log, states = push_log.snapshot(reported=True)
    other = PushLog(FIRST)
    other.restore(
        msgspec.json.decode(msgspec.json.encode(push_log), type=PushLogState), states, same_leases=same_leases
    )
    return other


def test_a_book_that_was_restored_for_the_same_workers_knows_all() -> None:
    push_log = restored(same_leases=True)
    assert push_log.knows(push("a", 5)) and not push_log.knows(push("a", 6))
    assert push_log.is_void(4)
    assert push_log.revoke([3]) == (progress(3, 20),)
    assert (push_log.state().tolist(), push_log.private("b")) == ([2, 2], b"5")


def test_a_book_of_another_generation_knows_no_push_and_no_lease() -> None:
    push_log = restored(same_leases=False)
    assert not push_log.knows(push("a", 1))
    assert not push_log.is_void(4)
    assert push_log.revoke([3]) == ()
    assert (push_log.state().tolist(), push_log.private("b")) == ([2, 2], b"5")


# What a restored log lacks -----------------------------------------------------------------------------------


def counted(instance: str, number: int, incarnation: int = 0) -> Push:
    """The push of this number of a worker that pushes 10 rows each time."""
    earlier = {"earlier": number - 1, "earlier_rows": 10 * (number - 1)}
    return msgspec.structs.replace(push(instance, number, incarnation=incarnation), **earlier)


def behind(*, same_leases: bool = True) -> PushLog:
    """From a checkpoint after three pushes of a."""
    before, after = PushLog(FIRST), PushLog(FIRST)
    for number in (1, 2, 3):
        before.record(counted("a", number), None)
    after.restore(*before.snapshot(reported=True), same_leases=same_leases)
    return after


def test_a_restored_log_counts_the_pushes_that_it_lacks_by_the_first_one_of_each_worker() -> None:
    push_log = behind()
    for number in (8, 9):
        push_log.record(counted("a", number), None)
    assert (push_log.lost, push_log.lost_rows) == (4, 40)
    push_log.record(counted("b", 3), None)  # a worker that came after the checkpoint
    push_log.record(counted("c", 1), None)
    assert (push_log.lost, push_log.lost_rows) == (6, 60)


def test_the_next_start_of_a_worker_counts_from_its_own_first_push() -> None:
    push_log = behind()
    push_log.record(counted("a", 2, incarnation=1), None)
    assert (push_log.lost, push_log.lost_rows) == (1, 10)


def test_a_log_that_is_complete_or_of_a_job_that_went_back_lacks_nothing() -> None:
    for push_log, number in ((behind(), 4), (behind(same_leases=False), 1), (PushLog(FIRST), 1)):
        push_log.record(counted("a", number), None)
        assert (push_log.lost, push_log.lost_rows) == (0, 0)
