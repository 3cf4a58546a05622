"""Cuts: written by so many servers, read by others, and what of them is not to be read."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from edl.checkpoints import mark_damaged
from edl.checkpoints.folder import SharedFolder
from edl.embeddings import Optimizer
from edl.errors import DamagedError, JobError, SpecError
from edl.ps import messages as msg
from edl.ps import store
from edl.ps.checkpoint import manifests, shard_file
from edl.ps.checkpoint.content import ModelDefinition, Shard, Version
from edl.spec import RowLimits
from tests.edl.ps.servers import (  # fmt: skip
    ADAGRAD,
    ADAM,
    ASYNC,
    SGD,
    TABLES,
    Servers,
    definition,
    first_values,
    servers,
    training_servers,
)

MOMENTUM = Optimizer("torch", "sgd", {"momentum": 0.9, "nesterov": 0.0})
EVERY = {"users": np.arange(-20, 60), "items": np.array([3, 2**40, -1, 77])}


def step(running: Servers, model: ModelDefinition, number: int, **more: object) -> None:
    """A push of the same gradients whoever gets it."""
    rng = np.random.default_rng(number)
    gradients = {one.name: rng.normal(size=one.shape).astype(np.float32) for one in model.dense}
    rows = {}
    for spec in TABLES:
        ids = rng.choice(EVERY[spec.name], len(EVERY[spec.name]) // 2, replace=False)
        rows[spec.name] = (ids, rng.normal(size=(len(ids), spec.dim)).astype(np.float32))
    state = rng.normal(size=2).astype(np.float32)
    running.push(model, gradients, rows, state=state, **more)  # type: ignore[arg-type]


def cut(running: Servers, folder: Path, *, wait: bool = True) -> msg.CheckpointTaken:
    order = msg.TakeCheckpoint(running.generation, str(folder), wait=wait)
    taken: msg.CheckpointTaken = running.call(0, order, msg.CheckpointTaken)[0]
    return taken


@pytest.fixture
def made(tmp_path: Path) -> Path:
    """A cut of two servers."""
    model = definition(ADAM)
    with training_servers(2, model) as running:
        for number in range(3):
            step(running, model, number)
        cut(running, tmp_path / "checkpoints" / "one")
    return tmp_path / "checkpoints" / "one"


CHANGED = (1, 1), (1, 3), (3, 1), (2, 3), (2, 2)  # numbers of servers before and after


@pytest.fixture
def changes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Checkpoints have what changed since the one before, although that is much in these small tables."""
    monkeypatch.setattr(store, "LARGEST_CHANGE", 10.0)


@pytest.mark.variants(3)
@pytest.mark.parametrize(
    ("before", "after", "optimizer"),
    [
        *((before, after, ADAM) for before, after in CHANGED),
        *((3, 1, optimizer) for optimizer in (MOMENTUM, ADAGRAD)),
        *(
            pytest.param(before, after, optimizer, marks=pytest.mark.soak)
            for before, after in CHANGED
            for optimizer in (MOMENTUM, ADAGRAD)
            if (before, after) != (3, 1)
        ),
    ],
)
def test_a14_training_goes_on_with_another_number_of_servers(
    before: int, after: int, optimizer: Optimizer, tmp_path: Path
) -> None:
    model = definition(optimizer)
    with training_servers(before, model) as running:
        for number in range(3):
            step(running, model, number)
        taken = cut(running, tmp_path)
        assert sorted(path.name for path in tmp_path.iterdir()) == [
            manifests.MANIFEST, *(shard.file for shard in taken.shards)
        ]  # fmt: skip
        for number in range(3, 6):
            step(running, model, number)
        expected = running.pull(model, EVERY)
    with servers(after) as running:
        running.arrange(restore=str(tmp_path))
        for number in range(3, 6):
            step(running, model, number)
        found = running.pull(model, EVERY)
        figures, _ = running.call(0, msg.Status(), msg.Figures)
    assert figures.version.step == 6
    for name, value in expected.items():
        np.testing.assert_array_equal(found[name], value)


