"""MAXIMIZE and MINIMIZE: solutions, plans, and mistakes at their places."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest

import sqlflow_edl
from edl.errors import SourceError, SQLFlowError
from edl.extensions.optimization.spec import Condition
from sqlflow_edl.extensions.optimization.statement import check_columns
from sqlflow_edl.session.session import Session
from tests.sql_cases import Case, cases, refusal

TABLES = """
CREATE TABLE toys AS SELECT * FROM (VALUES ('soldier', 27, 24, 2, 1, 40), ('train', 21, 19, 1, 1, 10000))
    t(product, price, cost, finishing, carpentry, most);
CREATE TABLE roads AS SELECT * FROM (VALUES ('a', 'm', 140, 100, 130), ('b', 'm', 300, 90, 130),
    ('a', 'n', 210, 100, 60), ('b', 'n', 90, 90, 60)) t(plant, market, distance, capacity, demand)
"""
TOYS = (
    "SELECT * FROM toys TO MAXIMIZE SUM(price * amount) CONSTRAINT SUM(finishing * amount) <= 100, amount <= most "
    "WITH variables='amount(product)', var_type=NonNegativeIntegers"
)


def in_duckdb(file: str) -> list[Case]:
    return [case for case in cases(file) if case.dialect == "duckdb"]


@pytest.fixture(scope="module")
def session() -> Iterator[Session]:
    with sqlflow_edl.connect("duckdb:") as opened:
        list(opened.run(TABLES))
        yield opened


@pytest.mark.parametrize("case", in_duckdb("optimization/solutions.sql"), ids=str)
def test_the_best_values_are_found(session: Session, case: Case, capfd: pytest.CaptureFixture[str]) -> None:
    [result] = session.run(case.program)
    found = result.to_arrow()
    assert result.message == f"the optimal value of the objective is {case.fields['objective']}"
    assert ", ".join(map(str, found.columns[-1].to_pylist())) == case.fields["values"]
    assert capfd.readouterr().out == "", "the solver prints nothing among the rows"


@pytest.mark.variants(8)
@pytest.mark.parametrize("case", in_duckdb("optimization/errors.sql"), ids=str)
def test_an_error_is_told_at_its_place(session: Session, case: Case) -> None:
    refusal(case, lambda program: list(session.run(program)))


def test_the_solution_becomes_a_table_of_keys_and_values(session: Session) -> None:
    [result] = session.run(f"{TOYS} INTO plan_of_toys")
    assert result.rows == 2
    [stored] = session.run("SELECT * FROM plan_of_toys ORDER BY product")
    assert stored.to_arrow().to_pylist() == [
        {"product": "soldier", "amount": 0},
        {"product": "train", "amount": 100},
    ]


def test_a_table_that_no_job_made_is_not_replaced(session: Session) -> None:
    with pytest.raises(SourceError, match="toys"):
        list(session.run(f"{TOYS} INTO toys"))


def test_the_plan_counts_variables_and_constraints(session: Session) -> None:
    [statement] = session.parse(TOYS)
    [explained] = session.run(f"EXPLAIN {TOYS}")
    plan = session.plan(statement).to_arrow()
    assert explained.to_arrow().slice(1).equals(plan.slice(1))
    rows = {(row["section"], row["name"]): row for row in plan.to_pylist()}
    assert rows["problem", "variables"]["value"] == "2"
    assert rows["problem", "constraints"]["value"] == "3"
    assert rows["constraint", "amount <= most"]["why"] == "one for each row"


def test_a_program_is_checked_before_its_first_statement(session: Session) -> None:
    with pytest.raises(SQLFlowError, match="unknown column prise"):
        list(session.run(f"CREATE TABLE never AS SELECT 1; {TOYS.replace('price', 'prise')}"))
    assert "never" not in session.source.tables()


def test_a_large_problem_has_the_sums_of_its_groups() -> None:
    from edl.extensions.optimization.problem import build

    with sqlflow_edl.connect("duckdb:") as opened:
        [statement] = opened.parse(
            "SELECT range AS i, range % 7 AS g, range * 0.5 AS c FROM range(70) TO MINIMIZE SUM(c * x) "
            "CONSTRAINT SUM(c * x) - AVG(x) >= MAX(i) GROUP BY g WITH variables='x(i)', var_type=Reals"
        )
        spec = check_columns(opened.compiler, statement)
        rows = pa.table({"i": range(70), "g": [i % 7 for i in range(70)], "c": [i * 0.5 for i in range(70)]})
        [block] = build(spec, rows).blocks
    dense = np.zeros((block.count, 70))
    dense[np.repeat(np.arange(block.count), np.diff(block.starts)), block.indices] = block.values
    expected = [[(i * 0.5 - 0.1) * (i % 7 == group) for i in range(70)] for group in range(7)]
    assert isinstance(block.condition, Condition)
    np.testing.assert_allclose(dense, expected)
    np.testing.assert_allclose(block.lower, [63 + group for group in range(7)])
