"""What every registry does, wherever it keeps models: every run a version, one current, numbers given once."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from functools import wraps
from pathlib import Path
from typing import Any

import pytest
from fsspec.implementations.memory import MemoryFileSystem

from edl.data import connect
from edl.errors import SemanticError, SourceError
from edl.models.archive import read_archive
from edl.models.registry.base import Registry
from edl.models.registry.factory import open_registry
from edl.models.registry.records import ModelRecord

RECORD = ModelRecord(
    model="DNNClassifier",
    framework="keras",
    rows=150,
    metrics={"accuracy": 0.5, "auc": None},
    statement="SELECT * FROM iris TO TRAIN DNNClassifier LABEL class INTO it's.mine",
)
PLACES = (
    *("duckdb", "sqlite", "csv", "mysql", "postgres", "folder", "memory"),
    pytest.param(
        "maxcompute", marks=pytest.mark.soak
    ),  # test_append_only.py has all that happens to models there
)
STORES = ("folder", "memory")  # of their own, beside a data source

FileOf = Callable[[bytes], Path]
Opener = Callable[[], Registry]


@pytest.fixture(params=PLACES)
def place(request: pytest.FixtureRequest) -> str:
    found: str = request.param
    return found


@pytest.fixture(autouse=True)
def calls_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls of the memory store in turn: fsspec's lists a dict while other threads change it."""
    turn = threading.RLock()

    def in_turn(call: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(call)
        def called(*given: Any, **options: Any) -> Any:
            with turn:
                return call(*given, **options)

        return called

    for name in ("find", "cat", "pipe_file", "put_file", "rm_file"):
        monkeypatch.setattr(MemoryFileSystem, name, in_turn(getattr(MemoryFileSystem, name)))


@pytest.fixture
def opened(place: str, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Opener]:
    """Opens the registry of the place, every time over another connection."""
    url, store = "duckdb:", {"folder": str(tmp_path / "store"), "memory": f"memory://{secrets.token_hex(8)}"}
    if place == "mysql":
        url = request.getfixturevalue("mariadb").url()
    elif place in ("postgres", "maxcompute"):
        url = request.getfixturevalue({"postgres": "postgresql"}.get(place, place)).url()
    elif place not in STORES:
        url = f"{place}:{tmp_path / 'given'}.{place}"
        if place == "csv":
            (tmp_path / "given.csv").write_text("a\n1\n", encoding="utf-8")
    with ExitStack() as stack:

        def opened() -> Registry:
            source = stack.enter_context(connect(url, create=True))
            return open_registry(source, store.get(place, ""))

        yield opened


@pytest.fixture
def registry(opened: Opener) -> Registry:
    return opened()


# Saving and loading -----------------------------------------------------------------------------------------


def test_a_saved_model_is_described_as_it_was_recorded(registry: Registry, file_of: FileOf) -> None:
    before = datetime.now(UTC)
    registry.save("m", file_of(b"x"), RECORD)
    (found,) = registry.list()
    assert found.record == RECORD
    assert (found.name, found.version, found.state, found.current, found.reason) == (
        "m",
        1,
        "ready",
        True,
        "",
    )
    assert found.reference == "m@1"
    assert abs(datetime.fromisoformat(found.created) - before) < timedelta(minutes=1)


@pytest.mark.soak
def test_a_real_archive_can_be_used_after_loading(registry: Registry, archive: Path, tmp_path: Path) -> None:
    registry.save("m", archive, RECORD)
    registry.load("m", tmp_path / "loaded.zip")
    assert read_archive(tmp_path / "loaded.zip").weights()["step"] == 3


@pytest.mark.variants(1)
def test_a_check_of_the_right_to_save_makes_no_version(registry: Registry, file_of: FileOf) -> None:
    for _ in range(2):
        registry.check_save("m")
    assert registry.list() == []
    assert registry.save("m", file_of(b"x"), RECORD) == 1
    registry.check_save("m")
    assert [found.reference for found in registry.list()] == ["m@1"]
    with pytest.raises(SemanticError):
        registry.check_save("")


def test_every_run_is_a_version_and_the_last_one_is_current(
    registry: Registry, file_of: FileOf, tmp_path: Path
) -> None:
    for number in (1, 2, 3):
        assert registry.save("m", file_of(b"%d" % number), RECORD) == number
    registry.save("other", file_of(b"o"), RECORD)
    assert registry.find("m").version == 3
    for reference, contents in (("m", b"3"), ("m@1", b"1"), ("m@2", b"2"), ("other", b"o")):
        registry.load(reference, tmp_path / "loaded")
        assert (tmp_path / "loaded").read_bytes() == contents


@pytest.mark.variants(2)
def test_an_earlier_version_can_become_current_until_another_is_saved(
    registry: Registry, opened: Opener, file_of: FileOf, tmp_path: Path
) -> None:
    for number in (1, 2, 3):
        registry.save("m", file_of(b"%d" % number), RECORD)
    registry.save("other", file_of(b"o"), RECORD)
    for version in (1, 2, 2):
        assert registry.activate(f"m@{version}").current
        assert [found.version for found in opened().list() if found.current] == [version, 1]
    registry.load("m", tmp_path / "loaded")
    assert (tmp_path / "loaded").read_bytes() == b"2"
    registry.drop("m@3")
    assert registry.find("m").version == 2
    assert registry.save("m", file_of(b"4"), RECORD) == 4
    assert registry.find("m").version == 4


@pytest.mark.variants(1)
def test_a_version_may_be_stored_beside_the_current_one(
    registry: Registry, opened: Opener, file_of: FileOf
) -> None:
    registry.save("m", file_of(b"1"), RECORD)
    assert registry.save("m", file_of(b"2"), RECORD, current=False) == 2
    assert [found.version for found in opened().list() if found.current] == [1]
    assert registry.find("m@2").state == "ready"
    registry.activate("m@2")
    assert registry.find("m").version == 2
    registry.save("m", file_of(b"3"), RECORD, current=False)
    registry.drop("m@2")
    assert registry.find("m").version == 3


@pytest.mark.variants(2)
def test_a_tag_names_one_version_until_it_is_moved_or_removed(
    registry: Registry, opened: Opener, file_of: FileOf, tmp_path: Path
) -> None:
    for number in (1, 2, 3):
        registry.save("m", file_of(b"%d" % number), RECORD)
    registry.save("other", file_of(b"o"), RECORD)
    assert registry.tag("m@1", "production") is None
    assert registry.tag("m", "staging") is None
    registry.tag("other", "production")
    assert [(found.reference, found.tags) for found in opened().list("m")] == [
        ("m@1", ("production",)),
        ("m@2", ()),
        ("m@3", ("staging",)),
    ]
    moved = registry.tag("m@staging", "production")
    assert moved is not None
    assert moved.reference == "m@1"
    assert opened().find("m@3").tags == ("production", "staging")
    registry.load("m@production", tmp_path / "loaded")
    assert (tmp_path / "loaded").read_bytes() == b"3"
    assert registry.has("m@staging")
    assert registry.untag("m", "staging").reference == "m@3"
    assert not opened().has("m@staging")
    assert opened().find("other@production").version == 1


def test_a_renamed_model_has_all_its_versions_tags_and_archives(
    registry: Registry, opened: Opener, file_of: FileOf, tmp_path: Path
) -> None:
    for number in (1, 2, 3):
        registry.save("old", file_of(b"%d" % number), RECORD)
    registry.record_failure("old", RECORD, "no memory")
    registry.tag("old@2", "best")
    registry.activate("old@2")
    registry.drop("old@1")
    registry.save("other", file_of(b"o"), RECORD)
    assert registry.rename("old", "a new name") == 3
    found = opened()
    assert not found.has("old")
    assert [(each.reference, each.state, each.current, each.tags) for each in found.list("a new%")] == [
        ("a new name@2", "ready", True, ("best",)),
        ("a new name@3", "ready", False, ()),
        ("a new name@4", "failed", False, ()),
    ]
    assert [each.reference for each in found.list("o%")] == ["other@1"]
    for reference, content in (("a new name@best", b"2"), ("a new name@3", b"3")):
        found.load(reference, tmp_path / "loaded")
        assert (tmp_path / "loaded").read_bytes() == content


def test_a_renamed_model_lives_on_under_its_new_name(
    registry: Registry, opened: Opener, file_of: FileOf, tmp_path: Path
) -> None:
    for number in (1, 2):
        registry.save("a", file_of(b"%d" % number), RECORD)
    registry.rename("a", "b")
    assert registry.save("b", file_of(b"3"), RECORD) >= 3
    later = registry.find("b")
    registry.tag("b@1", "first")
    registry.activate("b@1")
    assert registry.save("a", file_of(b"another"), RECORD) >= 1, "the old name is free"
    registry.rename("b", "c")
    found = opened()
    assert [each.name for each in found.list()] == ["a", "c", "c", "c"]
    assert found.find("c").reference == "c@1"
    assert found.find("c@first").tags == ("first",)
    found.untag("c", "first")
    assert found.drop("c@1") == 1
    found.load("c", tmp_path / "loaded")
    assert ((tmp_path / "loaded").read_bytes(), found.find("c").version) == (b"3", later.version)
    assert found.drop("c") == 2
    found.rename("a", "b")
    found.rename("b", "c")
    found.load("c", tmp_path / "loaded")
    assert (tmp_path / "loaded").read_bytes() == b"another"
    assert [each.name for each in opened().list()] == ["c"]


def test_the_facts_of_a_model_are_kept_with_its_name(
    registry: Registry, opened: Opener, file_of: FileOf
) -> None:
    for number in (1, 2):
        registry.save("a", file_of(b"%d" % number), RECORD)
    assert registry.facts("a") == {}
    registry.describe("a", {"description": "what it's for", "labels": "team: sales", "friendly_name": "x"})
    registry.describe("a", {"labels": "team: rides", "friendly_name": ""})
    assert opened().facts("a") == {"description": "what it's for", "labels": "team: rides"}
    registry.drop("a@2")
    registry.rename("a", "b")
    assert (opened().facts("a"), opened().facts("b")["labels"]) == ({}, "team: rides")
    registry.drop("b")
    registry.save("b", file_of(b"new"), RECORD)
    assert opened().facts("b") == {}
    with pytest.raises(SemanticError, match="there is no model nothing"):
        registry.describe("nothing", {"description": "a"})


def test_a_model_is_not_renamed_to_the_name_of_another(registry: Registry, file_of: FileOf) -> None:
    for name in ("a", "b"):
        registry.save(name, file_of(b"x"), RECORD)
    for old, new, why in (
        ("a", "b", "there is a model b already"),
        ("a", "a", "there is a model a already"),
        ("nothing", "c", "there is no model nothing"),
        ("a", "b@2", "names a version"),
        ("a@1", "c", "is renamed with all its versions"),
    ):
        with pytest.raises(SemanticError, match=why):
            registry.rename(old, new)
    assert [each.reference for each in registry.list()] == ["a@1", "b@1"]


@pytest.mark.soak
def test_a_name_of_dropped_versions_is_free(
    registry: Registry, opened: Opener, file_of: FileOf, tmp_path: Path
) -> None:
    for name, content in (("a", b"a"), ("b", b"b")):
        registry.save(name, file_of(content), RECORD)
    registry.drop("b@1")
    registry.rename("a", "b")
    found = opened()
    found.load("b@1", tmp_path / "loaded")
    assert (tmp_path / "loaded").read_bytes() == b"a"


@pytest.mark.soak
def test_of_writers_who_rename_a_model_at_once_one_has_it(opened: Opener, file_of: FileOf) -> None:
    opened().save("m", file_of(b"m"), RECORD)

    def rename(number: int) -> int:
        try:
            return opened().rename("m", f"n{number}")
        except (SemanticError, SourceError):
            return 0

    registries = [1, 2, 3]
    with ThreadPoolExecutor(3) as pool:
        renamed = list(pool.map(rename, registries))
    assert sum(renamed) >= 1
    assert len({each.name for each in opened().list()}) == 1


@pytest.mark.soak
def test_a_dropped_version_takes_its_tags_along(registry: Registry, opened: Opener, file_of: FileOf) -> None:
    for number in (1, 2):
        registry.save("m", file_of(b"%d" % number), RECORD)
    registry.tag("m@1", "best")
    assert registry.drop("m@best") == 1
    assert [found.reference for found in opened().list("m")] == ["m@2"]
    registry.tag("m@2", "best")
    registry.drop("m")
    registry.save("m", file_of(b"new"), RECORD)
    assert opened().find("m").tags == ()


@pytest.mark.variants(1)
def test_an_unknown_tag_is_answered_with_the_nearest(registry: Registry, file_of: FileOf) -> None:
    registry.save("m", file_of(b"1"), RECORD)
    registry.record_failure("m", RECORD, "no memory")
    with pytest.raises(SemanticError, match="m has no tag production") as none:
        registry.find("m@production")
    assert none.value.hint == "SET MODEL m TAG production 2 gives the version that tag"
    registry.tag("m@1", "production")
    with pytest.raises(SemanticError, match="m has no tag Production") as unknown:
        registry.untag("m", "Production")
    assert unknown.value.hint == "did you mean production?"
    for reference, tag, message in (
        ("m@2", "best", "the training of model m@2 failed"),
        ("m@7", "best", "model m has no version 7"),
        ("n", "best", "there is no model n"),
        ("m", "2nd", "'2nd' cannot be a tag"),
        ("m", "a-b", "'a-b' cannot be a tag"),
    ):
        with pytest.raises(SemanticError, match=message):
            registry.tag(reference, tag)
    with pytest.raises(SemanticError, match="no version 9"):  # dropped after it was found
        registry._tag("m", 9, "best")


def test_only_a_version_that_is_ready_becomes_current(registry: Registry, file_of: FileOf) -> None:
    registry.save("m", file_of(b"1"), RECORD)
    registry.record_failure("m", RECORD, "no memory")
    registry.save("m", file_of(b"3"), RECORD)
    for reference, message in (
        ("m@2", "the training of model m@2 failed: no memory"),
        ("m@9", "model m has no version 9"),
        ("n@1", "there is no model n"),
    ):
        with pytest.raises(SemanticError, match=message):
            registry.activate(reference)
    with pytest.raises(SemanticError, match="no version 9"):  # dropped after it was found
        registry._activate("m", 9)
    assert registry.find("m").version == 3


def test_what_is_to_be_saved_once_is_saved_once(
    registry: Registry, file_of: FileOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(*_: object, **__: object) -> None:
        raise SystemError("killed")

    with monkeypatch.context() as patch:
        patch.setattr(registry, "_publish", die)
        patch.setattr(registry, "_discard", lambda *_: None)
        with pytest.raises(SystemError):
            registry.save("m", file_of(b"weights"), RECORD, once="a job")
    version = registry.save("m", file_of(b"weights"), RECORD, once="a job")
    assert registry.save("m", file_of(b"weights"), RECORD, once="a job") == version
    assert [found.version for found in registry.list()] == [version]
    assert registry.save("m", file_of(b"weights"), RECORD, once="another job") == version + 1
    made = [registry.version_with_key("m", job) for job in ("a job", "another job", "no job")]
    assert [one and one.version for one in made] == [version, version + 1, None]


# What is not there ------------------------------------------------------------------------------------------


def test_an_unknown_model_names_the_nearest(registry: Registry, file_of: FileOf) -> None:
    registry.save("sqlflow_models.my_dnn", file_of(b"x"), RECORD)
    with pytest.raises(SemanticError, match=r"there is no model sqlflow_models\.my_dmn") as caught:
        registry.find("sqlflow_models.my_dmn")
    assert caught.value.hint == "did you mean sqlflow_models.my_dnn?"
    with pytest.raises(SemanticError, match="has no version 2") as caught:
        registry.find("sqlflow_models.my_dnn@2")
    assert caught.value.hint == "known: 1"


def test_a_name_that_looks_like_a_version_cannot_be_saved(registry: Registry, file_of: FileOf) -> None:
    with pytest.raises(SemanticError, match="names a version") as caught:
        registry.save("m@2", file_of(b"x"), RECORD)
    assert caught.value.hint == "write m"


def test_models_are_listed_by_name_and_by_a_pattern(registry: Registry, file_of: FileOf) -> None:
    for name in ("b.x", "a.x", "a.y"):
        registry.save(name, file_of(b"x"), RECORD)
    assert [found.name for found in registry.list()] == ["a.x", "a.y", "b.x"]
    assert [found.name for found in registry.list("a.%")] == ["a.x", "a.y"]
    assert [found.name for found in registry.list("_.x")] == ["a.x", "b.x"]
    assert registry.list("'; DROP TABLE x") == []


# Failures ---------------------------------------------------------------------------------------------------


def test_a_failed_run_is_a_version_with_its_reason_and_not_the_current_one(
    registry: Registry, file_of: FileOf
) -> None:
    registry.save("m", file_of(b"x"), RECORD)
    assert registry.record_failure("m", RECORD, "the loss is not a number") == 2
    assert registry.find("m").version == 1
    assert [(found.state, found.reason) for found in registry.list()] == [
        ("ready", ""),
        ("failed", "the loss is not a number"),
    ]
    with pytest.raises(SemanticError, match="m@2 failed: the loss is not a number"):
        registry.find("m@2")
    assert registry.save("m", file_of(b"x"), RECORD) == 3


@pytest.mark.variants(1)
def test_a_failure_that_is_told_again_is_one_version(registry: Registry) -> None:
    assert [registry.record_failure("m", RECORD, "no", once=job) for job in ("j1", "j2", "j1")] == [1, 2, 1]
    assert registry.drop("m") == 2


def test_a_model_that_only_failed_says_why_it_cannot_be_used(registry: Registry, tmp_path: Path) -> None:
    registry.record_failure("m", RECORD, "first")
    registry.record_failure("m", RECORD, "second")
    with pytest.raises(SemanticError, match="m@2 failed: second"):
        registry.load("m", tmp_path / "loaded")
    assert not (tmp_path / "loaded").exists()


# Dropping ---------------------------------------------------------------------------------------------------


@pytest.mark.variants(1)
def test_the_number_of_a_dropped_version_is_not_given_again(registry: Registry, file_of: FileOf) -> None:
    for _ in range(3):
        registry.save("m", file_of(b"x"), RECORD)
    assert registry.drop("m@3") == 1
    assert registry.find("m").version == 2
    assert registry.save("m", file_of(b"x"), RECORD) == 4
    with pytest.raises(SemanticError, match="has no version 3"):
        registry.find("m@3")


@pytest.mark.variants(1)
def test_dropping_a_version_that_is_not_current_leaves_the_current_one(
    registry: Registry, file_of: FileOf
) -> None:
    for _ in range(3):
        registry.save("m", file_of(b"x"), RECORD)
    registry.drop("m@1")
    assert [(found.version, found.current) for found in registry.list()] == [(2, False), (3, True)]
    registry.drop("m@3")
    assert registry.find("m").version == 2
    registry.drop("m@2")
    with pytest.raises(SemanticError, match="there is no model m"):
        registry.find("m")


# Several at once ---------------------------------------------------------------------------------------------


@pytest.mark.variants(1)
def test_an_upload_that_fails_leaves_the_model_as_it_was(
    registry: Registry, file_of: FileOf, tmp_path: Path
) -> None:
    registry.save("m", file_of(b"x"), RECORD)
    with pytest.raises(FileNotFoundError):
        registry.save("m", tmp_path / "gone", RECORD)
    assert [found.reference for found in registry.list()] == ["m@1"]
    assert registry.find("m").version == 1


@pytest.mark.variants(1)
def test_a_model_that_is_dropped_while_it_is_saved_stays_dropped(
    registry: Registry, opened: Opener, file_of: FileOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry.save("m", file_of(b"x"), RECORD)
    upload = registry._upload

    def drop_after(*arguments: object) -> tuple[int, str]:
        done = upload(*arguments)  # type: ignore[arg-type]
        opened().drop("m")
        return done

    monkeypatch.setattr(registry, "_upload", drop_after)
    with pytest.raises(SourceError, match="model m was dropped while it was being saved"):
        registry.save("m", file_of(b"y"), RECORD)
    assert registry.list() == []
    assert not registry.has("m")


@pytest.mark.soak
def test_models_outlive_the_connection(opened: Opener, file_of: FileOf, tmp_path: Path) -> None:
    opened().save("m", file_of(b"x" * 300_000), RECORD)
    assert opened().load("m", tmp_path / "loaded").record == RECORD
    assert (tmp_path / "loaded").read_bytes() == b"x" * 300_000


@pytest.mark.variants(1)
def test_writers_at_once_give_every_version_once_and_lose_none(
    opened: Opener, place: str, file_of: FileOf
) -> None:
    registries = [opened() for _ in range(4)]
    start = threading.Barrier(len(registries))
    archives = [file_of(b"%d" % number) for number in range(len(registries))]

    def save_some(number: int) -> list[int]:
        start.wait()
        return [registries[number].save("m", archives[number], RECORD) for _ in range(3)]

    with ThreadPoolExecutor(len(registries)) as pool:
        given = [version for versions in pool.map(save_some, range(len(registries))) for version in versions]
    assert len(set(given)) == 12
    if place != "memory":  # where two who meet may both leave a number out
        assert sorted(given) == list(range(1, 13))
    found = opened().list()
    assert [(each.version, each.state) for each in found] == [(each, "ready") for each in sorted(given)]
    assert sum(each.current for each in found) == 1
