"""Update logs: a server is killed at any byte of what it writes, and its replacement has all that it acknowledged."""

from __future__ import annotations

import errno
import os
import random
import threading
from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np
import pytest

from edl.checkpoints.folder import SharedFolder
from edl.checkpoints.object_store import ObjectStore
from edl.embeddings import TableSpec
from edl.errors import JobError, SpecError
from edl.ps import messages as msg
from edl.ps import update_log
from edl.ps.checkpoint import manifests
from edl.ps.checkpoint.content import Mode, ModelDefinition
from edl.ps.messages import NotReadyError
from edl.ps.server import Server
from edl.ps.update_log import UpdateLog, replay
from edl.ps.wire import Array
from tests.edl.ps.servers import SECONDS, SGD, TOKEN
from tests.edl.ps.servers import progress as progress_of

IDS = 30
MODE = Mode("async", durable_updates="process")
MODEL = ModelDefinition(SGD, tables=(TableSpec("items", 1, "zeros"),))


def push(worker: str, number: int, ids: Sequence[int], lease: int = 0) -> tuple[msg.Push, list[Array]]:
    """Take 1 from each row."""
    header = msg.Push(
        0, worker, 0, number, 1.0, len(ids), ("items",), earlier=number - 1,
        progress=progress_of(lease, number) if lease else None,
        earlier_rows=(number - 1) * len(ids),
    )  # fmt: skip
    return header, [np.empty(0, np.float32), np.array(ids, np.int64), np.ones((len(ids), 1), np.float32)]


class Place:
    """The place of server 0 of one, and the processes that have it one after another."""

    def __init__(self, folder: Path, mode: Mode = MODE, model: ModelDefinition = MODEL) -> None:
        self.store = SharedFolder(folder)
        self.mode = mode
        self.epoch = 0
        self.checkpoints: list[str] = []
        self.server = self.started()
        for header in (msg.Define(0, model), msg.Open(0)):
            arrays = [np.empty(0, np.float32)] * 2 if isinstance(header, msg.Define) else []
            self.server.answer(header, arrays)
        self.checkpoint()

    @property
    def log(self) -> Path:
        """The segment that is written now."""
        folder = self.store.folder / "updates" / "server-0" / f"000000-{self.epoch:06d}"
        return max(folder.iterdir())

    def started(self) -> Server:
        server = Server(TOKEN, self.store)
        restore = self.checkpoints[-1] if self.checkpoints else ""
        server.answer(msg.Arrange(0, 0, self.epoch, ("",), self.mode, restore), ())
        return server

    def replace(self) -> Server:
        """Start another process; return the one that had the place."""
        before, self.epoch = self.server, self.epoch + 1
        self.server = self.started()
        return before

    def checkpoint(self, *, complete: bool = True) -> None:
        name = f"000000-{len(list(self.store.folder.glob('0*'))):06d}"
        taken, _ = self.server.answer(msg.TakeCheckpoint(0, name), ())
        assert isinstance(taken, msg.CheckpointTaken)
        while name not in self.figures.written:
            pass
        if complete:
            manifest = manifests.manifest_of(name, taken.version, MODE, [self.figures.written[name]])
            manifests.write_manifest(self.store, name, manifest)
            self.checkpoints.append(name)
            self.server.answer(msg.Status(name), ())

    @property
    def figures(self) -> msg.Figures:
        found, _ = self.server.answer(msg.Status(), ())
        assert isinstance(found, msg.Figures)
        return found

    def updates(self) -> list[int]:
        """Number of updates of each row."""
        _, (_, rows) = self.server.answer(msg.Pull(0, ("items",), dense=True), [np.arange(IDS)])
        return [round(-value) for value in rows[:, 0].tolist()]


