"""The three places where checkpoints are kept promise the same: what one instance published, another one fetches."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import grpc
import pytest

from edl.checkpoints import DAMAGED, CheckpointStore, GoneError, mark_damaged, sound_names
from edl.checkpoints.folder import SharedFolder
from edl.checkpoints.master_client import Relay
from edl.checkpoints.master_store import PIECE
from edl.checkpoints.object_store import ObjectStore
from edl.errors import JobError
from edl.rpc import control_pb2 as pb
from edl.rpc.channel import AwayError
from tests.edl.checkpoints.storing import TOKEN

LARGE = bytes(range(256)) * (3 * PIECE // 256) + b"the end"


class Master:
    """A process. most: bytes that it may keep; 0: any number."""

    def __init__(self, folder: Path, most: int = 0) -> None:
        self.folder = folder
        self._most = most
        self.port = 0
        self.start()

    def start(self) -> None:
        self.folder.mkdir(exist_ok=True)
        command = [sys.executable, "-m", "tests.edl.checkpoints.storing"]
        self._process = subprocess.Popen(
            [*command, str(self.folder), str(self.port), str(self._most)], stdout=subprocess.PIPE
        )
        assert self._process.stdout is not None
        self.port = int(self._process.stdout.readline())

    def kill(self) -> None:
        self._process.kill()
        self._process.communicate()

    def relay(self, folder: Path, token: str = TOKEN) -> Relay:
        return Relay(folder, f"127.0.0.1:{self.port}", token)


@pytest.fixture
def master(tmp_path: Path) -> Iterator[Master]:
    running = Master(tmp_path / "master")
    yield running
    running.kill()


Instances = Callable[[str], CheckpointStore]


@pytest.fixture(params=["folder", "relay", "objects"])
def instances(request: pytest.FixtureRequest, tmp_path: Path) -> Instances:
    """What each instance of a job has, by its name."""
    if request.param == "relay":
        running: Master = request.getfixturevalue("master")
        return lambda name: running.relay(tmp_path / name)
    if request.param == "objects":
        pytest.importorskip("fsspec")
        return lambda name: ObjectStore(f"file://{tmp_path}/bucket/job", tmp_path / name)
    return lambda name: SharedFolder(tmp_path / "shared", volume=True)


def publish(store: CheckpointStore, name: str, **files: bytes) -> None:
    """Write these files, and publish them in their order."""
    folder = store.folder / name
    folder.mkdir(parents=True, exist_ok=True)
    for file, data in files.items():
        (folder / file).write_bytes(data)
    store.publish(name, *files)


def test_what_was_published_is_fetched_by_another_instance_until_it_is_removed(instances: Instances) -> None:
    one, other = instances("one"), instances("other")
    publish(one, "8-a", weights=LARGE, position=b"here")
    publish(one, "7-a", weights=b"")
    assert other.names() == ["7-a", "8-a"]
    assert other.names("position") == ["8-a"]
    folder = other.fetch("8-a")
    assert folder == other.folder / "8-a"
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == {
        "weights": LARGE,
        "position": b"here",
    }
    assert (other.fetch("7-a") / "weights").read_bytes() == b""
    other.remove("8-a")
    assert one.names() == ["7-a"]
    with pytest.raises(GoneError):
        instances("third").fetch("8-a")
    other.remove("8-a")


@pytest.mark.variants(2)
def test_several_instances_publish_files_of_one_checkpoint(instances: Instances) -> None:
    publish(instances("one"), "1", server0=b"zero")
    publish(instances("other"), "1", server1=b"one")
    third = instances("third")
    assert third.names("manifest") == []
    publish(instances("one"), "1", manifest=b"both")
    assert third.names("manifest") == ["1"]
    for file, data in {"manifest": b"both", "server1": b"one"}.items():
        assert (third.fetch("1", file) / file).read_bytes() == data
    assert sorted(path.name for path in third.fetch("1").iterdir()) == ["manifest", "server0", "server1"]


@pytest.mark.variants(2)
def test_nothing_is_there_at_first_and_nothing_is_left_in_the_end(
    instances: Instances, tmp_path: Path
) -> None:
    store = instances("one")
    assert store.names() == []
    with pytest.raises(GoneError):
        store.fetch("1")
    with pytest.raises(GoneError):
        store.fetch("1", "manifest")
    store.clear()
    publish(store, "1", weights=b"w")
    store.clear()
    if not isinstance(store, Relay):  # the disk of the master goes with it
        assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


@pytest.mark.variants(2)
def test_a_checkpoint_that_is_damaged_is_marked_for_all_and_not_listed_as_sound(instances: Instances) -> None:
    one, other = instances("one"), instances("other")
    for name in ("7-a", "8-a"):
        publish(one, name, weights=b"w", position=b"p")
    mark_damaged(other, "8-a", "its disk lost a sector")
    assert sound_names(one, "position") == ["7-a"]
    assert one.names("position") == ["7-a", "8-a"]
    assert (one.fetch("8-a", DAMAGED) / DAMAGED).read_text() == "its disk lost a sector\n"


def test_an_object_that_is_given_back_differently_is_no_part_of_a_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("fsspec")
    store = ObjectStore(f"file://{tmp_path}/bucket/job", tmp_path / "own")
    put = store._system.put_file

    def lose_a_byte(path: str, to: str) -> None:
        put(path, to)
        os.truncate(to, Path(to).stat().st_size - 1)

    monkeypatch.setattr(store._system, "put_file", lose_a_byte, raising=False)
    with pytest.raises(JobError, match="gives back 7-a/weights differently from how it was sent"):
        publish(store, "7-a", weights=b"w", position=b"p")
    assert store.names("position") == []


@pytest.mark.variants(2)
def test_of_a_removed_checkpoint_the_file_that_completes_it_goes_first(
    instances: Instances, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = instances("one")
    if isinstance(store, Relay):
        pytest.skip("its master removes it")
    publish(store, "7-a", **{"weights.safetensors": b"w", "position": b"p"})

    class CrashError(Exception):
        """The machine stops."""

    def crash(*_: object, **__: object) -> None:
        raise CrashError

    if isinstance(store, ObjectStore):
        monkeypatch.setattr(store._system, "rm", crash, raising=False)
        with pytest.raises(JobError):
            store.remove("7-a")
    else:
        monkeypatch.setattr(shutil, "rmtree", crash)
        with pytest.raises(CrashError):
            store.remove("7-a")
    assert store.names("position") == []


@pytest.mark.soak
@pytest.mark.parametrize("instances", ["relay", "objects"], indirect=True)
def test_what_was_sent_and_what_was_fetched_before_takes_no_room(instances: Instances) -> None:
    one, other = instances("one"), instances("other")
    for name in ("1", "2"):
        publish(one, name, weights=b"w")
        other.fetch(name)
    assert list(one.folder.iterdir()) == []
    assert [path.name for path in other.folder.iterdir()] == ["2"]


def test_a_file_goes_on_where_it_was_when_the_master_dies_on_the_way(master: Master, tmp_path: Path) -> None:
    relay, arrived = master.relay(tmp_path / "own"), threading.Event()
    sending = threading.Thread(
        target=publish, args=(relay, "7-a"), kwargs={"weights": LARGE, "position": b"p"}
    )
    keep = relay._channel.stub.Keep

    def kept(request: pb.KeepRequest, **how: object) -> pb.KeepResponse:
        if request.start and not arrived.is_set():
            arrived.set()
            master.kill()
        answer: pb.KeepResponse = keep(request, **how)
        return answer

    relay._channel.stub.Keep = kept
    sending.start()
    assert arrived.wait(30)
    shutil.rmtree(master.folder)  # its successor is on another node
    master.start()
    sending.join(30)
    found = master.relay(tmp_path / "other").fetch("7-a")
    assert (found / "weights").read_bytes() == LARGE


def test_a_call_that_is_repeated_takes_the_channel_of_now(tmp_path: Path) -> None:
    relay, called = Relay(tmp_path, "name.space.svc:50001", TOKEN), list[int]()

    class Renewed:
        """A channel that is replaced after every call. The second one finds the master."""

        @property
        def stub(self) -> SimpleNamespace:
            return SimpleNamespace(ListKept=len(called))

        def call(self, method: int, request: object, seconds: float) -> pb.ListKeptResponse:
            called.append(method)
            if len(called) == 1:
                raise AwayError("it is away")
            return pb.ListKeptResponse(folders=[pb.ListKeptResponse.Folder(name="7-a")])

    vars(relay)["_channel"] = Renewed()
    assert relay.names() == ["7-a"]
    assert called == [0, 1]


@pytest.mark.soak
def test_the_next_master_on_an_empty_disk_says_that_a_checkpoint_is_gone(
    master: Master, tmp_path: Path
) -> None:
    publish(master.relay(tmp_path / "one"), "7-a", weights=b"w")
    master.kill()
    shutil.rmtree(master.folder)
    master.start()
    with pytest.raises(GoneError, match="the checkpoint 7-a is gone"):
        master.relay(tmp_path / "other").fetch("7-a")


def test_what_the_master_has_no_room_for_is_told_with_figures(tmp_path: Path) -> None:
    master = Master(tmp_path / "master", most=2_000_000)
    try:
        with pytest.raises(JobError, match=r"no room .* has 3,145,735 bytes, and 2,000,000 are left"):
            publish(master.relay(tmp_path / "own"), "7-a", weights=LARGE)
        publish(master.relay(tmp_path / "own"), "8-a", weights=b"small")
    finally:
        master.kill()


def test_nothing_is_kept_for_who_lacks_the_token_of_the_job(master: Master, tmp_path: Path) -> None:
    stranger = master.relay(tmp_path / "own", token="guessed")  # noqa: S106
    for call, request in (
        (stranger._channel.stub.Keep, pb.KeepRequest(name="7-a", file="weights")),
        (stranger._channel.stub.Fetch, pb.FetchRequest(name="7-a", file="weights")),
        (stranger._channel.stub.ListKept, pb.ListKeptRequest()),
        (stranger._channel.stub.Discard, pb.DiscardRequest(name="7-a")),
    ):
        with pytest.raises(grpc.RpcError) as refused:
            call(request, timeout=30, metadata=(("edl-token", "guessed"),))
        assert refused.value.code() == grpc.StatusCode.UNAUTHENTICATED


def test_an_object_store_that_nobody_knows_is_named(tmp_path: Path) -> None:
    pytest.importorskip("fsspec")
    with pytest.raises(JobError, match="checkpoints cannot be stored in nowhere://bucket"):
        ObjectStore("nowhere://bucket", tmp_path)
