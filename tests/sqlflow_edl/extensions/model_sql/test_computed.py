"""Expressions of every operator, drawn at random: SQL and ONNX give the values that PREDICT computes, or none."""

from __future__ import annotations

import itertools
import random

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from sqlglot import exp

from edl.features.computed import column
from edl.frameworks.onnx.columns import finite_number
from edl.frameworks.onnx.graph import Graph, Results, of_columns
from edl.spec import Computed, Source
from edl.spec.computed import OPERATORS
from sqlflow_edl.extensions.model_sql.columns import Columns
from sqlflow_edl.extensions.model_sql.dialects import target_named
from sqlflow_edl.extensions.model_sql.query import format_query
from sqlflow_edl.extensions.model_sql.stages import Stages

NUMBERS = [None, 0.0, -0.0, 1.0, -1.0, 2.5, -700.5, 709.0, 1e-300, 1e300, -1e300, float("inf"), float("nan")]
ROWS = pa.record_batch(
    dict(zip("xy", map(pa.array, zip(*itertools.product(NUMBERS, NUMBERS), strict=True)), strict=True))
)


def drawn(draw: random.Random, levels: int) -> Source | float:
    if levels == 0 or draw.random() < 0.1:
        return draw.choice(["x", "y", 0.0, 3.0, -0.5])
    operator = draw.choice(list(OPERATORS))
    count = OPERATORS[operator] or draw.choice([2, 3])
    return Computed(operator, tuple(drawn(draw, levels - 1) for _ in range(count)))


@pytest.fixture(scope="module")
def sources() -> list[Computed]:
    """Expressions with up to four operators within one another."""
    draw = random.Random(0)  # noqa: S311 - no secret
    found = (drawn(draw, 1 + number % 4) for number in range(120))
    return [each for each in found if isinstance(each, Computed) and {"x", "y"} & set(str(each))][:60]


def assert_same(found: np.ndarray, sources: list[Computed]) -> None:
    for values, source in zip(found, sources, strict=True):
        wanted = column(ROWS, source).to_numpy()
        np.testing.assert_allclose(values, wanted, rtol=1e-12, atol=1e-300, err_msg=str(source))


def test_sql_gives_the_values(sources: list[Computed]) -> None:
    target = target_named("duckdb")
    stages = Stages(target)
    columns = Columns(target, ROWS.schema, stages)
    last = {f"v{place}": columns.number(source) for place, source in enumerate(sources)}
    query = format_query(stages.select(exp.to_table("given_rows"), last), None, target, [])
    with duckdb.connect() as connection:
        connection.register("given_rows", pa.Table.from_batches([ROWS]))
        found = connection.sql(query.rstrip().removesuffix(";")).fetchnumpy()
    assert_same(np.array([np.ma.filled(found[name].astype(float), np.nan) for name in last]), sources)


def test_onnx_gives_the_values(sources: list[Computed]) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnx")

    def make(graph: Graph) -> Results:
        axis = graph.constant(np.array([1]))
        values = [graph.add("Unsqueeze", finite_number(graph, source), axis) for source in sources]
        return graph.add("Concat", *values, axis=1), None

    session = onnxruntime.InferenceSession(of_columns(["x", "y"], len(sources), make))
    given = {name: ROWS.column(name).to_numpy(zero_copy_only=False) for name in ("x", "y")}
    [found] = session.run(None, given)
    assert_same(found.T, sources)
