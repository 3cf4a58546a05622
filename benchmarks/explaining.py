"""EXPLAIN of networks: seconds over many columns, and the errors of both methods beside exact Shapley values."""

from __future__ import annotations

import itertools
import math
import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from benchmarks.jobs import dense_session
from benchmarks.table import Row
from sqlflow_edl.session.session import Session

WIDE, EXPLAINED = 600, 300  # columns and rows of the timed statement
NUMBERS, KINDS = 9, 3  # columns of the exact values
ROWS = 24  # that are explained, and compared with each other
METHODS = {"Shapley values": "shapley", "expected gradients": "expected_gradients"}

Floats = npt.NDArray[np.float64]


def measure(folder: Path, rounds: int, rows: int) -> list[Row]:
    with dense_session(folder, 10) as session:
        return [*_seconds(session, rounds), *_errors(session)]


def _seconds(session: Session, rounds: int) -> Iterator[Row]:
    rng = np.random.default_rng(0)
    numbers = rng.normal(size=(3000, WIDE)).astype("f4")
    label = 2 * numbers[:, 0] + numbers[:, 1] * numbers[:, 2] + np.sin(numbers[:, 3])
    names = [f"c{number}" for number in range(WIDE)]
    session.register("wide", pa.table({**dict(zip(names, numbers.T, strict=True)), "y": label}))
    for framework in ("keras", "torch"):
        _run(
            session,
            f"SELECT * FROM wide TO TRAIN DNNRegressor WITH hidden_units = [64, 32], train.epochs = 2, "
            f"model.framework = {framework} COLUMN {', '.join(names)} LABEL y INTO of_wide",
        )
        found: dict[str, list[float]] = {name: [] for name in METHODS}
        for _ in range(rounds):
            for name, method in METHODS.items():
                began = time.perf_counter()
                settings = f"WITH explain.method = {method}"
                _run(session, f"SELECT * FROM wide LIMIT {EXPLAINED} TO EXPLAIN of_wide {settings} INTO why")
                found[name].append(time.perf_counter() - began)
        for name, seconds in found.items():
            yield Row(
                f"EXPLAIN of {EXPLAINED} rows x {WIDE} columns, {framework}, {name}",
                f"{statistics.median(seconds):.1f} s",
                value=statistics.median(seconds),
                most=3 if name == "expected gradients" else None,
            )


def _errors(session: Session) -> Iterator[Row]:
    """Compare contributions in a network of numbers and categories with their exact values, of the same rows."""
    names = [f"n{number}" for number in range(NUMBERS)] + [f"k{number}" for number in range(KINDS)]
    table = _mixed_table(4000)
    session.register("mixed", table)
    _run(
        session,
        f"SELECT * FROM mixed TO TRAIN DNNRegressor WITH hidden_units = [32, 32], train.epochs = 10, "
        f"model.framework = torch COLUMN {', '.join(names)} LABEL y INTO of_mixed",
    )
    session.register("explained", table.slice(0, ROWS))
    exact = _exact_values(session, table.slice(0, ROWS), names)
    scale = np.abs(exact).mean()
    for name, method in METHODS.items():
        for samples in (32, 200, 1000):
            settings = f"explain.method = {method}, explain.samples = {samples}, explain.background = query"
            began = time.perf_counter()
            _run(session, f"SELECT * FROM explained TO EXPLAIN of_mixed WITH {settings} INTO why")
            seconds = time.perf_counter() - began
            why = _read_table(session, "SELECT * FROM why ORDER BY id")
            values = np.column_stack([why[f"{column}_shap"].to_numpy() for column in names])
            sums = why["y_base"].to_numpy() + values.sum(axis=1)
            gap = np.abs(sums - why["y"].to_numpy()).mean() / scale
            error = np.abs(values - exact).mean() / scale
            yield Row(
                f"{name} of 12 columns, {samples} samples",
                f"error {100 * error:.1f} %, sums {100 * gap:.1f} % apart, {seconds:.1f} s",
            )


def _mixed_table(rows: int) -> pa.Table:
    rng = np.random.default_rng(1)
    numbers = {f"n{number}": rng.normal(size=rows) for number in range(NUMBERS)}
    kinds = {f"k{number}": rng.integers(0, 5, rows) for number in range(KINDS)}
    effects = rng.normal(size=(KINDS, 5))
    label: Any = 2 * numbers["n0"] * numbers["n1"] + np.sin(2 * numbers["n2"]) + np.maximum(numbers["n3"], 0)
    for number in range(KINDS):
        label = label + effects[number][kinds[f"k{number}"]] * (1 + numbers[f"n{4 + number}"])
    texts = {name: np.array(list("abcde"))[values] for name, values in kinds.items()}
    return pa.table({"id": np.arange(rows), **numbers, **texts, "y": label})


def _exact_values(session: Session, rows: pa.Table, names: list[str]) -> Floats:
    """Return the Shapley values by their definition, (rows, columns): the mean over all rows to compare with."""
    count, columns = rows.num_rows, len(names)
    subsets = np.array(list(itertools.product((False, True), repeat=columns)))
    row, start = (places.ravel() for places in np.meshgrid(np.arange(count), np.arange(count), indexing="ij"))
    means = np.empty((len(subsets), count))  # of each subset that comes from the row
    for first in range(0, len(subsets), 512):
        some = subsets[first : first + 512]
        parts = {
            name: rows[name].take(pa.array(np.where(some[:, [column]], row[None, :], start[None, :]).ravel()))
            for column, name in enumerate(names)
        }
        place = pa.array(np.arange(len(some) * len(row)))
        session.register("points", pa.table({"place": place, **parts}))
        _run(session, "SELECT * FROM points TO PREDICT scored.y USING of_mixed")
        scores = _read_table(session, "SELECT y FROM scored ORDER BY place")["y"].to_numpy()
        means[first : first + 512] = scores.reshape(len(some), count, count).mean(axis=2)
    sizes, values = subsets.sum(axis=1), np.zeros((count, columns))
    weights = [1 / (columns * math.comb(columns - 1, size)) for size in range(columns)]
    bits = 2 ** np.arange(columns - 1, -1, -1)
    for column in range(columns):
        without = np.flatnonzero(~subsets[:, column])
        difference = means[without + bits[column]] - means[without]
        values[:, column] = np.take(weights, sizes[without]) @ difference
    return values


def _run(session: Session, text: str) -> None:
    for _ in session.run(text):
        pass


def _read_table(session: Session, text: str) -> pa.Table:
    [result] = session.run(text)
    return result.to_arrow()
