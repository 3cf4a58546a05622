"""Tables of Apache Iceberg, written by pyiceberg itself."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from edl.data import connect
from edl.errors import SourceError
from tests.edl.extensions.lakes.lakes import check_pinned_rows_and_results, numbers, refusal
from tests.file_server import serving

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog


@pytest.fixture
def catalog(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Catalog:
    """A catalog `prod`, as environment variables configure it, of a lake without tables."""
    from pyiceberg.catalog import load_catalog
    from pyiceberg.utils.config import Config

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYICEBERG_CATALOG__PROD__URI", f"sqlite:///{tmp_path}/catalog.db")
    monkeypatch.setenv("PYICEBERG_CATALOG__PROD__TYPE", "sql")
    monkeypatch.setattr("pyiceberg.catalog._ENV_CONFIG", Config())  # pyiceberg reads it when it is imported
    made = load_catalog(
        "prod", warehouse=f"file://{tmp_path}", uri=f"sqlite:///{tmp_path}/catalog.db", type="sql"
    )
    made.create_namespace("lake")
    return made


@pytest.fixture
def sales(catalog: Catalog, tmp_path: Path) -> Path:
    """A table in two snapshots, of three rows and of four."""
    rows = pa.table({"shop": ["a", "b", "a"], "n": [1, 2, None]})
    table = catalog.create_table("lake.sales", schema=rows.schema)
    table.append(rows)
    table.append(pa.table({"shop": ["c"], "n": [4]}))
    return tmp_path / "lake" / "sales"


def test_the_latest_snapshot_is_read_with_its_types(sales: Path) -> None:
    with connect(f"iceberg:///{sales}") as source:
        assert numbers(source) == numbers(source, "rows") == [1, 2, 4, None]
        types = source.schema("SELECT * FROM sales")
        assert {name: str(types.field(name).type) for name in types.names} == {"shop": "string", "n": "int64"}
        assert source.tables() == ["rows", "sales"]


@pytest.mark.soak
def test_a_source_stays_at_the_snapshot_that_it_was_opened_at(catalog: Catalog, sales: Path) -> None:
    table = catalog.load_table("lake.sales")
    first = table.snapshots()[0].snapshot_id
    with connect(f"iceberg:///{sales}") as source:
        table.delete("n = 2")
        assert numbers(source) == [1, 2, 4, None]
        with connect(source.url) as another:  # as the process of a job opens it
            assert numbers(another) == [1, 2, 4, None]
    with connect(f"iceberg:///{sales}?snapshot={first}") as source:
        assert numbers(source) == [1, 2, None]
    with connect(f"iceberg:///{sales}") as source:
        assert numbers(source) == [1, 4, None]


def test_a_table_of_a_catalog_is_read_by_its_name(sales: Path) -> None:
    with connect("iceberg:lake.sales?catalog=prod") as source:
        assert numbers(source) == [1, 2, 4, None]
        assert source.url.startswith("iceberg:///lake.sales?catalog=prod&snapshot=")
        with connect(source.url) as another:
            assert numbers(another) == [1, 2, 4, None]


@pytest.mark.soak
def test_columns_added_and_renamed_later_belong_to_the_table(catalog: Catalog, sales: Path) -> None:
    from pyiceberg.types import StringType

    with catalog.load_table("lake.sales").update_schema() as update:
        update.rename_column("shop", "store")
        update.add_column("city", StringType())
    with connect(f"iceberg:///{sales}") as source:
        found = source.stream("SELECT store, city, n FROM sales WHERE n = 4").read_all()
    assert found.to_pylist() == [{"store": "c", "city": None, "n": 4}]


def test_a_table_without_a_snapshot_has_no_rows(catalog: Catalog, tmp_path: Path) -> None:
    catalog.create_table("lake.none", schema=pa.schema({"n": pa.int64()}))
    with connect(f"iceberg:///{tmp_path}/lake/none") as source:
        assert numbers(source, "none") == []


@pytest.mark.soak
def test_a_table_in_an_object_store_is_read_from_the_endpoint_of_the_environment(
    sales: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store has the metadata, which name data files on this machine."""
    newest = max((sales / "metadata").glob("*.metadata.json")).name
    monkeypatch.setenv("AWS_REGION", "eu-central-1")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "me")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "mine")
    with serving(tmp_path) as store:
        monkeypatch.setenv("AWS_ENDPOINT_URL", store.url)
        with connect(f"iceberg:s3://lake/sales/metadata/{newest}") as source:
            assert numbers(source) == [1, 2, 4, None]
            assert source.url.startswith(f"iceberg:s3://lake/sales/metadata/{newest}?snapshot=")
        assert store.ranges
        assert "there is no Iceberg table" in refusal("iceberg:s3://lake/others")


@pytest.mark.soak
def test_rows_are_pinned_and_results_are_beside_the_table(sales: Path, tmp_path: Path) -> None:
    check_pinned_rows_and_results(f"iceberg:///{sales}", sales, tmp_path)
    [newest] = (sales / "metadata").glob("00002-*.metadata.json")
    with connect(f"iceberg:///{newest}") as source:
        assert numbers(source, "guesses") == [7]


@pytest.mark.soak
def test_a_lost_file_of_rows_is_named(sales: Path) -> None:
    with connect(f"iceberg:///{sales}") as source:
        for path in (sales / "data").iterdir():
            path.unlink()
        with pytest.raises(SourceError, match=r"reading.*'sales' failed.*\.parquet"):
            numbers(source)


@pytest.mark.variants(2)
@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("iceberg:///{}?snapshot=7", r"has no snapshot 7.*the latest are \d+, \d+"),
        ("iceberg:///{}?snapshot=x", "snapshot is 'x'.*a whole number"),
        ("iceberg:///{}?snapshoot=1", "no option snapshoot.*did you mean snapshot"),
        ("iceberg:///{}/nowhere", "there is no Iceberg table at .*metadata.json"),
        ("iceberg:lake.sale?catalog=prod", "there is no table lake.sale in the catalog prod"),
        ("iceberg:lake.sales?catalog=test", "lake.sales cannot be read: .*URI missing"),
        ("iceberg:https://lake/sales", "https:// is not a known object store.*known: s3, gs, abfs"),
        ("iceberg:s3://key:secret@lake/sales", "has a password or options"),
    ],
)
def test_what_is_no_snapshot_of_a_table_is_named(sales: Path, url: str, said: str) -> None:
    found = refusal(url.format(sales))
    assert re.search(said, found)
    assert "secret" not in found


@pytest.mark.soak
def test_two_metadata_files_of_one_number_are_not_chosen_from(sales: Path) -> None:
    [newest] = (sales / "metadata").glob("00002-*.metadata.json")
    newest.with_name("00002-lost.metadata.json").write_bytes(newest.read_bytes())
    with pytest.raises(SourceError, match="2 metadata files of its highest number"):
        connect(f"iceberg:///{sales}")


@pytest.mark.soak
def test_damaged_metadata_is_an_error_of_the_source(sales: Path) -> None:
    [newest] = (sales / "metadata").glob("00002-*.metadata.json")
    newest.write_text("{}")
    with pytest.raises(SourceError, match=r"sales cannot be read: 1 validation error .*format-version"):
        connect(f"iceberg:///{sales}")
