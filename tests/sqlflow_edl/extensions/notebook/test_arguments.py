"""Options before the SQL, which is left as it is."""

from __future__ import annotations

import pytest

from edl.errors import SemanticError
from sqlflow_edl.extensions.notebook.arguments import split_name, split_options, whole

KNOWN = {"source": "URL", "o": "NAME", "debug": ""}


@pytest.mark.parametrize(
    ("line", "options", "rest"),
    [
        ("SELECT 1", {}, "SELECT 1"),
        ("--source duckdb: SELECT '--x'", {"source": "duckdb:"}, " SELECT '--x'"),
        ("  --debug -o name -- SELECT", {"debug": "yes", "o": "name"}, " -- SELECT"),
        ("--source='a b.csv' -o=\"x\" SELECT", {"source": "a b.csv", "o": "x"}, " SELECT"),
        ("-- a comment", {}, "-- a comment"),
        ("-1 + 2", {}, "-1 + 2"),
    ],
)
def test_options_end_where_the_sql_begins(line: str, options: dict[str, str], rest: str) -> None:
    assert split_options(line, KNOWN) == (options, rest)


@pytest.mark.parametrize(
    ("line", "message", "hint"),
    [
        ("--surce x", "unknown option --surce", "did you mean --source?"),
        ("--zzz", "unknown option --zzz", "known: --source, -o, --debug"),
        ("--source", "--source needs a value", "--source URL"),
        ("--source --debug", "--source needs a value", "--source URL"),
    ],
)
def test_an_option_that_means_nothing_is_named(line: str, message: str, hint: str) -> None:
    with pytest.raises(SemanticError) as raised:
        split_options(line, KNOWN)
    assert (raised.value.message, raised.value.hint) == (message, hint)


@pytest.mark.parametrize(
    ("text", "name", "rest"),
    [
        ("r << SELECT 1", "r", "     SELECT 1"),
        ("\n größe<<\nSELECT 1", "größe", "\n        \nSELECT 1"),
        ("SELECT 1 << 2", "", "SELECT 1 << 2"),
        ("1x << SELECT 1", "", "1x << SELECT 1"),
    ],
)
def test_a_name_for_the_result_leaves_all_places_what_they_were(text: str, name: str, rest: str) -> None:
    assert split_name(text) == (name, rest)
    assert len(split_name(text)[1]) == len(text)


def test_a_number_is_whole() -> None:
    assert whole("workers", "12", 12) == 12
    with pytest.raises(SemanticError, match="--workers must be a whole number from 0 to 12, not -1"):
        whole("workers", "-1", 12)
    with pytest.raises(SemanticError, match="not 13"):
        whole("workers", "13", 12)
