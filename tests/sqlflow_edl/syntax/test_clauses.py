"""What a token is depends on what the parser can take."""

from __future__ import annotations

import pytest

from edl.errors import StatementSyntaxError
from sqlflow_edl.syntax.clauses import DEEPEST, parse_clauses
from sqlflow_edl.syntax.dialects import DIALECTS
from sqlflow_edl.syntax.keywords import LazyTokens
from sqlflow_edl.syntax.lexer import clause_tokens


def rules(text: str, dialect: str = "duckdb") -> list[str]:
    """The names of the rules of the tree, top down."""
    known = DIALECTS[dialect]
    tree = parse_clauses(LazyTokens(clause_tokens(text, 0, known)), known)
    return [str(subtree.data) for subtree in tree.iter_subtrees_topdown()]


def test_a_keyword_is_a_keyword_where_only_that_can_stand() -> None:
    assert rules("TO TRAIN train LABEL label")[:3] == ["start", "train", "name"]
    assert "label" in rules("TO TRAIN train LABEL label")


def test_a_text_in_double_quotes_is_a_name_where_only_a_name_can_stand() -> None:
    assert rules('TO TRAIN m INTO "x"') == rules("TO TRAIN m INTO x")
    with pytest.raises(StatementSyntaxError):
        rules('TO TRAIN m INTO "x"', "mysql")


def test_a_text_before_a_dot_is_a_name() -> None:
    assert rules('TO TRAIN m COLUMN "t"."x"') == rules("TO TRAIN m COLUMN t.x")
    assert "string" in rules('TO TRAIN m COLUMN "x"')


def test_clauses_come_in_any_order() -> None:
    forwards = rules("TRAIN m WITH a=1 COLUMN b LABEL c VALIDATE 0.1 USING d INTO e")
    backwards = rules("TRAIN m INTO e USING d VALIDATE 0.1 LABEL c COLUMN b WITH a=1")

    assert sorted(forwards) == sorted(backwards)


def test_brackets_may_be_nested_as_deeply_as_the_limit_says() -> None:
    assert rules(f"TRAIN m WITH a={'[' * DEEPEST}{']' * DEEPEST}").count("list_value") == DEEPEST
    with pytest.raises(StatementSyntaxError, match="nested too deeply"):
        rules(f"TRAIN m WITH a={'[' * (DEEPEST + 1)}{']' * (DEEPEST + 1)}")


@pytest.mark.soak
def test_many_clauses_and_long_lists_need_no_deep_recursion() -> None:
    columns = ", ".join(f"c{i}" for i in range(5_000))

    assert rules(f"TRAIN m COLUMN {columns}").count("item") == 5_000
    assert rules("TRAIN m" + " COLUMN a" * 5_000).count("column") == 5_000
