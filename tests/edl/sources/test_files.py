"""Files as a source: the view, the database beside them, and what is wrong with files."""

from __future__ import annotations

import datetime as dt
import gzip
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from edl.data import Source, connect
from edl.data.url import parse
from edl.errors import SourceError

IRIS = "id,width,kind\n1,0.5,setosa\n2,1.5,virginica\n"


def written(path: Path, text: str = IRIS) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode())
    return path


def rows(source: Source, name: str = "rows") -> list[dict[str, object]]:
    found: list[dict[str, object]] = source.stream(f'SELECT * FROM "{name}"').read_all().to_pylist()
    return found


def result(source: Source, name: str) -> None:
    source.stage(name, "job", 0, 0, [pa.record_batch({"a": [1]})])
    source.commit(name, "job", 1)


@pytest.mark.soak
@pytest.mark.parametrize(
    ("file", "url", "name"),
    [
        ("iris.csv", "{}/iris.csv", "iris"),
        ("iris.csv", "csv:///{}/iris.csv", "iris"),
        ("my data-1.v2.csv", "csv:{}/my data-1.v2.csv", "my data-1.v2"),
        ("Größe.CSV", "{}/Größe.CSV", "Größe"),
        ("data", "csv:{}/data", "data"),
        ("x[1].csv", "csv:{}/x[1].csv", "x[1]"),
        ("flights/part-1.csv", "csv:{}/flights/part-*.csv", "part"),
        ("flights/1.csv", "{}/flights/*.csv", "flights"),
        ("flights/2024/1.csv", "csv:{}/flights/*/?.csv", "flights"),
        ("rows.csv", "{}/rows.csv", "rows"),
    ],
)
def test_a_file_is_a_table_of_its_name(tmp_path: Path, file: str, url: str, name: str) -> None:
    written(tmp_path / file)
    with connect(url.format(tmp_path)) as source:
        assert rows(source, name) == rows(source, "rows")
        assert [row["kind"] for row in rows(source, name)] == ["setosa", "virginica"]
        assert source.schema("SELECT * FROM rows").types == [pa.int64(), pa.float64(), pa.string()]


def test_a_parquet_file_keeps_its_types(tmp_path: Path) -> None:
    table = pa.table({"d": [dt.date(2024, 1, 2)], "x": pa.array([1.5], pa.float32()), "k": ["a"]})
    for name, columns in (("1", ["d", "x", "k"]), ("2", ["k", "d", "x"])):
        parquet.write_table(table.select(columns), tmp_path / f"{name}.parquet")
    with connect(f"parquet:///{tmp_path}/*.parquet") as source:
        assert source.schema("SELECT * FROM rows") == table.schema
        assert rows(source) == table.to_pylist() * 2
        assert parse(source.url).location == f"{tmp_path}/*.parquet"


@pytest.mark.soak
def test_the_database_beside_the_file_stays_only_when_something_is_kept(tmp_path: Path) -> None:
    path = written(tmp_path / "iris.csv")
    with connect(str(path)) as source:
        rows(source)
    assert list(tmp_path.iterdir()) == [path]
    with connect(str(path)) as source:
        result(source, "predicted")
    assert {file.name for file in tmp_path.iterdir()} == {"iris.csv", "iris.sqlflow.duckdb"}
    with connect(str(path)) as source:
        assert set(source.tables()) == {"iris", "rows", "predicted"}
    with connect(str(tmp_path / "iris.sqlflow.duckdb")) as store:
        assert store.tables() == ["predicted"]
    assert path.read_text(encoding="utf-8") == IRIS


