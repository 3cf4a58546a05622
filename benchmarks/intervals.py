"""Coverage and width of the intervals of PREDICT on ten tables, for trees, a network, a linear model and a search.

Half of the tables are public (`benchmarks.quality_tables`), with the held-out rows at random; the others are drawn,
most of them with errors whose size depends on the row. Two thirds of the rows of a drawn table are held out. The
intervals of 90 % are compared with intervals of one width, from the same validation rows.
`python -m benchmarks.intervals [TABLE …]` prints the figures alone.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import sqlflow_edl
from benchmarks.quality_tables import LABEL, TABLES
from benchmarks.table import Row
from edl.models.archive import read_archive

COVERAGE = 0.9
PUBLIC = ("diamonds", "movielens", "loans", "ames", "deliveries")
DRAWN_ROWS, SHARE = 24_000, 3  # of which every third row is trained on
SECONDS = 20
FEW_ROWS, SPLITS = 20_000, 4  # a table of fewer rows is split several times: a share of few rows is uncertain
MODELS = {
    "trees": "TO TRAIN BoostedTreesRegressor VALIDATE 0.2 {label}",
    "network": "TO TRAIN DNNRegressor WITH model.framework = torch VALIDATE 0.2 {label}",
    "linear": "TO TRAIN LinearRegressor WITH model.framework = torch VALIDATE 0.2 {label}",
    "search": f"{{label}} WITH train.time_limit = {SECONDS}",
}
Random = np.random.Generator


class Measured(NamedTuple):
    """Figures of the intervals of a model on the held-out rows of a table.

    coverage: share of the labels inside. width: mean width, relative to intervals of one width. least, least_of_one:
    the lowest coverage of a fifth of the rows by the width of their intervals, and the same for intervals of one width.
    """

    coverage: float
    width: float
    least: float
    least_of_one: float


def measure(folder: Path, rounds: int, rows: int) -> list[Row]:
    found = {name: measure_table(name, folder) for name in (*PUBLIC, *DRAWN)}
    show(found)
    coverages = [figures.coverage for by_model in found.values() for figures in by_model.values()]
    widths = [figures.width for by_model in found.values() for figures in by_model.values()]
    return [
        Row("intervals: lowest coverage of 90 %", f"{min(coverages):.3f}", value=min(coverages), least=0.88),
        Row("intervals: highest coverage of 90 %", f"{max(coverages):.3f}", value=max(coverages), most=0.92),
        Row("intervals: mean width, against one width", f"{statistics.mean(widths):.3f}", widths, most=1.0),
    ]


def measure_table(name: str, folder: Path) -> dict[str, Measured]:
    """Train each model on the table, and measure its intervals on the held-out rows."""
    import pandas as pd

    train, held_out = load(name)
    splits = [(train, held_out)]
    rows = pd.concat([train, held_out], ignore_index=True)
    for seed in range(1, SPLITS if len(rows) < FEW_ROWS else 1):
        is_apart = np.random.default_rng(seed).permutation(len(rows)) < len(held_out)
        splits.append((rows[~is_apart].reset_index(drop=True), rows[is_apart].reset_index(drop=True)))
    found = {}
    for model, clauses in MODELS.items():
        of_splits = [
            measure_model(clauses, folder / f"{name}_{model}_{number}.duckdb", *split)
            for number, split in enumerate(splits)
        ]
        found[model] = Measured(*(statistics.mean(values) for values in zip(*of_splits, strict=True)))
        print(f"{name:14} {model:8} {found[model]}", file=sys.stderr)
    return found


def load(name: str) -> tuple[Any, Any]:
    """Return the training and the held-out rows of a table."""
    import pandas as pd

    if name in PUBLIC:
        [table] = [table for table in TABLES if table.name == name]
        return table.load()
    draw = np.random.default_rng(7)
    columns, label = DRAWN[name](draw, DRAWN_ROWS)
    rows = pd.DataFrame({f"x{place}": column for place, column in enumerate(columns)} | {LABEL: label})
    is_trained = np.arange(len(rows)) % SHARE == 0
    return rows[is_trained].reset_index(drop=True), rows[~is_trained].reset_index(drop=True)


def measure_model(clauses: str, database: Path, train: Any, held_out: Any) -> Measured:
    import duckdb

    with duckdb.connect(str(database)) as connection:
        for name, rows in (("train", train), ("held_out", held_out.assign(row_number=range(len(held_out))))):
            connection.register("rows", rows)
            connection.execute(f"CREATE TABLE {name} AS SELECT * FROM rows")
    statement = f"SELECT * FROM train {clauses.format(label=f'LABEL {LABEL}')} INTO m"
    with sqlflow_edl.connect(f"duckdb:///{database}") as session:
        list(session.run(statement))
        query = (
            f"SELECT * EXCLUDE {LABEL} FROM held_out TO PREDICT USING m WITH predict.interval = {COVERAGE}"
        )
        [result] = session.run(query)
        predicted = result.to_pandas().sort_values("row_number")
        archive = database.with_suffix(".zip")
        session.registry.load("m", archive)
    residuals = read_archive(archive).residuals
    margin = residuals.margin(COVERAGE) if residuals is not None else None
    if margin is None:
        raise RuntimeError("the model has no errors of validation rows")
    truth, middle = held_out[LABEL].to_numpy(), predicted[LABEL].to_numpy()
    low, high = (predicted[f"{LABEL}_{end}"].to_numpy() for end in ("low", "high"))
    inside, inside_one = (low <= truth) & (truth <= high), np.abs(truth - middle) <= margin
    fifths = np.array_split(np.argsort(high - low, kind="stable"), 5)
    return Measured(
        float(inside.mean()),
        float((high - low).mean() / (2 * margin)),
        min(float(inside[fifth].mean()) for fifth in fifths),
        min(float(inside_one[fifth].mean()) for fifth in fifths),
    )


def show(found: dict[str, dict[str, Measured]]) -> None:
    """Print the figures as a Markdown table."""
    for line in _lines(found):
        print(line)


def _lines(found: dict[str, dict[str, Measured]]) -> Iterator[str]:
    yield f"| table | {' | '.join(MODELS)} |"
    yield "|---" * (len(MODELS) + 1) + "|"
    for name, by_model in found.items():
        cells = (
            f"{figures.coverage:.3f}, {figures.width:.2f}, {figures.least_of_one:.2f} → {figures.least:.2f}"
            for figures in by_model.values()
        )
        yield f"| {name} | {' | '.join(cells)} |"


# Drawn tables: the columns and the label ------------------------------------------------------------------------

Drawn = tuple[Sequence[Any], Any]


def _draw_friedman(draw: Random, rows: int) -> Drawn:
    """Draw scikit-learn's first table of Friedman: errors of one size."""
    from sklearn.datasets import make_friedman1

    columns, label = make_friedman1(rows, noise=1.0, random_state=0)
    return list(columns.T), label