@pytest.mark.soak
@pytest.mark.parametrize("after", [1, 2, 3])
def test_checkpoints_of_what_has_changed_are_whole_ones(after: int, tmp_path: Path, changes: None) -> None:
    """Each can be read when all others are removed."""
    model = definition(ADAM, limits=RowLimits(max_rows=60))
    with training_servers(2, model) as running:
        for number in range(5):
            step(running, model, number)
            shards = cut(running, tmp_path / f"{number}").shards
            shutil.rmtree(tmp_path / f"{number - 1}", ignore_errors=True)
        expected = running.pull(model, EVERY)
        evicted = running.call(0, msg.Status(), msg.Figures)[0].evicted
    assert [[part.file for part in shard.parts][::4] for shard in shards] == [
        [f"server-{index}.safetensors", f"server-{index}-4.safetensors"] for index in range(2)
    ]
    assert evicted
    with servers(after) as running:
        running.arrange(restore=str(tmp_path / "4"))
        found = running.pull(model, EVERY)
        cut(running, tmp_path / "again")
    for name, value in expected.items():
        np.testing.assert_array_equal(found[name], value)
    weights, again = (manifests.read_weights(tmp_path / name) for name in ("4", "again"))
    assert weights.keys() == again.keys()
    for name, array in again.items():
        np.testing.assert_array_equal(weights[name], array)


def test_a_checkpoint_without_its_predecessor_is_written_whole(tmp_path: Path, changes: None) -> None:
    model = definition(ADAM)
    with training_servers(1, model) as running:
        step(running, model, 0)
        cut(running, tmp_path / "0")
        step(running, model, 1)
        shutil.rmtree(tmp_path / "0")
        (shard,) = cut(running, tmp_path / "1").shards
        expected = running.pull(model, EVERY)
    assert not shard.earlier
    assert sorted(path.name for path in (tmp_path / "1").iterdir()) == [manifests.MANIFEST, shard.file]
    with servers(1) as running:
        running.arrange(restore=str(tmp_path / "1"))
        found = running.pull(model, EVERY)
    for name, value in expected.items():
        np.testing.assert_array_equal(found[name], value)


