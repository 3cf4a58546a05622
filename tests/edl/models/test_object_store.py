"""The registry in a folder or an object store: what is kept there, strangers, and writers that die or meet."""

from __future__ import annotations

import secrets
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from edl.errors import SemanticError, SourceError, SpecError
from edl.models.registry.object_store import MARK, PIECE_BYTES, StoredRegistry, open_objects, open_store
from edl.models.registry.records import ModelRecord

RECORD = ModelRecord("DNNClassifier", "keras", 150, {"accuracy": 0.9, "auc": None}, "SELECT 'x'\nTO TRAIN …")
HOSTILE = (
    "a.b",
    "it's",
    "../../escape",
    "/etc/passwd",
    "größe.表",
    "n" * 300,
    "%",
    ".hidden",
    "a/b",
    "a_b",
    "A/B",
)

# A writer of its own process: saves N archives, or is stopped in its upload.
WRITER = """
import sys
from pathlib import Path
from edl.models.registry.records import ModelRecord
from edl.models.registry.object_store import open_store

store, archive, count = sys.argv[1:]
registry = open_store(store)
if count == "stop":
    def upload(name, file):
        registry._objects.put(name, b"half of it")
        print("uploading", flush=True)
        sys.stdin.read()
    registry._objects.upload = upload
for _ in range(1 if count == "stop" else int(count)):
    once = "job" if count == "stop" else ""
    print(registry.save("m", Path(archive), ModelRecord("M", "keras", 1, {}, ""), once=once))
"""

FileOf = Callable[[bytes], Path]


