"""Looks at the rows of a query on each database: their number, the first ones, and a random share of them."""

from __future__ import annotations

import pytest

from sqlflow_edl.analysis.search.table_probe import TableProbe
from tests.databases import Databases

PART = "SELECT count(*) AS n FROM (SELECT * FROM people) AS sqlflow_edl_given WHERE {}"


@pytest.fixture(params=["duckdb", "mysql", "postgres"])
def probe(databases: Databases, request: pytest.FixtureRequest) -> TableProbe:
    source = databases.filled(request.param).source
    return TableProbe(source, "SELECT * FROM people", tuple(source.schema("SELECT * FROM people").names))


def test_the_parts_of_a_table_are_about_as_large_as_each_other_and_the_same_again(probe: TableProbe) -> None:
    total = probe.count_rows()
    assert total is not None
    [counts, again] = [
        probe.source.stream(PART.format(probe.condition(4))).read_all()["n"][0].as_py() for _ in range(2)
    ]
    assert counts == again
    assert total / 8 < counts < total / 2


def test_a_sample_of_a_table_is_of_all_its_rows(probe: TableProbe) -> None:
    total = probe.count_rows()
    assert total is not None
    first, sample = probe.read_rows(total // 8, None), probe.read_rows(total // 8, total)
    assert first.num_rows <= total // 4
    assert 0 < sample.num_rows <= total // 4
    assert sample.column_names == first.column_names == [*probe.columns]


def test_a_database_without_a_way_to_choose_a_share_is_not_asked_for_the_number(databases: Databases) -> None:
    source = databases.filled("sqlite").source
    probe = TableProbe(source, "SELECT * FROM people", ("age",))
    assert probe.count_rows() is None
    assert probe.read_rows(10, None).num_rows <= 20