@pytest.mark.soak
def test_every_ninth_checkpoint_is_written_whole_and_so_are_checkpoints_of_many_changes(
    tmp_path: Path, changes: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = definition(SGD)
    with training_servers(1, model) as running:
        step(running, model, 0)
        earlier = [len(cut(running, tmp_path / f"{number}").shards[0].earlier) for number in range(11)]
        assert earlier == [*range(9), 0, 1]
        monkeypatch.setattr(store, "LARGEST_CHANGE", 0.5)
        step(running, model, 1)  # of half of the ids
        step(running, model, 2)
        assert not cut(running, tmp_path / "much").shards[0].earlier


def test_a_file_of_changes_that_is_damaged_is_named(tmp_path: Path, changes: None) -> None:
    with training_servers(1, definition(SGD)) as running:
        for number in range(3):
            step(running, definition(SGD), number)
            cut(running, tmp_path / f"{number}")
    damage(tmp_path / "2" / "server-0-1.safetensors")
    with pytest.raises(
        SpecError, match=r"the checkpoint 2 is damaged: bytes of server-0-1\.safetensors have changed"
    ):
        manifests.read_weights(tmp_path / "2")
    manifests.read_weights(tmp_path / "0")


@pytest.mark.soak
@pytest.mark.parametrize(("before", "after"), [(1, 3), (3, 2), (2, 2)])
def test_other_servers_know_evicted_and_admitted_ids_as_the_first_ones_did(
    before: int, after: int, tmp_path: Path
) -> None:
    model = definition(ADAM, limits=RowLimits(min_count=2, max_rows=24, ttl_steps=8))
    with training_servers(before, model) as running:
        for number in range(12):
            step(running, model, number)
        cut(running, tmp_path)
        expected = running.pull(model, EVERY)
        rows = sum(running.call(i, msg.Status(), msg.Figures)[0].rows["users"] for i in range(before))
        assert running.call(0, msg.Status(), msg.Figures)[0].evicted
    with servers(after) as running:
        running.arrange(restore=str(tmp_path))
        found = running.pull(model, EVERY)
        kept = [running.call(i, msg.Status(), msg.Figures)[0].rows["users"] for i in range(after)]
        assert sum(kept) == rows <= 24 + before
        step(running, model, 12)  # most ids were seen: they get rows at once, on whatever server they are
        assert sum(running.call(i, msg.Status(), msg.Figures)[0].refused for i in range(after)) < 10
        kept = [running.call(i, msg.Status(), msg.Figures)[0].rows["users"] for i in range(after)]
        assert max(kept) <= -(-24 // after)
    for name, value in expected.items():
        np.testing.assert_array_equal(found[name], value)


@pytest.mark.soak
def test_a_cut_is_what_it_was_when_it_was_taken(tmp_path: Path) -> None:
    model = definition(ADAM)
    with training_servers(2, model) as running:
        step(running, model, 0)
        expected = running.pull(model, EVERY)
        taken = cut(running, tmp_path, wait=False)
        step(running, model, 1)
        again = cut(running, tmp_path)
    assert again.version == taken.version
    with servers(2) as running:
        running.arrange(restore=str(tmp_path))
        found = running.pull(model, EVERY)
    for name, value in expected.items():
        np.testing.assert_array_equal(found[name], value)


def test_the_weights_in_a_cut_equal_the_models(made: Path) -> None:
    with servers(1) as running:
        running.arrange(restore=str(made))
        expected = running.pull(definition(ADAM), EVERY)
    weights = manifests.read_weights(made)
    assert set(weights) == {
        "kernel", "bias", "scale", "mean",
        *(f"{table}:{part}" for table in EVERY for part in ("ids", "rows", "seed")),
    }  # fmt: skip
    for name in ("kernel", "bias", "scale"):
        np.testing.assert_array_equal(weights[name], expected[name])
    np.testing.assert_array_equal(weights["mean"], expected["state"])
    for name, ids in EVERY.items():
        assert weights[f"{name}:seed"].tolist() == [5]
        stored = weights[f"{name}:ids"]
        assert (stored[1:] > stored[:-1]).all() and np.isin(stored, ids).all()
        every = expected[name][np.argsort(ids)][np.isin(np.sort(ids), stored)]
        np.testing.assert_array_equal(weights[f"{name}:rows"], every)
        assert weights[f"{name}:rows"].flags.c_contiguous


def test_a_cut_of_the_first_values_can_be_read(tmp_path: Path) -> None:
    with training_servers(2, definition(ADAM)) as running:
        cut(running, tmp_path)
    weights = manifests.read_weights(tmp_path)
    for name, value in first_values().items():
        np.testing.assert_array_equal(weights[name], value)
    assert weights["users:ids"].shape == (0,)
    assert weights["users:rows"].shape == (0, 2)


def test_a_push_that_is_in_the_cut_is_known_to_who_restores_it_alone(tmp_path: Path) -> None:
    model = definition(SGD)
    with training_servers(2, model) as running:
        step(running, model, 0, sequence=9)
        cut(running, tmp_path)
        running.replace(1)
        running.arrange(restore=str(tmp_path), lives=(0, 1))
        before = running.pull(model, EVERY)
        step(running, model, 0, sequence=9)
        after = running.pull(model, EVERY)
        figures, _ = running.call(1, msg.Status(), msg.Figures)
    assert figures.version == Version(0, 1, 1)
    for name, value in before.items():
        np.testing.assert_array_equal(after[name], value)


def test_another_job_that_begins_with_a_cut_knows_no_push_of_it(tmp_path: Path) -> None:
    model = definition(SGD)
    with training_servers(1, model) as running:
        step(running, model, 0, sequence=9)
        cut(running, tmp_path)
    with servers(1) as running:
        running.arrange(restore=str(tmp_path))
        before = running.pull(model, EVERY)
        step(running, model, 0, sequence=1)
        assert (running.pull(model, EVERY)["kernel"] != before["kernel"]).all()


def test_a_server_that_wrote_its_file_says_so(tmp_path: Path) -> None:
    with training_servers(1, definition()) as running:
        (shard,) = cut(running, tmp_path / "c").shards
        figures, _ = running.call(0, msg.Status(), msg.Figures)
    assert figures.written == {str(tmp_path / "c"): shard}
    assert (tmp_path / "c" / shard.file).stat().st_size == shard.bytes


def test_a_cut_that_cannot_be_written_is_named_and_is_none(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with training_servers(1, definition()) as running:
        with pytest.raises(JobError, match=r"lacks server-0\.safetensors: .*Not a directory"):
            cut(running, tmp_path / "file" / "cut")
        cut(running, tmp_path / "cut")
    assert manifests.complete(tmp_path) == ["cut"]


# What is not to be read -------------------------------------------------------------------------------------


def test_a_cut_without_manifest_is_not_complete(made: Path) -> None:
    (made / manifests.MANIFEST).unlink()
    with pytest.raises(SpecError, match=r"one is damaged: manifest\.json is missing"):
        manifests.read_weights(made)
    assert manifests.complete(made.parent) == []


def damage(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (damage, r"bytes of server-1\.safetensors have changed: its checksum is wrong"),
        (Path.unlink, r"server-1\.safetensors is missing"),
        (lambda path: path.write_bytes(path.read_bytes()[:-1]), r"server-1\.safetensors has 3,487 of 3,488 bytes"),
        (lambda path: path.write_bytes(b""), r"server-1\.safetensors has 0 of 3,488 bytes"),
    ],
    ids=["a bit", "missing", "cut short", "empty"],
)  # fmt: skip
def test_a_file_that_is_damaged_is_named(made: Path, spoil: Callable[[Path], object], message: str) -> None:
    assert manifests.verify_checkpoint(made) == 3
    spoil(made / "server-1.safetensors")
    for read in (
        lambda: manifests.verify_checkpoint(made),
        lambda: manifests.read_weights(made),
        lambda: manifests.restore(made, manifests.read_manifest(made), 1, 2, same_leases=False),
        lambda: manifests.restore(made, manifests.read_manifest(made), 0, 3, same_leases=False),
    ):
        with pytest.raises(DamagedError, match=f"the checkpoint one is damaged: {message}") as caught:
            read()
        assert caught.value.checkpoint == "one"


def test_a_manifest_that_has_changed_is_noticed_and_one_without_a_checksum_is_read(made: Path) -> None:
    path = made / manifests.MANIFEST
    written = path.read_bytes()
    path.write_bytes(written.replace(b'"kind":"async"', b'"kind":"sync" '))
    with pytest.raises(DamagedError, match=r"bytes of manifest\.json have changed"):
        manifests.read_manifest(made)
    path.write_bytes(written[: written.rindex(b',"crc"')] + b"}")  # as earlier versions wrote it
    assert manifests.verify_checkpoint(made) == 3


def test_a_checkpoint_marked_as_damaged_is_not_listed(made: Path) -> None:
    assert manifests.complete(made.parent) == ["one"]
    mark_damaged(SharedFolder(made.parent), "one", "its disk lost a sector")
    assert manifests.complete(made.parent) == []


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{"version": 3}', "has version 3; this program reads 1 and 2"),
        (b"{}", "has version none"),
        (b"not JSON", "is not readable"),
        (b'{"version": 1}', "is not readable"),
        (b'{"version": 1, "at": [0, 0, 0], "mode": {}, "shards": []}', "lacks files"),
    ],
)
def test_a_manifest_that_is_not_ours_is_named(made: Path, content: bytes, message: str) -> None:
    (made / manifests.MANIFEST).write_bytes(content)
    with pytest.raises(SpecError, match=message):
        manifests.read_manifest(made)
    assert manifests.complete(made.parent) == []


