"""Models of a server: which are loaded, and what happens when the registry changes."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from edl.data import connect
from edl.errors import SemanticError, SQLFlowError
from edl.models.registry.base import Registry
from edl.models.registry.factory import open_registry
from edl.models.registry.model_store import ModelStore
from edl.models.registry.records import ModelRecord
from sqlflow_edl.extensions.serving.catalog import MOST_OLD, ModelCatalog

RECORD = ModelRecord("BoostedTrees", "lightgbm", 3, {}, "TRAIN")


@pytest.fixture
def url(source: str, tmp_path: Path) -> str:
    """A database of its own with the two models."""
    shutil.copy(source.removeprefix("duckdb:///"), tmp_path / "models.duckdb")
    return f"duckdb:///{tmp_path}/models.duckdb"


@contextmanager
def registry(url: str) -> Iterator[Registry]:
    with connect(url) as source:
        yield open_registry(source)


def started(url: str, *wanted: str) -> tuple[ModelCatalog, list[str]]:
    log: list[str] = []
    catalog = ModelCatalog(ModelStore(url), wanted, log.append)
    catalog.start()
    return catalog, log


def looked(catalog: ModelCatalog) -> bool:
    """True if the registry was read."""
    found = catalog.look()
    if found is not None:
        catalog.take(*found)
    return found is not None


@pytest.mark.soak
def test_all_models_are_loaded_unless_some_are_named(url: str) -> None:
    assert sorted(started(url)[0].loaded) == ["costs", "kinds"]
    assert sorted(started(url, "kinds")[0].loaded) == ["kinds"]


@pytest.mark.soak
def test_a_transform_is_not_among_all_models(url: str, archives: dict[str, Path]) -> None:
    with registry(url) as opened:
        opened.save("shapes", archives["costs"], ModelRecord("Transform", "none", 3, {}, "TRAIN"))
    catalog, log = started(url)
    assert sorted(catalog.loaded) == ["costs", "kinds"]
    assert not any("shapes" in line for line in log)


def test_a_new_version_replaces_the_model_and_the_old_one_stays_for_a_while(
    url: str, archives: dict[str, Path]
) -> None:
    catalog, log = started(url, "kinds")
    before = catalog.find("kinds")
    with registry(url) as models:
        models.save("kinds", archives["costs"], RECORD)
    assert looked(catalog)
    found = catalog.find("kinds")
    assert found is not None
    assert found.model.results.names == ["cost"]
    assert catalog.find("kinds", 1) is before
    assert log == ["kinds@1 is loaded", "kinds@2 replaces version 1"]


@pytest.mark.soak
def test_a_version_that_is_named_is_never_replaced(url: str, archives: dict[str, Path]) -> None:
    catalog, _ = started(url, "kinds@1")
    with registry(url) as models:
        models.save("kinds", archives["costs"], RECORD)
    assert looked(catalog)
    found = catalog.find("kinds")
    assert found is not None
    assert found.version.version == 1
    with pytest.raises(SemanticError, match="model kinds has no version 2"):
        catalog.find("kinds", 2)


@pytest.mark.soak
def test_a_tag_that_is_named_is_followed(url: str, archives: dict[str, Path]) -> None:
    with registry(url) as models:
        models.save("kinds", archives["costs"], RECORD)
        models.tag("kinds@1", "production")
    catalog, log = started(url, "kinds@production")
    assert catalog.find("kinds").version.version == 1
    with registry(url) as models:
        models.tag("kinds@2", "production")
    assert looked(catalog)
    assert catalog.find("kinds").version.version == 2
    assert log == ["kinds@1 is loaded", "kinds@2 replaces version 1"]


@pytest.mark.soak
def test_a_dropped_model_is_no_longer_served(url: str) -> None:
    catalog, _ = started(url)
    with registry(url) as models:
        models.drop("costs")
    assert looked(catalog)
    with pytest.raises(SemanticError, match="there is no model costs"):
        catalog.find("costs")


@pytest.mark.soak
def test_an_archive_that_cannot_be_loaded_leaves_the_model_as_it_is(url: str, tmp_path: Path) -> None:
    catalog, log = started(url, "kinds")
    damaged = tmp_path / "damaged.zip"
    damaged.write_bytes(b"PK")
    with registry(url) as models:
        models.save("kinds", damaged, RECORD)
    assert looked(catalog)
    assert catalog.loaded["kinds"].version.version == 1
    assert catalog.failures == 1
    assert log[-1].startswith("kinds@2 cannot be loaded: ")


@pytest.mark.soak
def test_a_database_is_opened_again_only_when_its_file_has_changed(url: str) -> None:
    catalog, _ = started(url)
    looked(catalog)  # the first connection may have written the log of the database into its file
    assert not looked(catalog)
    with connect(url) as source:
        source.execute("CREATE TABLE t AS SELECT 1 AS a")
    assert looked(catalog)


def test_few_old_versions_are_kept(url: str, archives: dict[str, Path]) -> None:
    with registry(url) as models:
        for _ in range(MOST_OLD + 2):
            models.save("kinds", archives["kinds"], RECORD)
    catalog, _ = started(url, "kinds")
    for number in range(1, MOST_OLD + 2):
        assert catalog.find("kinds", number) is None
        catalog.keep(catalog.load_version("kinds", number))
    assert catalog.find("kinds", 1) is None
    assert catalog.find("kinds", 2) is not None


def test_a_server_without_its_models_does_not_start(url: str, tmp_path: Path) -> None:
    with pytest.raises(SemanticError, match="there is no model kind"):
        started(url, "kind")
    with pytest.raises(SemanticError, match="model kinds has no version 7"):
        started(url, "kinds@7")
    empty = f"sqlite:///{tmp_path}/empty.sqlite"
    connect(empty, create=True).close()
    with pytest.raises(SemanticError, match="there is no model to serve"):
        started(empty)
    with pytest.raises(SQLFlowError):
        started(f"duckdb:///{tmp_path}/none.duckdb")
