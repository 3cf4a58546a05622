"""Dotted names: any text is a name and nothing else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edl.data.names import (
    LONGEST_NAME,
    duplicate,
    fit_name,
    format_name,
    free_name,
    join_quoted,
    quote_part,
    split_name,
    unique_names,
)
from edl.errors import SourceError
from tests.texts import texts


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("t", ("t",)),
        ("iris.predict", ("iris", "predict")),
        ('"a.b"."c ""d"""', ("a.b", 'c "d"')),
        ('iris."x y".t', ("iris", "x y", "t")),
        ('x"); drop table t; --', ('x"); drop table t; --',)),
        ("таблица.表", ("таблица", "表")),
        ("n" * 300, ("n" * 300,)),
    ],
)
def test_a_name_comes_apart_at_its_dots(name: str, parts: tuple[str, ...]) -> None:
    assert split_name(name) == parts


@pytest.mark.parametrize("name", ["", ".", "a.", ".a", "a..b", '"', '"a', '"a"b', '"".t', 'a."b'])
def test_a_name_with_an_empty_part_or_an_open_quote_is_refused(name: str) -> None:
    with pytest.raises(SourceError):
        split_name(name)


@pytest.mark.soak
@given(st.lists(texts(min_size=1), min_size=1, max_size=3))
def test_quoted_parts_come_back_as_they_were(parts: list[str]) -> None:
    assert split_name(join_quoted(parts)) == tuple(parts)
    assert split_name(format_name(parts)) == tuple(parts)


def test_a_quote_inside_a_name_is_doubled() -> None:
    assert quote_part('a"b') == '"a""b"'
    assert quote_part("a`b", "`") == "`a``b`"


def test_a_name_is_shown_with_quotes_only_where_it_needs_them() -> None:
    assert format_name(["iris", "or der", "Select", "x1"], reserved={"select"}) == 'iris."or der"."Select".x1'


def test_a_free_name_differs_from_every_taken_one_in_any_case() -> None:
    assert free_name("h", ["a"]) == "h"
    assert free_name("h", ["H", "h_", "H__"]) == "h___"


def test_the_first_repeated_name_is_found_whatever_its_case() -> None:
    assert duplicate(["a", "b", "A", "B"]) == "A"
    assert duplicate(["a", "b"]) is None


def test_a_name_becomes_one_that_a_column_of_the_database_can_have() -> None:
    name = "p_ja, größe 😀"
    assert fit_name(name, "duckdb") == fit_name(name, "sqlite") == name
    assert fit_name(name, "mysql") == "p_ja, größe _"
    assert fit_name(name, "maxcompute") == "p_ja__größe__"


def test_names_are_shortened_and_stay_unique() -> None:
    long = "ä" * 100
    found = unique_names([long, long, long], taken=())
    assert len(set(found)) == 3
    assert all(len(name) <= LONGEST_NAME for name in found)


def test_no_name_ends_in_a_space() -> None:
    assert unique_names(["a ", "a"], taken=()) == ("a", "a_2")
