"""`sqlflow copy`: the same archive in another place, as a new version, or in a file."""

from __future__ import annotations

import shlex
from pathlib import Path

import pyarrow as pa
import pytest

from edl.models.archive import read_archive
from edl.models.registry.base import Registry
from edl.models.registry.object_store import open_store
from edl.models.registry.records import ModelRecord
from sqlflow_edl.cli import exit_codes
from sqlflow_edl.cli.main import main
from sqlflow_edl.session.session import Session
from tests.databases import fill
from tests.edl.models.conftest import SPEC, write

ROWS = pa.table({"a": [i * 0.5 for i in range(60)], "y": [i * 2.0 for i in range(60)]})
PREDICT = "SELECT a FROM t ORDER BY a TO PREDICT USING m"
RECORD = ModelRecord("DNNRegressor", "keras", 8, {"rmse": 0.25}, SPEC.statement)


@pytest.fixture(autouse=True)
def no_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def store(tmp_path: Path) -> Registry:
    """A folder with two versions of the model `team.m`, of which the first is current and has the tag `production`."""
    registry = open_store(str(tmp_path / "mine"))
    registry.save("team.m", write(tmp_path / "1.archive"), RECORD)
    registry.save("team.m", write(tmp_path / "2.archive", program={}), RECORD, current=False)
    registry.tag("team.m@1", "production")
    return registry


def copy(*arguments: str) -> int:
    return main(["copy", *arguments])


def contents(registry: Registry, reference: str) -> bytes:
    with registry.fetch(reference) as (_, archive):
        return archive.read_bytes()


def test_a_copy_predicts_the_same_in_every_place(tmp_path: Path) -> None:
    mine, theirs, last = "duckdb:///mine.duckdb", "sqlite:///theirs.sqlite", "duckdb:///last.duckdb"
    with Session(mine, create=True) as session:
        fill(session, "t", ROWS)
        *_, result = session.run(
            "SELECT * FROM t TO TRAIN LGBMRegressor WITH train.num_boost_round = 2 LABEL y INTO m;" + PREDICT
        )
    wanted = result.to_arrow()
    for url in (theirs, last):
        with Session(url, create=True) as session:
            fill(session, "t", ROWS)
    assert copy("m", "--source", mine, "--to", theirs) == 0
    assert copy("m", "--source", theirs, "--to", str(tmp_path / "models")) == 0
    assert copy("m", "--model-store", str(tmp_path / "models"), "--to", "m.zip") == 0
    assert copy("m.zip", "--to", last) == 0
    for url, place in ((theirs, ""), (theirs, str(tmp_path / "models")), (last, "")):
        with Session(url, model_store=place) as session:
            [result] = session.run(PREDICT)
            assert result.to_arrow().equals(wanted), (url, place)
    with Session(mine) as first, Session(last) as session:
        assert contents(session.registry, "m") == contents(first.registry, "m")
        before, after = first.registry.find("m").record, session.registry.find("m").record
        assert before == after


def test_a_version_and_a_tag_can_be_copied(store: Registry, capsys: pytest.CaptureFixture[str]) -> None:
    theirs = open_store("theirs")
    for reference, version in (("team.m@2", 2), ("team.m@production", 1)):
        assert copy(reference, "--model-store", "mine", "--to", "./theirs", "--as", f"m{version}") == 0
        assert f"copied team.m@{version} to m{version}@1 in file://" in capsys.readouterr().err
        assert contents(theirs, f"m{version}") == contents(store, f"team.m@{version}")
        assert theirs.find(f"m{version}").record == RECORD
        assert theirs.find(f"m{version}").tags == store.find(f"team.m@{version}").tags


def test_a_copy_of_a_known_name_is_its_next_version_and_current_unless_told_otherwise(
    store: Registry, capsys: pytest.CaptureFixture[str]
) -> None:
    theirs = open_store("theirs")
    give = ("team.m", "--model-store", "mine", "--to", "./theirs", "--as", "ours")
    assert copy(*give, "--keep-current") == 0, "there is none to keep"
    assert theirs.find("ours").version == 1
    assert copy(*give) == 0
    assert "ours@2 in file://" in (told := capsys.readouterr().err)
    assert "which is current now; ours@1 was" in told
    assert copy(*give, "--keep-current") == 0
    assert "; ours@2 stays current" in capsys.readouterr().err
    assert [(each.version, each.current) for each in theirs.list()] == [(1, False), (2, True), (3, False)]


def test_a_file_has_the_record_that_its_archive_tells(store: Registry) -> None:
    assert copy("team.m", "--model-store", "mine", "--to", "team.m.zip") == 0
    assert Path("team.m.zip").read_bytes() == contents(store, "team.m")
    assert copy("team.m.zip", "--to", "./theirs") == 0
    record = open_store("theirs").find("team.m").record
    found = read_archive(Path("team.m.zip"))
    assert (record.model, record.framework, record.rows) == ("DNNRegressor", "keras", 8)
    assert record.statement == found.lineage.statement