@pytest.mark.variants(2)
@pytest.mark.parametrize("seed", range(8))
def test_every_acknowledged_push_counts_once_whenever_its_server_is_killed(tmp_path: Path, seed: int) -> None:
    drawn = random.Random(seed)  # noqa: S311 (a schedule, no secret)
    place = Place(tmp_path)
    counts, numbers = [0] * IDS, dict.fromkeys(("a", "b", "c"), 0)
    for _ in range(60):
        action = drawn.choices(["push", "checkpoint", "fail", "kill", "kill in a push"], [20, 3, 1, 3, 3])[0]
        worker = drawn.choice([*numbers])
        sent = push(worker, numbers[worker] + 1, drawn.sample(range(IDS), 5))
        if action in ("checkpoint", "fail"):
            place.checkpoint(complete=action == "checkpoint")
        if action == "kill in a push":
            before = place.log.stat().st_size
            place.server.answer(*sent)
            os.truncate(place.log, drawn.randint(before, place.log.stat().st_size))
        if action.startswith("kill"):
            place.replace()
        if action in ("push", "kill in a push"):  # what was not answered is repeated
            for _ in range(drawn.choice([1, 1, 2])):
                place.server.answer(*sent)
            numbers[worker] += 1
            for row in sent[1][1].tolist():
                counts[row] += 1
    place.replace()
    for worker, number in numbers.items():  # and each says what it lacks
        place.server.answer(*push(worker, number + 1, []))
    assert place.updates() == counts
    assert place.figures.lost == 0
    assert place.figures.version.step == sum(numbers.values())
    place.checkpoint()
    kept = [path.stem[7:] for path in tmp_path.glob("updates/server-0/*/*")]
    assert kept == place.checkpoints[-1:]


def test_a_replacement_knows_the_progress_of_leases_and_refuses_the_revoked_ones(tmp_path: Path) -> None:
    place = Place(tmp_path)
    for number, lease in ((1, 3), (2, 3), (3, 4)):
        place.server.answer(*push("a", number, [number], lease))
    place.replace()
    revoked, _ = place.server.answer(msg.Revoke(0, (3,)), ())
    assert revoked == msg.Revoked((progress_of(3, 2),))
    answer, _ = place.server.answer(*push("b", 1, [1], 3))
    assert isinstance(answer, msg.Pushed) and answer.revoked


def test_a_gradient_beyond_the_bound_is_logged_with_the_rate_at_which_it_was_applied(tmp_path: Path) -> None:
    place = Place(tmp_path, msgspec.structs.replace(MODE, max_staleness=1))
    for number in range(1, 5):
        header, arrays = push("a", number, [7])
        place.server.answer(msgspec.structs.replace(header, computed_on=0, rate=6.0), arrays)
    place.replace()
    assert place.updates()[7] == 6 + 6 + 6 / 2 + 6 / 3


@pytest.mark.parametrize("damage", ["cut", "changed"])
def test_an_incomplete_push_at_the_end_is_dropped_whatever_of_it_is_there(
    tmp_path: Path, damage: str
) -> None:
    written = UpdateLog(tmp_path, 0, 0, synced=False)
    for number in (1, 2):
        before = written.size
        written.append(*push("a", number, [number]))
    (path,) = tmp_path.rglob("*.log")
    whole = path.read_bytes()
    for at in range(before, len(whole)):
        rest = whole[at:] if damage == "cut" else bytes([whole[at] ^ 255]) + whole[at + 1 :]
        path.write_bytes(whole[:at] + (b"" if damage == "cut" else rest))
        assert [header.sequence for header, _ in replay(tmp_path, 0, "")] == [1]


