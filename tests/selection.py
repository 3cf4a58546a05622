"""Choice of tests: those for every change, which `make test` runs, and the rows of the fault matrix.

All others wait for `--soak`: tests marked `soak`, all but some of the variants of tests marked `variants`, and all but
one source of each test that runs on several.
"""

from __future__ import annotations

import re
from pathlib import Path
from zlib import crc32

import pytest

ANALYSIS = Path(__file__).parent / "sqlflow_edl" / "analysis"
# Sources, as parameters of tests name them.
SOURCES = ("duckdb", "sqlite", "mysql", "postgres", "maxcompute", "csv", "granite")
_FAULT = re.compile(r"::test_(a\d+_|every_schedule_)|_schedules\.py::")


def for_every_change(items: list[pytest.Item]) -> list[pytest.Item]:
    """The tests that do not wait for `--soak`."""
    return _some_variants(_some_sources([item for item in items if not _waits_for_soak(item)]))


def of_fault_matrix(items: list[pytest.Item], turn: int) -> list[pytest.Item]:
    """Tests of rows of the fault matrix, and of those with several variants the one whose turn it is."""
    variants: dict[str, list[pytest.Item]] = {}
    for item in items:
        if _FAULT.search(item.nodeid):
            variants.setdefault(item.nodeid.partition("[")[0], []).append(item)
    return [each[turn % len(each)] for each in variants.values()]


def _waits_for_soak(item: pytest.Item) -> bool:
    """True for a test that is marked, and for a case of a class whose mark names it."""
    name = getattr(item, "originalname", item.name)
    return any(not mark.args or name in mark.args for mark in item.iter_markers("soak"))


def _some_sources(items: list[pytest.Item]) -> list[pytest.Item]:
    """Keep each test that runs on DuckDB and on others on one of them, in turn; those of other sources stay whole.

    So every test and every source is there, and `make test-all` runs their product.
    """
    variants: dict[tuple[object, ...], dict[str, pytest.Item]] = {}
    for item in items:
        if found := _source_of(item):
            test, source = found
            variants.setdefault(test, {})[source] = item
    left_out: set[pytest.Item] = set()
    for test, by_source in variants.items():
        if "duckdb" in by_source:
            kept = [*by_source][crc32(repr(test).encode()) % len(by_source)]
            left_out.update(item for source, item in by_source.items() if source != kept)
    return [item for item in items if item not in left_out]


def _some_variants(items: list[pytest.Item]) -> list[pytest.Item]:
    """Keep of the variants of a test as many as its mark says: the first, the last, and some between them."""
    variants: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("variants"):
            variants.setdefault(item.nodeid.partition("[")[0], []).append(item)
    left_out: set[pytest.Item] = set()
    for of_test in variants.values():
        mark = of_test[0].get_closest_marker("variants")
        number = mark.args[0] if mark else len(of_test)
        step = (len(of_test) - 1) / max(1, number - 1)
        left_out |= {*of_test} - {of_test[round(step * index)] for index in range(min(number, len(of_test)))}
    return [item for item in items if item not in left_out]


def _source_of(item: pytest.Item) -> tuple[tuple[object, ...], str] | None:
    """The test with its other parameters, and the source that it runs on; None for a test of no source."""
    if not isinstance(item, pytest.Function) or not hasattr(item, "callspec"):
        return None
    case = item.callspec.params.get("case")
    if ANALYSIS in item.path.parents and isinstance(dialect := getattr(case, "dialect", None), str):
        statement = (
            item.nodeid.partition("[")[0],
            getattr(case, "title", ""),
            repr(getattr(case, "fields", "")),
        )
        return statement, dialect
    sources = [
        name for name, value in item.callspec.params.items() if isinstance(value, str) and value in SOURCES
    ]
    if len(sources) != 1:
        return None
    others = item.callspec.id.split("-")
    source = str(item.callspec.params[sources[0]])
    if source in others:
        others.remove(source)
    return (item.nodeid.partition("[")[0], *others), source