@pytest.mark.parametrize("place", ["./theirs", "duckdb:///theirs.duckdb"])
def test_a_damaged_file_is_refused_and_leaves_nothing(
    place: str, store: Registry, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = contents(store, "team.m")
    weights = whole.index(b"weights.safetensors") + 200
    for damaged in (b"", whole[:-40], whole[:weights] + bytes([whole[weights] ^ 1]) + whole[weights + 1 :]):
        Path("m.zip").write_bytes(damaged)
        assert copy("m.zip", "--to", place, "--create") == exit_codes.FAILED
        assert "m.zip cannot be copied: " in capsys.readouterr().err
    assert not Path("theirs").exists()
    assert not Path("theirs.duckdb").exists()


def test_the_tags_of_a_version_are_copied_where_no_other_version_has_them(
    store: Registry, capsys: pytest.CaptureFixture[str]
) -> None:
    for reference in ("team.m@1", "team.m@2"):
        assert copy(reference, "--model-store", "mine", "--to", "./theirs") == 0
        store.tag("team.m@2", "production")
    said = capsys.readouterr().err.splitlines()
    assert "(tag production copied)" in said[0]
    assert "(tag production left with another version)" in said[1]
    assert [each.tags for each in open_store("theirs").list()] == [("production",), ()]


def test_the_database_beside_a_file_of_rows_is_named(
    store: Registry, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("rows.csv").write_text("a\n1\n")
    assert copy("team.m", "--model-store", "mine", "--to", "team.m.zip") == 0
    assert copy("team.m.zip", "--to", "rows.csv") == exit_codes.FAILED
    command = shlex.split(capsys.readouterr().err.strip().rpartition(": ")[2])
    assert command[0] == "sqlflow"
    assert main(command[1:]) == 0
    with Session("rows.csv") as session:
        assert [each.reference for each in session.registry.list()] == ["team.m@1"]


def test_a_damaged_model_is_not_copied(store: Registry, capsys: pytest.CaptureFixture[str]) -> None:
    for archive in Path("mine").rglob("archive"):
        archive.write_bytes(b"else")
    assert copy("team.m", "--model-store", "mine", "--to", "m.zip") == exit_codes.FAILED
    assert "the archive of model team.m@1 is damaged" in capsys.readouterr().err
    assert not Path("m.zip").exists()


def test_an_unknown_model_or_file_is_told(store: Registry, capsys: pytest.CaptureFixture[str]) -> None:
    for reference, told in (
        ("team.n", "there is no model team.n"),
        ("team.m@3", "model team.m has no version 3"),
        ("none.zip", "cannot read none.zip: No such file"),
    ):
        assert copy(reference, "--model-store", "mine", "--to", "./theirs") == exit_codes.FAILED
        assert told in capsys.readouterr().err
    assert not Path("theirs").exists()


def test_a_place_that_takes_no_model_is_told(store: Registry, capsys: pytest.CaptureFixture[str]) -> None:
    Path("rows.csv").write_text("a\n1\n")
    Path("there.zip").write_text("mine")
    with Session("duckdb:///theirs.duckdb", create=True) as session:
        list(session.run("CREATE TABLE sqlflow_edl_models AS SELECT 1 AS a"))
    for place, told in (
        ("duckdb:///nowhere.duckdb", "there is no database file nowhere.duckdb"),
        ("duckdb:///theirs.duckdb", "sqlflow_edl_models was not created by sqlflow-edl"),
        ("duckdb:", "keeps no models"),
        ("rows.csv", "keeps no models"),
        ("theirs", "theirs is not the URL of a data source"),
        ("/proc/models", "cannot be written to"),
        ("/proc/m.zip", "cannot write /proc/m.zip"),
        ("there.zip", "there.zip is there already"),
    ):
        assert copy("team.m", "--model-store", "mine", "--to", place) == exit_codes.FAILED, place
        assert told in capsys.readouterr().err, place
    assert Path("there.zip").read_text() == "mine"
    with Session("duckdb:///theirs.duckdb") as session:
        [rows] = session.run("SELECT a FROM sqlflow_edl_models")
        assert rows.to_arrow().num_rows == 1


def test_an_option_without_effect_is_refused(store: Registry, capsys: pytest.CaptureFixture[str]) -> None:
    assert copy("team.m", "--model-store", "mine", "--to", "m.zip", "--as", "n") == exit_codes.FAILED
    assert "--as is of no use with a file" in capsys.readouterr().err