def test_a_file_named_by_its_path_in_a_query_is_read_by_the_same_rules(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(tmp_path / "data" / "sales.csv", "price;sold\n€1.234,50;yes\n€12,00;no\n")
    monkeypatch.chdir(tmp_path)
    with connect("data/sales.csv") as source:
        for name in ("data/sales.csv", "sales.csv", f"{tmp_path}/data/sales.csv"):
            found = source.stream(f"SELECT * FROM '{name}'").read_all().to_pylist()
            assert found == [{"price": 1234.5, "sold": True}, {"price": 12.0, "sold": False}]
        assert source.tables() == ["rows", "sales"]
        assert source.kept_in == "data/sales.sqlflow.duckdb"


def test_json_is_a_table_and_all_values_decide_its_types(tmp_path: Path) -> None:
    lines = [
        {"n": number, "day": "2024-01-02", "at": "2024-01-02T03:04:05", "us": "01-02-2024", "flag": True}
        for number in range(30_000)
    ]
    lines += [{"n": 0.5, "day": "2024-02-29", "at": None, "us": "02-02-2024", "flag": None, "late": "x"}]
    packed = tmp_path / "rows-of-2024.jsonl.gz"
    packed.write_bytes(gzip.compress("\n".join(map(json.dumps, lines)).encode()))
    with connect(str(packed)) as source:
        found = source.schema('SELECT * FROM "rows-of-2024"')
        assert dict(zip(found.names, map(str, found.types), strict=True)) == {
            "n": "double",
            "day": "date32[day]",
            "at": "timestamp[us]",
            "us": "string",
            "flag": "bool",
            "late": "string",
        }
        assert source.stream("SELECT count(*) AS n FROM rows").read_all().to_pylist() == [{"n": 30_001}]
    written(tmp_path / "two.json", json.dumps(lines[:2]))
    with connect(str(tmp_path / "two.json")) as source:
        assert [row["n"] for row in rows(source)] == [0, 1]
    written(tmp_path / "wrong.json", "[{")
    with pytest.raises(SourceError, match=r"wrong\.json"):
        connect(str(tmp_path / "wrong.json"))


@pytest.mark.soak
@pytest.mark.parametrize("target", ["iris", "IRIS", "rows"])
def test_a_result_cannot_have_the_files_name(tmp_path: Path, target: str) -> None:
    with (
        connect(str(written(tmp_path / "iris.csv"))) as source,
        pytest.raises(SourceError, match="is a view"),
    ):
        source.check_target(target)


@pytest.mark.soak
def test_a_relative_file_stays_the_same_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path / "iris.csv")
    monkeypatch.chdir(tmp_path)
    with connect("iris.csv") as source:
        monkeypatch.chdir("/")
        assert len(rows(source)) == 2


def test_rows_added_later_are_seen(tmp_path: Path) -> None:
    path = written(tmp_path / "iris.csv")
    with connect(str(path)) as source:
        written(path, IRIS + "3,2.5,setosa\n")
        assert len(rows(source)) == 3


@pytest.mark.parametrize(
    ("url", "message", "hint"),
    [
        ("{}/irs.csv", "there is no file", "did you mean iris.csv?"),
        ("{}/none/*.csv", "there is no file", "check the path"),
        ("csv:{}/iris.csv?sep=;", "csv files have no option sep", "delim"),
        ("{}/iris.csv?text=knd", "the option text names the unknown column knd", "did you mean kind?"),
        ("parquet:{}/iris.csv?header=true", "parquet files have no option header", "None"),
        ("parquet:{}/iris.csv", "iris.csv", "None"),
    ],
)
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, url: str, message: str, hint: str) -> None:
    written(tmp_path / "iris.csv")
    with pytest.raises(SourceError, match=message) as caught:
        connect(url.format(tmp_path))
    assert hint in str(caught.value.hint)
    assert [file.name for file in tmp_path.iterdir()] == ["iris.csv"]


def test_the_database_beside_the_files_stays_while_another_source_of_the_process_has_it_open(
    tmp_path: Path,
) -> None:
    (tmp_path / "t.csv").write_text("a\n1\n")
    first = connect(f"csv:{tmp_path}/t.csv")
    with connect(f"csv:{tmp_path}/t.csv") as second:
        first.close()
        second.execute("CREATE TABLE kept AS SELECT * FROM t")
    with connect(f"csv:{tmp_path}/t.csv") as third:
        assert third.stream("FROM kept").read_all().to_pylist() == [{"a": 1}]
