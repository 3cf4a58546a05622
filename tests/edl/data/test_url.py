"""URLs of data sources: what they name, how they are shown, what is wrong with them."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edl.data import connect, redacted
from edl.data.url import MEMORY, PLANNED, parse
from edl.errors import SourceError
from tests.texts import texts


@pytest.mark.parametrize(
    ("url", "location"),
    [
        ("duckdb:///data/iris.duckdb", "data/iris.duckdb"),
        ("duckdb:////data/iris.duckdb", "/data/iris.duckdb"),
        ("duckdb:///my%20data/a%3Fb.db", "my data/a?b.db"),
        ("duckdb:data/iris.db", "data/iris.db"),
        ("duckdb:/data/iris.db", "/data/iris.db"),
        ("DuckDB:x", "x"),
        ("data/iris.duckdb", "data/iris.duckdb"),
        ("/data/Iris.DB", "/data/Iris.DB"),
        ("iris.ddb", "iris.ddb"),
        ("duckdb:", MEMORY),
        ("duckdb://", MEMORY),
        ("duckdb::memory:", MEMORY),
        ("duckdb://:memory:", MEMORY),
        ("duckdb:///:memory:", MEMORY),
    ],
)
def test_a_duckdb_url_names_a_file_or_memory(url: str, location: str) -> None:
    assert parse(url).location == location
    assert parse(url).scheme == "duckdb"


@pytest.mark.parametrize(
    ("url", "scheme", "location", "options"),
    [
        ("sqlite:///data/iris.db", "sqlite", "data/iris.db", ()),
        ("sqlite:////data/iris.db", "sqlite", "/data/iris.db", ()),
        ("sqlite:a?b=c.db", "sqlite", "a?b=c.db", ()),
        ("sqlite:", "sqlite", MEMORY, ()),
        ("x/Iris.SQLITE3", "sqlite", "x/Iris.SQLITE3", ()),
        ("iris.sqlite", "sqlite", "iris.sqlite", ()),
        ("csv:///a%20b/iris.csv", "csv", "a b/iris.csv", ()),
        (
            "csv:////data/iris.txt?header=false&delim=%3B",
            "csv",
            "/data/iris.txt",
            (("header", "false"), ("delim", ";")),
        ),
        ("csv:iris.csv?delim=%09", "csv", "iris.csv", (("delim", "\t"),)),
        ("csv:iris.csv?nullstr=", "csv", "iris.csv", (("nullstr", ""),)),
        ("csv:part-?.csv", "csv", "part-?.csv", ()),
        ("parquet:///dir/*.parquet", "parquet", "dir/*.parquet", ()),
        ("dir/*.parquet", "parquet", "dir/*.parquet", ()),
        ("Iris.CSV", "csv", "Iris.CSV", ()),
        ("iris.csv.gz", "csv", "iris.csv.gz", ()),
    ],
)
def test_the_other_schemes_have_the_same_forms_and_files_have_options(
    url: str, scheme: str, location: str, options: tuple[tuple[str, str], ...]
) -> None:
    parsed = parse(url)
    assert (parsed.scheme, parsed.location, parsed.options) == (scheme, location, options)
    assert parse(str(parsed)) == parsed


@pytest.mark.parametrize("url", ["csv:", "parquet://", "csv:///?header=true"])
def test_a_url_of_files_names_one(url: str) -> None:
    with pytest.raises(SourceError, match="names no file"):
        parse(url)


@pytest.mark.parametrize("location", ["a b/ü?#%.db", "/abs/x.db", MEMORY, "~/x.db"])
def test_a_parsed_url_reads_back_as_itself(location: str) -> None:
    parsed = parse(f"duckdb:{location}")
    assert parse(str(parsed)) == parsed


def test_an_unknown_scheme_names_the_nearest_and_the_known_ones() -> None:
    with pytest.raises(SourceError, match="duckbd is not a scheme") as caught:
        parse("duckbd:///x.duckdb")
    assert caught.value.hint is not None
    assert "did you mean duckdb?" in caught.value.hint
    assert "mysql" in caught.value.hint


@pytest.mark.parametrize("scheme", PLANNED)
def test_a_scheme_of_later_work_is_said_to_be_not_there_yet(scheme: str) -> None:
    with pytest.raises(SourceError, match=f"{scheme} are not supported yet"):
        parse(f"{scheme}://user:secret@host/db")


@pytest.mark.parametrize("url", ["", "iris", "iris.doc", "//host/x"])
def test_a_text_that_is_no_url_says_how_one_looks(url: str) -> None:
    with pytest.raises(SourceError, match="is not the URL") as caught:
        parse(url)
    assert "duckdb:///" in str(caught.value.hint)


@pytest.mark.parametrize(
    "url", ["duckdb://iris.duckdb", "duckdb://host/iris.duckdb", "duckdb://u:secret@host/x"]
)
def test_a_host_in_a_duckdb_url_is_refused_without_showing_a_password(url: str) -> None:
    with pytest.raises(SourceError, match="names a host") as caught:
        parse(url)
    assert "secret" not in caught.value.message


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("mysql://root:secret@db.example:3306/iris", "mysql://root@db.example:3306/iris"),
        ("mysql://root@db/iris?charset=utf8", "mysql://root@db/iris?charset=utf8"),
        ("mysql://root:se@cr/et@db/iris", "mysql://root@db/iris"),
        ("mysql://db/iris?user=a&password=secret&Access_Key=secret", "mysql://db/iris?user=a"),
        ("mysql://db/iris?token=secret", "mysql://db/iris"),
        ("duckdb:///a@b.duckdb", "duckdb:///a@b.duckdb"),
        ("duckdb:x.db", "duckdb:x.db"),
        ("", ""),
    ],
)
def test_a_url_is_shown_without_its_secrets(url: str, shown: str) -> None:
    assert redacted(url) == shown


@given(
    user=st.from_regex(r"[a-z]{1,5}", fullmatch=True),
    password=texts(min_size=1).map(lambda text: "#s" + text),
)
def test_no_password_is_shown_whatever_its_characters(user: str, password: str) -> None:
    assert "#s" not in redacted(f"mysql://{user}:{password}@host/db")


@pytest.mark.parametrize(
    "slip",
    [
        "mysql:/reader:pa55@host/shop",
        "mysql:reader:pa55@host/shop",
        "mysql:////reader:pa55@host/shop",
        "my sql://reader:pa55@host/shop",
        "mysqll:///reader:pa55@host/shop",
    ],
)
def test_a_password_is_not_shown_of_a_url_with_a_slip_either(slip: str) -> None:
    assert "pa55" not in redacted(slip)


def test_paths_stay_as_they_are() -> None:
    for path in ("duckdb:////data/a@b.duckdb", "data/a@b.csv", "csv:///a:b@c.csv"):
        assert redacted(path) == path


def test_a_missing_file_is_an_error_and_is_not_made(tmp_path: Path) -> None:
    path = tmp_path / "typo.duckdb"
    with pytest.raises(SourceError, match=r"no database file .*typo\.duckdb"):
        connect(f"duckdb:{path}")
    assert not path.exists()


def test_a_path_that_lacks_the_slash_of_the_root_is_named(tmp_path: Path) -> None:
    with pytest.raises(SourceError) as error:
        connect(f"duckdb:///{tmp_path.relative_to('/')}/new.duckdb")
    assert error.value.hint is not None
    assert error.value.hint.endswith(f"write duckdb:///{tmp_path}/new.duckdb")


@pytest.mark.soak
def test_a_database_is_made_when_asked_and_found_afterwards(tmp_path: Path) -> None:
    url = f"duckdb:///{tmp_path}/new.duckdb"
    made = connect(url, create=True)
    made.execute("CREATE TABLE t AS SELECT 1 AS a")
    made.close()
    again = connect(url)
    assert again.tables() == ["t"]
    assert again.url == url
    again.close()


def test_a_relative_file_is_looked_for_in_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    connect("duckdb:///here.duckdb", create=True).close()
    assert (tmp_path / "here.duckdb").is_file()


def test_a_file_of_another_format_is_refused_with_a_hint(tmp_path: Path) -> None:
    path = tmp_path / "text.db"
    path.write_text("a,b\n1,2\n" * 5000, encoding="utf-8")
    with pytest.raises(SourceError, match="not a valid DuckDB") as caught:
        connect(str(path))
    assert "another format" in str(caught.value.hint)
