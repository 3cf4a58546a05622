"""The last words about a statement that has figures: what was measured, where the model is, and what to do next."""

from __future__ import annotations

from collections.abc import Iterator

from sqlflow_edl.reports.words import number
from sqlflow_edl.results import Result


def final_report(result: Result) -> list[str]:
    """Aligned lines; none where there is nothing to add, as when the figures are the rows of the answer."""
    if result.reader is not None:
        return []
    rows = list(facts(result))
    width = max((len(name) for name, _ in rows), default=0)
    lines = [f"{name:{width}}  {value}" for name, value in rows]
    return [result.message, *lines] if result.model else lines


def facts(result: Result) -> Iterator[tuple[str, str]]:
    """Names and values of the report."""
    if result.figures:
        yield "metric", result.measured_on
        for name, value in result.figures.items():
            yield name, number(value)
    if result.model:
        name = result.model.rpartition("@")[0]
        yield "model", f"{result.model} in {result.stored_in}"
        yield "predict", f"SELECT … TO PREDICT table.column USING {name}"
        yield "measure", f"SELECT … TO EVALUATE {name}"
        yield "look", f"DESCRIBE MODEL {name}"
