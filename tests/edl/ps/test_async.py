"""Async: a push moves the parameters when it comes, once."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest

from edl.jobs.snapshot import Staleness
from edl.ps import messages as msg
from edl.ps.checkpoint.content import Mode, Version
from edl.ps.messages import GenerationError, NotReadyError
from tests.edl.ps.servers import SECONDS, definition, first_values, progress, training_servers

MODEL = definition()
ROWS = {"items": (np.array([1, 2, 3]), np.ones((3, 4), np.float32))}


def gradients() -> dict[str, np.ndarray]:
    return {name: np.ones_like(value) for name, value in first_values().items()}


def test_a23_a_push_that_is_repeated_is_applied_once() -> None:
    with training_servers(2, MODEL) as servers:
        for _ in range(3):
            answers = servers.push(MODEL, gradients(), ROWS, sequence=1)
            assert [answer.version.step for answer in answers] == [1, 1]
        found = servers.pull(MODEL, {"items": ROWS["items"][0]})
    np.testing.assert_allclose(found["items"], -0.1)
    np.testing.assert_allclose(found["kernel"], first_values()["kernel"] - 0.1)


def test_a_push_of_an_earlier_start_of_the_instance_is_not_applied() -> None:
    with training_servers(1, MODEL) as servers:
        servers.push(MODEL, gradients(), ROWS, incarnation=1, sequence=1)
        servers.push(MODEL, gradients(), ROWS, incarnation=0, sequence=7)
        assert servers.push(MODEL, gradients(), ROWS, incarnation=1, sequence=2)[0].version.step == 2


def test_copies_of_a_push_that_come_at_once_are_applied_once() -> None:
    with training_servers(1, MODEL) as servers:
        threads = [
            threading.Thread(target=servers.push, args=(MODEL, gradients(), ROWS), kwargs={"sequence": 1})
            for _ in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(SECONDS)
        assert servers.call(0, msg.Status(), msg.Figures)[0].version.step == 1


@pytest.mark.soak
def test_pushes_of_many_workers_are_all_applied() -> None:
    def work(instance: str) -> None:
        for sequence in range(1, 21):
            servers.push(MODEL, gradients(), ROWS, instance=instance, sequence=sequence, rate=0.125)

    with training_servers(2, MODEL) as servers:
        threads = [threading.Thread(target=work, args=(f"worker-{i}",)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(SECONDS)
        found = servers.pull(MODEL, {"items": ROWS["items"][0]})
    assert (found["items"] == -10).all()


def test_a_push_under_a_revoked_lease_is_not_applied() -> None:
    with training_servers(1, MODEL) as servers:
        servers.push(MODEL, gradients(), ROWS, progress=progress(4, 10))
        revoked, _ = servers.call(0, msg.Revoke(0, (4, 5)), msg.Revoked)
        assert revoked.progress == (progress(4, 10),)
        before = servers.pull(MODEL, {})
        (answer,) = servers.push(MODEL, gradients(), ROWS, progress=progress(4, 20))
        assert answer.revoked and answer.version.step == 1
        np.testing.assert_array_equal(servers.pull(MODEL, {})["kernel"], before["kernel"])
        assert servers.call(0, msg.Revoke(0, (4,)), msg.Revoked)[0].progress == (progress(4, 10),)


def test_every_server_refuses_a_lease_that_it_has_revoked() -> None:
    with training_servers(2, MODEL) as servers:
        servers.push(MODEL, gradients(), ROWS, progress=progress(4, 10))
        revoked, _ = servers.call(1, msg.Revoke(0, (4,)), msg.Revoked)
        assert revoked.progress == (progress(4, 10),)
        answers = servers.push(MODEL, gradients(), ROWS, progress=progress(4, 20))
        assert [answer.revoked for answer in answers] == [False, True]


def test_a_server_that_is_restored_refuses_what_was_revoked_since_its_cut(tmp_path: Path) -> None:
    with training_servers(1, MODEL) as servers:
        servers.push(MODEL, gradients(), ROWS, progress=progress(4, 10))
        servers.call(0, msg.TakeCheckpoint(0, str(tmp_path / "cut"), wait=True), msg.CheckpointTaken)
        servers.replace(0)
        order = msg.Arrange(
            0, 0, 1, servers.addresses, restore=str(tmp_path / "cut"), leased=5, valid=(5,), mode=Mode()
        )
        servers.call(0, order, msg.Arranged)
        for lease, refused in ((4, True), (5, False), (6, False)):
            (answer,) = servers.push(MODEL, gradients(), ROWS, progress=progress(lease, 20))
            assert answer.revoked is refused


def test_a_checkpoint_counts_a_push_that_one_of_the_servers_has(tmp_path: Path) -> None:
    with training_servers(2, MODEL) as servers:
        servers.push(MODEL, gradients(), ROWS, progress=progress(4, 10))
        further = msg.Push(0, "worker-0", 0, 99, 0.1, 10, progress=progress(4, 20))
        servers.call(1, further, msg.Pushed, [np.empty(0, np.float32)])
        order = msg.TakeCheckpoint(0, str(tmp_path / "cut"))
        taken, _ = servers.call(0, order, msg.CheckpointTaken)
        assert taken.progress == (progress(4, 20),)


def test_the_updates_that_a_restored_server_says_are_lost_are_those_that_each_row_lacks(
    tmp_path: Path,
) -> None:
    def push(number: int) -> None:
        servers.push(MODEL, gradients(), ROWS, sequence=number, earlier=number - 1, rate=0.125)

    with training_servers(1, MODEL) as servers:
        for number in range(1, 6):
            push(number)
        servers.call(0, msg.TakeCheckpoint(0, str(tmp_path / "cut"), wait=True), msg.CheckpointTaken)
        for number in range(6, 9):
            push(number)
        servers.replace(0)
        servers.arrange(restore=str(tmp_path / "cut"), lives=(1,))
        for number in range(9, 13):
            push(number)
        updates = servers.pull(MODEL, {"items": ROWS["items"][0]})["items"] / -0.125
        figures, _ = servers.call(0, msg.Status(), msg.Figures)
    assert (figures.lost, figures.lost_rows) == (3, 30)
    assert (updates == 12 - figures.lost).all()


def test_a_gradient_beyond_the_bound_counts_the_less_the_further_it_is_behind() -> None:
    with training_servers(1, MODEL, Mode("async", max_staleness=2)) as servers:
        for step, computed_on in enumerate((0, 0, 0, 0, 4, -1)):
            before = servers.pull(MODEL, {"items": ROWS["items"][0]})
            servers.push(MODEL, gradients(), ROWS, rate=0.5, computed_on=computed_on)
            after = servers.pull(MODEL, {"items": ROWS["items"][0]})
            rate = 0.5 * (2 / 3 if step == 3 else 1)
            for name in ("items", "kernel"):
                np.testing.assert_allclose(before[name] - after[name], rate, rtol=1e-5)
        figures, _ = servers.call(0, msg.Status(), msg.Figures)
    assert figures.staleness == Staleness(gradients=5, total=0 + 1 + 2 + 3 + 0, maximum=3, reduced=1)


def test_the_state_is_the_mean_weighted_by_rows_and_the_private_blob_comes_back() -> None:
    with training_servers(2, MODEL) as servers:
        for name, rows, value in (("worker-0", 30, 1), ("worker-1", 10, 5)):
            state = np.full(2, value, np.float32)
            servers.push(
                MODEL,
                gradients(),
                ROWS,
                instance=name,
                sequence=1,
                count=rows,
                state=state,
                private=name.encode(),
            )
        assert servers.pull(MODEL, {})["state"].tolist() == [2, 2]
        for name, expected in (("worker-1", b"worker-1"), ("worker-2", b"")):
            pulled, _ = servers.call(0, msg.Pull(0, state=True, instance=name), msg.Pulled)
            assert pulled.private == expected


def test_a_push_of_the_state_alone_is_no_step() -> None:
    with training_servers(1, MODEL) as servers:
        push = msg.Push(0, "worker-0", 0, 1, 0.1, 0, state=True)
        servers.call(0, push, msg.Pushed, [np.empty(0, np.float32), np.ones(2, np.float32)])
        pulled, (state,) = servers.call(0, msg.Pull(0, state=True), msg.Pulled)
        assert (pulled.version.step, state.tolist()) == (0, [1, 1])


def test_rows_alone_leave_the_parameters_where_they_are() -> None:
    with training_servers(1, MODEL) as servers:
        push = msg.Push(0, "worker-0", 0, 1, 0.1, 10, ("items",))
        servers.call(0, push, msg.Pushed, [np.empty(0, np.float32), *ROWS["items"]])
        found = servers.pull(MODEL, {"items": ROWS["items"][0]})
    np.testing.assert_array_equal(found["kernel"], first_values()["kernel"])
    np.testing.assert_allclose(found["items"], -0.1)


def test_who_waits_for_a_step_is_answered_by_the_push_that_makes_it() -> None:
    with training_servers(1, MODEL) as servers:
        pull = msg.Pull(0, dense=True, at_least=1, wait_secs=SECONDS)
        pending = servers.channels[0].begin(pull, (), SECONDS)
        servers.push(MODEL, gradients(), {})
        pulled, _ = pending.result(msg.Pulled)
        assert pulled.version.step == 1


def test_who_waits_in_vain_gets_what_there_is() -> None:
    with training_servers(1, MODEL) as servers:
        pulled, _ = servers.call(0, msg.Pull(0, dense=True, at_least=5, wait_secs=0.01), msg.Pulled)
        assert pulled.version.step == 0


def test_who_waits_when_the_generation_ends_is_refused() -> None:
    with training_servers(1, MODEL) as servers:
        pending = servers.channels[0].begin(msg.Pull(0, at_least=1, wait_secs=SECONDS), (), SECONDS)
        servers.call(0, msg.Status(), msg.Figures)
        servers.generation = 1
        servers.arrange()
        with pytest.raises((GenerationError, NotReadyError)):  # the latter, where it came in between
            pending.result(msg.Pulled)


def test_arranging_again_changes_nothing_but_addresses() -> None:
    with training_servers(2, MODEL) as servers:
        servers.push(MODEL, gradients(), ROWS)
        servers.replace(1)
        servers.arrange(lives=(0, 1))
        arranged, _ = servers.call(0, msg.Arrange(0, 0, 0, servers.addresses, Mode()), msg.Arranged)
        assert arranged == msg.Arranged(Version(0, 0, 1), defined=True, open=True)
        earlier = msg.Arrange(1, 0, 0, servers.addresses, Mode())
        with pytest.raises(GenerationError):
            servers.call(1, earlier, msg.Arranged)
