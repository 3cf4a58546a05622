"""The hash of texts in SQL equals the hash of the features, bit by bit."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from sqlglot import exp

from edl.features.hashing import combine, hash_texts
from sqlflow_edl.extensions.model_sql.dialects import target_named
from sqlflow_edl.session.session import Session
from tests.databases import Databases, fill

LETTERS = np.array([*"aZ0 '\"\\%;ß日𝄞\n\t"], dtype=object)


@pytest.mark.soak
@pytest.mark.parametrize("database", ["duckdb", "postgres"])
def test_hashes_and_their_mixtures_equal_the_features(database: str, databases: Databases) -> None:
    draw = np.random.default_rng(5)
    texts = [
        "",
        "a",
        "-1",
        "true",
        "x" * 600,
        *("".join(draw.choice(LETTERS, size)) for size in range(1, 60)),
    ]
    target, column = target_named(database), exp.column("c")
    hashed = target.form("hash", column)
    assert hashed is not None
    mixed = target.form("mix", exp.Add(this=target.form("mix", hashed.copy()), expression=hashed.copy()))
    columns = {"hashed": hashed, "mixed": mixed}
    texts_of = [exp.alias_(exp.cast(each, "text"), name) for name, each in columns.items()]
    query = exp.select("id", *texts_of).from_("words").order_by("id")
    with Session(databases.url(database), create=True) as session:
        fill(session, "words", pa.table({"id": range(len(texts)), "c": texts}))
        found = session.source.stream(query.sql(target.sqlglot)).read_all()
    wanted = hash_texts(pa.array(texts))
    assert [int(each) for each in found.column(1).to_pylist()] == wanted.tolist()
    assert [int(each) for each in found.column(2).to_pylist()] == combine([wanted, wanted]).tolist()