def _draw_fan(draw: Random, rows: int) -> Drawn:
    """Draw errors that grow with another column than the mean does."""
    x = draw.random((5, rows))
    return list(x), 10 * x[0] + np.exp(2 * x[1]) * draw.normal(size=rows)


def _draw_kinds(draw: Random, rows: int) -> Drawn:
    """Draw errors that depend on a text, with long tails."""
    kind, x = draw.choice(list("abcdefgh"), rows), draw.normal(size=rows)
    size = np.where(kind < "c", 4.0, 1.0)
    return [kind, x], 3 * x + size * draw.standard_t(4, size=rows)


def _draw_amounts(draw: Random, rows: int) -> Drawn:
    """Draw amounts, three quarters of which are 0: a case of an issue of MAPIE (240)."""
    x = draw.normal(size=(3, rows))
    is_paid = draw.random(rows) < 1 / (1 + np.exp(1.5 - x[0]))
    return list(x), is_paid * draw.gamma(2.0, np.exp(1 + 0.5 * x[1]))


def _draw_counts(draw: Random, rows: int) -> Drawn:
    """Draw counts of a negative binomial distribution."""
    x = draw.normal(size=(4, rows))
    mean = np.exp(1.5 + 0.6 * x[0] - 0.4 * x[1])
    return list(x), draw.poisson(draw.gamma(3.0, mean / 3.0)).astype(np.float64)


DRAWN: dict[str, Callable[[Random, int], Drawn]] = {
    "friedman": _draw_friedman,
    "fan": _draw_fan,
    "kinds": _draw_kinds,
    "amounts": _draw_amounts,
    "counts": _draw_counts,
}


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        show({name: measure_table(name, Path(folder)) for name in sys.argv[1:] or (*PUBLIC, *DRAWN)})