def test_a_server_that_was_given_up_acknowledges_nothing_any_more(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.server.answer(*push("a", 1, [7]))
    before = place.replace()
    with pytest.raises(NotReadyError, match="another process"):
        before.answer(*push("a", 2, [7]))
    with pytest.raises(
        JobError, match="cannot be written"
    ):  # and begins no segment that would make it valid again
        before.answer(msg.TakeCheckpoint(0, "000000-000009"), ())
    with pytest.raises(NotReadyError):
        before.answer(*push("a", 2, [7]))
    place.server.answer(*push("a", 2, [7]))
    assert place.updates()[7] == 2
    place.replace()  # and no later replacement finds what it wrote
    assert place.updates()[7] == 2
    assert {path.stat().st_mode & 0o777 for path in tmp_path.rglob("*.log")} == {0o600}


def test_a_log_that_a_replacement_has_begun_to_close_is_closed_by_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Place(tmp_path)
    place.server.answer(*push("a", 1, [7]))

    def stop(file: Path, copy: Path) -> None:
        monkeypatch.undo()
        copy.write_bytes(file.read_bytes()[:-1])
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(update_log.shutil, "copy", stop)
    with pytest.raises(JobError, match="server-0 cannot be written: Input/output error"):
        place.replace()
    place.replace()
    assert place.updates()[7] == 1


def test_a_full_disk_refuses_the_push_and_all_later_ones_with_the_reason(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.server.answer(*push("a", 1, [7]))
    place.epoch += 1
    folder = tmp_path / "updates" / "server-0" / "000000-000001"
    folder.mkdir()
    (folder / "000000_.log").symlink_to("/dev/full")
    place.server = place.started()
    for _ in range(2):
        with pytest.raises(JobError, match=r"update log .* cannot be written: No space left on device"):
            place.server.answer(*push("a", 2, [7]))
    assert place.updates()[7] == 1
    assert place.figures.version.step == 1


def test_nothing_is_logged_behind_a_push_that_was_written_in_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Place(tmp_path)
    place.server.answer(*push("a", 1, [7]))

    def write(file: int, data: memoryview) -> int:
        monkeypatch.undo()  # there is room again
        os.write(file, data[:3])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(update_log.os, "write", write)
    for _ in range(2):
        with pytest.raises(JobError, match="No space left on device"):
            place.server.answer(*push("a", 2, [7]))
    place.replace()
    place.server.answer(*push("a", 2, [7]))
    assert place.updates()[7] == 2


def test_updates_that_a_damaged_log_lacks_are_counted_as_lost(tmp_path: Path) -> None:
    place = Place(tmp_path)
    for number in (1, 2, 3):
        size = place.log.stat().st_size
        place.server.answer(*push("a", number, [number]))
    os.truncate(place.log, size)
    place.replace()
    place.server.answer(*push("a", 4, [4]))
    assert (place.figures.lost, place.figures.lost_rows) == (1, 1)


def test_concurrent_pushes_share_a_flush_and_none_is_answered_before_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flushes: list[int] = []
    begun, go_on = threading.Event(), threading.Event()

    def flush(file: int) -> None:
        flushes.append(os.fstat(file).st_size)
        begun.set()
        assert go_on.wait(SECONDS)

    monkeypatch.setattr(update_log.os, "fdatasync", flush)
    written = UpdateLog(tmp_path, 0, 0, synced=True)
    threads = [threading.Thread(target=written.append, args=push(f"w{n}", 1, [n])) for n in range(6)]
    threads[0].start()
    assert begun.wait(SECONDS)
    for thread in threads[1:]:
        thread.start()
    while written.size < 6 * flushes[0]:
        pass
    assert all(thread.is_alive() for thread in threads)
    go_on.set()
    for thread in threads:
        thread.join(SECONDS)
    assert flushes == [flushes[0], 6 * flushes[0]]
    assert len(list(replay(tmp_path, 0, ""))) == 6


def test_logs_of_an_earlier_generation_are_not_replayed_and_go(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.server.answer(*push("a", 1, [7]))
    place.server.answer(msg.Arrange(0, 1, 0, ("",), MODE, place.checkpoints[-1]), ())
    assert [path.name for path in (tmp_path / "updates" / "server-0").iterdir()] == ["000001-000000"]
    _, (_, rows) = place.server.answer(msg.Pull(1, ("items",), dense=True), [np.arange(IDS)])
    assert not rows.any()


def test_a_missing_segment_is_an_error_and_not_a_loss(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.log.unlink()
    with pytest.raises(
        SpecError, match=r"the updates since the checkpoint 000000-000000 are missing in .*server-0"
    ):
        place.replace()


def test_updates_are_logged_only_where_all_instances_see_them(tmp_path: Path) -> None:
    server = Server(TOKEN, ObjectStore("memory://updates", tmp_path))
    with pytest.raises(JobError, match="in a folder that all instances see, and EDL_CHECKPOINTS names none"):
        server.answer(msg.Arrange(0, 0, 0, ("",), MODE), ())