def test_files_of_different_models_are_no_cut(made: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    with training_servers(2, definition(SGD)) as running:
        cut(running, other)
    manifest, theirs = manifests.read_manifest(made), manifests.read_manifest(other)
    (other / "server-1.safetensors").replace(made / "server-1.safetensors")
    mixed = manifests.manifest_of("made", manifest.at, ASYNC, [manifest.shards[0], theirs.shards[1]])
    manifests.write_manifest(SharedFolder(made.parent), made.name, mixed)
    with pytest.raises(SpecError, match="different models"):
        manifests.read_weights(made)


def test_a_server_that_cannot_restore_says_why(made: Path) -> None:
    damage(made / "server-0.safetensors")
    with servers(1) as running:
        with pytest.raises(DamagedError, match=r"bytes of server-0\.safetensors have changed"):
            running.arrange(restore=str(made))
        running.arrange()


# Listing ----------------------------------------------------------------------------------------------------


@pytest.fixture
def checkpoints(tmp_path: Path) -> Path:
    store = SharedFolder(tmp_path)
    for number in range(5):
        manifest = manifests.manifest_of("", Version(0, 0, number), ASYNC, [Shard(0, "f")])
        manifests.write_manifest(store, f"{number}", manifest)
    manifests.write_manifest(store, "best-1", manifests.manifest_of("", Version(), ASYNC, [Shard(0, "f")]))
    (tmp_path / "half").mkdir()
    return tmp_path


def test_a_cut_that_is_removed_meanwhile_is_not_listed(
    checkpoints: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(folder: Path) -> manifests.Manifest:
        manifest = read_manifest(folder)
        if folder.name == "2":
            shutil.rmtree(folder)
        return manifest

    read_manifest = manifests.read_manifest
    monkeypatch.setattr(manifests, "read_manifest", read)
    assert manifests.complete(checkpoints) == ["0", "1", "3", "4"]


def test_complete_cuts_are_listed_the_oldest_first(checkpoints: Path) -> None:
    assert manifests.complete(checkpoints) == ["0", "1", "2", "3", "4"]
    assert manifests.complete(checkpoints / "nowhere") == []


def test_a_server_without_memory_for_its_file_says_so_and_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def contents(snapshot: object) -> None:
        raise MemoryError

    monkeypatch.setattr(shard_file, "contents", contents)
    name = str(tmp_path / "c")
    with training_servers(1, definition()) as running:
        running.call(0, msg.TakeCheckpoint(0, name, alone=True), msg.CheckpointTaken)
        while name not in (written := running.call(0, msg.Status(), msg.Figures)[0].written):
            pass
        assert written[name].error == "MemoryError"
        step(running, definition(), 0)
