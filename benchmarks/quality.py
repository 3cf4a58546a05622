"""Quality of models on public tables, against models that a person would train by hand.

The product's statements name the label, and the default network or no model: then it searches for SECONDS at most.
Each model learns from the same rows and is measured on the same held-out ones; the peers are
`benchmarks.baselines.tabular`. The ratio is that of the product's error to LightGBM's (the root mean square error, or 1
less the metric), and the mean ranks are over all tables and models. `python -m benchmarks.quality [TABLE …]` prints the
metrics alone.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import sqlflow_edl
from benchmarks.baselines.tabular import MODELS, Model
from benchmarks.quality_tables import LABEL, TABLES, Table
from benchmarks.table import Row

SEARCH, PRODUCT = "search", "DNN"
SECONDS = 60
STATEMENTS = {
    SEARCH: f"SELECT * FROM train LABEL {LABEL} WITH train.time_limit = {SECONDS} INTO m",
    PRODUCT: f"SELECT * FROM train TO TRAIN DNN{{kind}} LABEL {LABEL} INTO m",
}
PEER, AIM = "LightGBM", "HistGradientBoosting"
LARGEST_LOSS = {SEARCH: 1.0, PRODUCT: 1.01}  # error to that of LightGBM's defaults
Measured = Mapping[str, tuple[float, float]]  # model -> metric of the held-out rows, seconds


def measure(folder: Path, rounds: int, rows: int) -> list[Row]:
    found = {table.name: measured(table, folder) for table in TABLES}
    show(found)
    ranks = mean_ranks(found)
    compared = [
        Row(
            f"quality: error of {ours} on {table.name}, against {PEER}",
            f"{table.metric} {found[table.name][ours][0]:.4g}, {PEER} {found[table.name][PEER][0]:.4g}",
            [error(table, found[table.name][ours][0]) / error(table, found[table.name][PEER][0])],
            most=LARGEST_LOSS[ours],
        )
        for ours in STATEMENTS
        for table in TABLES
    ]
    ranked = [
        Row(
            f"quality: mean rank of {ours}, against {AIM}",
            _worded(ranks),
            [ranks[ours] / ranks[AIM]],
            most=1.0,
        )
        for ours in STATEMENTS
    ]
    return [*compared, *ranked]


def measured(table: Table, folder: Path) -> Measured:
    """Train every model on the table's training rows, and measure it on the held-out ones."""
    train, held_out = table.load()
    found = {}
    ours: dict[str, Model] = {
        name: partial(_product, table, statement, folder / f"{table.name}_{name}.duckdb")
        for name, statement in STATEMENTS.items()
    }
    for name, predict in {**ours, **MODELS}.items():
        began = time.perf_counter()
        predicted = predict(train, held_out)
        found[name] = score(table, train, held_out, predicted), time.perf_counter() - began
        print(
            f"{table.name:12} {name:22} {table.metric} {found[name][0]:.4f}  {found[name][1]:.1f} s",
            file=sys.stderr,
        )
    return found


def score(table: Table, train: Any, held_out: Any, predicted: Any) -> float:
    """Return the metric of predictions: numbers, or probabilities of the classes in their natural order."""
    from sklearn.metrics import roc_auc_score

    truth = held_out[LABEL].to_numpy()
    if table.metric == "rmse":
        return float(np.sqrt(np.mean((predicted - truth) ** 2)))
    classes = np.array(sorted(train[LABEL].unique()))
    if table.metric == "auc":
        return float(roc_auc_score(truth == classes[1], predicted[:, 1]))
    return float(np.mean(classes[predicted.argmax(axis=1)] == truth))


def error(table: Table, value: float) -> float:
    """Return a figure that is lower for better models."""
    return value if table.metric == "rmse" else 1 - value


def mean_ranks(found: Mapping[str, Measured]) -> dict[str, float]:
    """Rank the models on each table, 1 for the lowest error; return the mean over the tables."""
    ranks: dict[str, list[int]] = {}
    for table in TABLES:
        if table.name in found:
            errors = {name: error(table, value) for name, (value, _) in found[table.name].items()}
            for name in errors:
                ranks.setdefault(name, []).append(1 + sum(other < errors[name] for other in errors.values()))
    return {name: statistics.mean(each) for name, each in ranks.items()}


def show(found: Mapping[str, Measured]) -> None:
    """Print the metrics and the seconds of all models as a Markdown table."""
    for line in _lines(found):
        print(line)


def _lines(found: Mapping[str, Measured]) -> Iterator[str]:
    models = list(next(iter(found.values())))
    yield f"| table | metric | {' | '.join(models)} |"
    yield "|---" * (len(models) + 2) + "|"
    for table in TABLES:
        if table.name in found:
            cells = (f"{value:.4g} ({seconds:.0f} s)" for value, seconds in found[table.name].values())
            yield f"| {table.name} | {table.metric} | {' | '.join(cells)} |"
    ranks = mean_ranks(found)
    yield f"| mean rank | | {' | '.join(f'{ranks[name]:.2f}' for name in models)} |"


def _worded(ranks: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {rank:.2f}" for name, rank in ranks.items())


def _product(table: Table, statement: str, database: Path, train: Any, held_out: Any) -> Any:
    """Train a model by the statement; return its predictions, or probabilities of the classes."""
    kind = "Regressor" if table.metric == "rmse" else "Classifier"
    train_product(statement.format(kind=kind), database, train)
    return predict_product(database, held_out, sorted(train[LABEL].unique()) if kind == "Classifier" else ())


def train_product(statement: str, database: Path, rows: Any) -> None:
    """Train the model m by a statement on the table `train`, which has the rows."""
    _make_table(database, "train", rows)
    with sqlflow_edl.connect(f"duckdb:///{database}") as session:
        list(session.run(statement))


def predict_product(database: Path, rows: Any, classes: Sequence[Any]) -> Any:
    """Return the predictions of the model m: numbers, or, of some classes, probabilities.

    Of many classes there are no probabilities by default: it is then 1 for the predicted class.
    """
    _make_table(database, "held_out", rows)
    features = ", ".join(f'"{name}"' for name in rows.columns if name != LABEL)
    with sqlflow_edl.connect(f"duckdb:///{database}") as session:
        [result] = session.run(f"SELECT {features} FROM held_out TO PREDICT USING m")
        predicted = result.to_pandas()
    if not classes:
        return predicted[LABEL].to_numpy()
    if probabilities := [name for name in predicted.columns if name.startswith(f"{LABEL}_prob_")]:
        return predicted[probabilities].to_numpy()
    return (predicted[LABEL].to_numpy()[:, None] == np.array(classes)).astype(np.float64)


def _make_table(database: Path, name: str, rows: Any) -> None:
    import duckdb

    with duckdb.connect(str(database)) as connection:
        connection.register("rows", rows)
        connection.execute(f"CREATE TABLE {name} AS SELECT * FROM rows")


def main(names: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        chosen = [table for table in TABLES if table.name in names or not names]
        show({table.name: measured(table, Path(folder)) for table in chosen})


if __name__ == "__main__":
    main(sys.argv[1:])
