"""The relations hold on some tables, and find what they are there to find: see `tests.relations`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from tests.documentation import REPOSITORY
from tests.relations.catalog import RELATIONS
from tests.relations.checking import check
from tests.relations.comparing import TOLERANCES, Refusal, difference
from tests.relations.faults import FAULTS, put_back
from tests.relations.places import Place
from tests.relations.registry import Input, Relation
from tests.relations.runner import Schedule
from tests.relations.shrinking import shrunk
from tests.relations.tables import LABEL, Column, Table

QUICK = {"duckdb", "sqlite", "parquet", "frame"}  # sources without a server
PAGE = REPOSITORY / "docs" / "design" / "relations.md"
EXACT = TOLERANCES["exact"]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    with Place(tmp_path_factory.mktemp("place"), tmp_path_factory.mktemp("servers")) as found:
        yield found


def seeds(relation: Relation, count: int) -> list[int]:
    """The first seeds on sources without a server."""
    quick = [seed for seed in range(8 * count) if relation.combination(seed)[0] in QUICK]
    return quick[:count]


@pytest.mark.parametrize(
    "name", [name for name in RELATIONS if name.startswith(("plan", "shown", "explained"))]
)
def test_a_relation_holds_on_some_tables(name: str, place: Place) -> None:
    for seed in seeds(RELATIONS[name], 2):
        assert check(RELATIONS[name], place, seed, shrinks=False).failure == ""


@pytest.mark.soak
@pytest.mark.parametrize("name", RELATIONS)
def test_a_relation_holds_on_every_source(name: str, place: Place) -> None:
    for seed in range(4):
        assert check(RELATIONS[name], place, seed, shrinks=False).failure == ""


def test_a_fault_that_is_put_back_is_found_on_a_small_input(place: Place) -> None:
    relation = RELATIONS["shown_as_text"]
    with put_back("numbers_lose_their_last_digits"):
        outcomes = (check(relation, place, seed, seconds=5) for seed in seeds(relation, 200))
        found = next(outcome for outcome in outcomes if outcome.failure)
    assert f"python -m tests.relations shown_as_text --seed {found.seed}" in found.failure
    assert "1 rows, 1 columns" in found.failure


def test_an_input_is_made_smaller_as_long_as_it_fails() -> None:
    values = tuple(float(at) for at in range(50))
    columns = [Column(name, "number", values) for name in ("a", "b", "odd name", LABEL)]
    found = shrunk(Input(Table(tuple(columns))), lambda each: 33.0 in each.table.columns[-2].values)
    assert found.table.rows == 1
    assert len(found.table.names) == 2
    assert found.table.columns[0].values == (33.0,)


@pytest.mark.parametrize("relation", RELATIONS.values(), ids=lambda each: each.name)
def test_seeds_meet_every_source_and_every_model_of_a_relation(relation: Relation) -> None:
    met = [relation.combination(seed) for seed in range(relation.combinations)]
    assert len({*met}) == relation.combinations
    assert {source for source, _ in met[: relation.cover]} == {*relation.sources}
    assert {model for _, model in met[: relation.cover]} == {*relation.models}
    assert relation.tolerance in TOLERANCES
    assert (relation.kind == "exact") <= (relation.tolerance == "exact")


def test_a_seed_makes_the_same_input_each_time() -> None:
    for relation in RELATIONS.values():
        assert repr(relation.input(7)) == repr(relation.input(7))  # a NaN equals no other
    assert repr(RELATIONS["rows_permuted"].input(7)) != repr(RELATIONS["rows_permuted"].input(8))


def test_numbers_are_compared_bit_by_bit_unless_a_tolerance_says_otherwise() -> None:
    one = np.array([0.1, np.nan, 0.0])
    assert difference(one, one.copy(), EXACT) == ""
    assert difference(one, np.array([0.1, np.nan, -0.0]), EXACT)
    assert difference(one, np.nextafter(one, 1), EXACT)
    assert difference(one, np.nextafter(one, 1), TOLERANCES["doubles"]) == ""
    assert difference(Refusal("no"), Refusal("not that"), EXACT) == ""
    assert difference(Refusal("no"), 1.0, TOLERANCES["score"])


def test_work_covers_each_relation_before_any_is_checked_further() -> None:
    relations = [RELATIONS["rows_permuted"], RELATIONS["session_zone"]]
    schedule = Schedule(relations, first=5)
    met: dict[str, set[str]] = {each.name: set() for each in relations}
    for _ in range(sum(each.cover for each in relations)):
        name, numbers = schedule.take() or ("", range(0))
        met[name] |= {RELATIONS[name].combination(seed)[0] for seed in numbers}
        schedule.put(name, [], 1.0)
    assert met == {each.name: {*each.sources} for each in relations}


def test_the_design_note_has_every_relation_tolerance_and_fault() -> None:
    page = PAGE.read_text(encoding="utf-8")
    for name in (*RELATIONS, *TOLERANCES, *FAULTS):
        assert f"`{name}`" in page, name


def test_faults_name_relations() -> None:
    assert {name for fault in FAULTS.values() for name in fault.relations} <= {*RELATIONS}
