"""Local training of models with embeddings, Adam, minibatches of 512, against the frameworks' own embeddings.

    flights   every departure of 2013: a dense network over times and distances, an embedding of each plane (hashed to
              20,000 ids of 16), and of airport, carrier and flight number
    clicks    DeepFM with hidden layers of 128 and 64, over a number and ten categories of 50,000 ids: 8.5 M weights
    wide      wide and deep over the same: weights of two crossed pairs, 2 M and 4 M, and six of the embeddings

Peers: Keras fit with its own Embedding layers; a PyTorch loop over a DataLoader with `nn.Embedding`, and the same with
`sparse=True` and SparseAdam. Their arrays are ready in memory, ours are read and transformed in every epoch.
"""

from __future__ import annotations

import statistics
from pathlib import Path

import sqlflow_edl
from benchmarks.jobs import job_of
from benchmarks.table import Row
from benchmarks.training import rate
from sqlflow_edl.samples.tables import TABLES
from sqlflow_edl.session.session import Session

CATEGORIES, IDS = 10, 50_000
EPOCHS = 2
HIDDEN = "hidden_units = [128, 64]"
STATEMENTS = {
    "flights": "SELECT dep_hour, distance, sched_arr_time, plane, flight, dest, carrier, arr_delay FROM departures "
    f"TO TRAIN DNNRegressor WITH {HIDDEN} COLUMN EMBEDDING(CATEGORY_HASH(plane, 20000), 16), "
    "EMBEDDING(CATEGORY_HASH(flight, 10000), 16), EMBEDDING(dest, 8), EMBEDDING(carrier, 4) "
    "VALIDATE 0 LABEL arr_delay INTO m",
    "wide": f"SELECT * FROM clicks TO TRAIN DNNLinearCombinedClassifier WITH {HIDDEN} "
    "COLUMN CROSS([c0, c1], 2000000), CROSS([c2, c3], 4000000) FOR wide COLUMN x, "
    + ", ".join(f"EMBEDDING(CATEGORY_ID(c{i}, {IDS}), 16)" for i in range(4, CATEGORIES))
    + " FOR deep VALIDATE 0 LABEL y INTO m",
    "clicks": f"SELECT * FROM clicks TO TRAIN DeepFMClassifier WITH {HIDDEN}, embedding_dim = 16 COLUMN x, "
    + ", ".join(f"CATEGORY_ID(c{i}, {IDS})" for i in range(CATEGORIES))
    + " VALIDATE 0 LABEL y INTO m",
}
PEERS = {  # framework -> (peer, module, target)
    "keras": (("Keras fit", "keras_embeddings", 1.0),),
    "torch": (
        ("nn.Embedding, DataLoader", "torch_embeddings", 1.0),
        ("sparse nn.Embedding, SparseAdam, DataLoader", "torch_sparse_embeddings", 1.0),
    ),
}


def measure(folder: Path, rounds: int, rows: int) -> list[Row]:
    table = []
    with sqlflow_edl.connect("duckdb:") as session:
        make_tables(session, rows)
        for name, statement in STATEMENTS.items():
            for framework in PEERS:
                job = job_of(session, folder / f"{name}-{framework}", in_framework(statement, framework))
                table += _compared(f"{name}, {framework}", job, framework, rounds)
    return table


def _compared(name: str, job: Path, framework: str, rounds: int) -> list[Row]:
    ours: list[float] = []
    theirs: dict[str, list[float]] = {module: [] for _, module, _ in PEERS[framework]}
    for _ in range(rounds):
        ours.append(rate("benchmarks.ours", job, EPOCHS))
        for module, rates in theirs.items():
            rates.append(rate(f"benchmarks.baselines.{module}", job, EPOCHS))
    lines = [Row(f"embeddings: {name}", f"{statistics.median(ours):,.0f} rows/s")]
    for peer, module, aim in PEERS[framework]:
        ratios = [our / their for our, their in zip(ours, theirs[module], strict=True)]
        figure = f"{statistics.median(theirs[module]):,.0f} rows/s"
        lines.append(Row(f"… against {peer}", figure, ratios, least=aim))
    return lines


def in_framework(statement: str, framework: str) -> str:
    return statement.replace("WITH ", f"WITH model.framework = {framework}, ", 1)


def make_tables(session: Session, rows: int) -> None:
    flights = TABLES["flights"]("flights")
    session.source.stage("flights", "bench", 0, 0, flights.to_batches(65_536))
    session.source.commit("flights", "bench", 1)
    for _ in session.run(
        "CREATE TABLE departures AS SELECT hour AS dep_hour, distance, sched_arr_time, tailnum AS plane, flight, dest, "
        f"carrier, arr_delay FROM flights WHERE arr_delay IS NOT NULL LIMIT {rows // 10}"
    ):
        pass
    make_clicks(session, rows // 20)


def make_clicks(session: Session, rows: int) -> None:
    """Make the table `clicks`. Its ids are Zipf-like: few of them often, most of them seldom, like words."""
    ids = ", ".join(f"floor({IDS} * random() ^ 4)::BIGINT AS c{i}" for i in range(CATEGORIES))
    for _ in session.run(
        f"SELECT setseed(0.5); CREATE TABLE clicks AS SELECT random() AS x, {ids}, "
        f"(random() < 0.3)::INTEGER AS y FROM range({rows})"
    ):
        pass