@pytest.fixture(params=["folder", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return str(tmp_path / "store") if request.param == "folder" else f"memory://{secrets.token_hex(8)}"


@pytest.fixture
def registry(store: str) -> StoredRegistry:
    return open_store(store)


def writer(store: Path, archive: Path, count: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", WRITER, str(store), str(archive), count]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


@pytest.mark.parametrize("size", [0, 1, PIECE_BYTES, PIECE_BYTES + 1])
def test_an_archive_of_any_size_comes_back_byte_for_byte(
    registry: StoredRegistry, file_of: FileOf, tmp_path: Path, size: int
) -> None:
    content = (bytes(range(251)) * (size // 251 + 1))[:size]
    registry.save("m", file_of(content), RECORD)
    found = registry.load("m", tmp_path / "deep" / "loaded")
    assert (tmp_path / "deep" / "loaded").read_bytes() == content
    assert found.archive_bytes == size


def test_any_name_names_a_model_of_its_own(
    registry: StoredRegistry, store: str, file_of: FileOf, tmp_path: Path
) -> None:
    for name in HOSTILE:
        registry.save(name, file_of(name.encode()), RECORD)
    others = open_store(store)
    assert [found.name for found in others.list()] == sorted(HOSTILE)
    for name in HOSTILE:
        others.load(f"{name}@1", tmp_path / "loaded")
        assert (tmp_path / "loaded").read_bytes() == name.encode()
    assert {path.name for path in tmp_path.iterdir()} <= {"store", "loaded", "state"} | {
        f"archive{number}" for number in range(len(HOSTILE))
    }


def test_reading_makes_nothing(tmp_path: Path) -> None:
    registry = open_store(str(tmp_path / "store"))
    assert registry.list() == []
    with pytest.raises(SemanticError, match="there is no model m"):
        registry.find("m")
    assert not (tmp_path / "store").exists()


def test_the_archive_of_a_dropped_version_is_removed(registry: StoredRegistry, file_of: FileOf) -> None:
    registry.save("m", file_of(b"1"), RECORD)
    registry.save("m", file_of(b"2"), RECORD)
    assert len(archives(registry)) == 2
    assert registry.drop("m@1") == 1
    assert len(archives(registry)) == 1
    assert registry.drop("m") == 1
    assert archives(registry) == []


def archives(registry: StoredRegistry) -> list[str]:
    return [name for name in registry._objects.names() if name.endswith("/archive")]


# Damage and strangers ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("gone", [False, True])
def test_a_damaged_archive_is_noticed_and_not_written(
    registry: StoredRegistry, file_of: FileOf, tmp_path: Path, gone: bool
) -> None:
    registry.save("m", file_of(b"x"), RECORD)
    [archive] = archives(registry)
    if gone:
        registry._objects.remove(archive)
    else:
        registry._objects.put(archive, b"y")
    with pytest.raises(SpecError, match="archive of model m@1 is damaged"):
        registry.load("m", tmp_path / "loaded" / "m.zip")
    assert list((tmp_path / "loaded").iterdir()) == []


def test_a_damaged_document_is_named(registry: StoredRegistry, store: str, file_of: FileOf) -> None:
    registry.save("m", file_of(b"x"), RECORD)
    [event] = [name for name in registry._objects.names() if "/ready-" in name]
    registry._objects.put(event, b'{"name": ')
    with pytest.raises(SpecError, match=f"{event} in the model store .* is damaged"):
        open_store(store).list()


def test_a_folder_of_other_things_is_an_error_and_stays(
    registry: StoredRegistry, store: str, file_of: FileOf
) -> None:
    open_objects(store).put("notes.txt", b"mine")
    with pytest.raises(SourceError, match="holds objects other than models") as caught:
        registry.save("m", file_of(b"x"), RECORD)
    assert caught.value.hint == f"use a separate folder for models, such as {registry.url}/models"
    assert open_objects(store).names() == ["notes.txt"]


def test_a_store_of_a_later_version_is_left_alone(
    registry: StoredRegistry, store: str, file_of: FileOf
) -> None:
    open_objects(store).put(MARK, b'{"version": 2, "more": []}')
    for ask in (registry.list, lambda: registry.save("m", file_of(b"x"), RECORD)):
        with pytest.raises(SpecError, match="has version 2, but this program reads version 1"):
            ask()
    assert open_objects(store).names() == [MARK]


def test_a_url_with_a_secret_is_refused_and_not_shown() -> None:
    with pytest.raises(SourceError, match="holds a password") as caught:
        open_store("ftp://user:hunter2@host/models")
    assert "hunter2" not in f"{caught.value} {caught.value.hint}"


@pytest.mark.parametrize(("store", "why"), [("nowhere://bucket", "nowhere"), ("s3://bucket/models", "s3fs")])
def test_a_store_that_cannot_be_opened_says_what_is_lacking(
    store: str, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "s3fs", None)
    with pytest.raises(SourceError, match=f"the model store {store} cannot be opened: .*{why}"):
        open_store(store)


def test_what_a_store_refuses_is_an_error_that_names_it(tmp_path: Path, file_of: FileOf) -> None:
    (tmp_path / "file").write_bytes(b"not a folder")
    registry = open_store(str(tmp_path / "file"))
    with pytest.raises(SourceError, match=f"model store file://{tmp_path}/file"):
        registry.save("m", file_of(b"x"), RECORD)


# Several writers ---------------------------------------------------------------------------------------------


@pytest.mark.soak
def test_writers_of_several_processes_give_every_version_once(tmp_path: Path, file_of: FileOf) -> None:
    store = tmp_path / "store"
    writers = [writer(store, file_of(b"%d" % number), "4") for number in range(3)]
    given = [int(line) for each in writers for line in each.communicate()[0].split()]
    assert sorted(given) == list(range(1, 13))
    found = open_store(str(store)).list()
    assert [(each.version, each.state) for each in found] == [(number, "ready") for number in range(1, 13)]
    assert sum(each.current for each in found) == 1


def test_an_upload_that_a_killed_process_left_is_invisible_and_done_again(
    tmp_path: Path, file_of: FileOf
) -> None:
    store, archive = tmp_path / "store", file_of(b"whole")
    registry = open_store(str(store))
    registry.save("m", file_of(b"earlier"), RECORD)
    killed = writer(store, archive, "stop")
    assert killed.stdout is not None
    assert killed.stdout.readline() == "uploading\n"
    assert [found.reference for found in registry.list()] == ["m@1"]
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    assert registry.save("m", archive, RECORD, once="job") == 3
    registry.load("m", tmp_path / "loaded")
    assert (tmp_path / "loaded").read_bytes() == b"whole"
    assert len(archives(registry)) == 2


def test_an_upload_that_was_given_up_is_cleaned_up(
    registry: StoredRegistry, file_of: FileOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry._prepare()
    with monkeypatch.context() as patch:
        patch.setattr("edl.models.registry.events.now", lambda: "2001-01-01T00:00:00.000+00:00")
        version = registry._add("m", "saving", RECORD, key="k")
    registry._upload("m", version, "k", file_of(b"half"))
    registry.save("m", file_of(b"x"), RECORD)
    assert [found.reference for found in registry.list()] == ["m@2"]
    assert len(archives(registry)) == 1


def test_of_two_who_claim_a_folder_one_has_it(store: str) -> None:
    mine, other = open_objects(store), open_objects(store)
    assert mine.claim("a")
    before = mine.names()
    assert not other.claim("a")
    assert mine.names() == before


def test_of_two_who_claim_a_folder_at_the_same_moment_at_most_one_has_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store = f"memory://{secrets.token_hex(8)}"
    mine, other = open_objects(store), open_objects(store)
    put, others = mine.put, []

    def put_and_look_away(name: str, content: bytes) -> None:
        put(name, content)
        others.append(other.claim("a"))

    monkeypatch.setattr(mine, "put", put_and_look_away)
    assert (mine.claim("a"), others) == (True, [False])
    monkeypatch.setattr(
        mine, "names", lambda folder: (other.put(f"{folder}/claim-x", b""), other.names(folder))[1]
    )
    monkeypatch.setattr(mine, "put", put)
    assert not mine.claim("b")
    assert other.names("b") == ["b/claim-x"]


def test_a_folder_that_a_store_names_itself_is_none_of_its_objects(monkeypatch: pytest.MonkeyPatch) -> None:
    objects = open_objects(f"memory://{secrets.token_hex(8)}")
    objects.put("a/b", b"")
    found = objects._system.find
    monkeypatch.setattr(objects._system, "find", lambda path: [path, *found(path)])
    assert objects.names("a") == objects.names() == ["a/b"]


def test_a_document_that_is_being_written_is_not_there(tmp_path: Path) -> None:
    objects = open_objects(str(tmp_path))
    objects.put("a/whole.json", b"{}")
    (tmp_path / "a" / ".half.json.0123").write_bytes(b"{")
    assert objects.names() == ["a/whole.json"]


def test_a_folder_that_takes_no_models_is_told_before_one_is_trained(tmp_path: Path) -> None:
    store = tmp_path / "store"
    open_store(str(store)).check_save("m")
    (store / "models").rmdir()
    (store / "models").write_text("a file in place of the folder")
    with pytest.raises(SourceError, match="cannot be written to"):
        open_store(str(store)).check_save("m")
