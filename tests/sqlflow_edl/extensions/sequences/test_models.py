"""Models that read ids in their order, from TRAIN to PREDICT in both frameworks."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest

from edl.errors import SQLFlowError
from sqlflow_edl.session.session import Session
from tests.databases import fill
from tests.sessions import open_in_folder

rng = np.random.default_rng(8)
PAIRS = np.array([rng.permutation(12)[:2] for _ in range(900)])
WORDS = pa.table(
    {
        "seq": [f"{first},{last}" for first, last in PAIRS],
        "is_rising": PAIRS[:, 0] < PAIRS[:, 1],  # by the order alone
        "number": rng.normal(size=900),
    }
)
IDS = "SEQ_CATEGORY_ID(seq, 12)"


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    with open_in_folder(tmp_path_factory.mktemp("sequences")) as opened:
        fill(opened, "words", WORDS)
        yield opened


def train(
    session: Session, settings: str, columns: str = f"{IDS}, number", model: str = "SequenceClassifier"
) -> None:
    session.run(
        f"SELECT seq, number, is_rising FROM words TO TRAIN {model} WITH {settings} COLUMN {columns} "
        "LABEL is_rising INTO rising"
    )


@pytest.mark.soak
@pytest.mark.parametrize("framework", ["torch", "keras"])
@pytest.mark.parametrize("layer", ["bilstm", "attention"])
def test_the_order_of_the_ids_decides(session: Session, framework: str, layer: str) -> None:
    train(
        session,
        f"model.framework = {framework}, model.sequence_layer = {layer}, optimizer.learning_rate = 0.01, "
        "train.epochs = 25, model.stack_units = [16]",
    )
    found = session.run("SELECT * FROM words TO PREDICT USING rising")[-1].to_arrow()
    assert np.mean(found["is_rising"].to_numpy() == WORDS["is_rising"].to_numpy()) > 0.9


def test_empty_and_long_sequences_have_a_prediction(session: Session) -> None:
    train(session, "model.framework = torch, train.epochs = 1, model.max_length = 3", IDS)
    rows = session.run(
        "SELECT s AS seq, 0.5 AS number FROM (VALUES (NULL), (''), ('1,2,3,4,5,6'), ('99')) AS t(s) "
        "TO PREDICT USING rising"
    )[-1].to_arrow()
    assert rows["is_rising"].null_count == 0


def test_the_statement_of_sqlflow_is_planned_as_it_is_written(session: Session) -> None:
    job = session.compile(
        "SELECT seq, is_rising FROM words TO TRAIN sqlflow_models.StackedBiLSTMClassifier "
        "WITH model.n_classes = 2, model.stack_units = [10, 10] "
        'COLUMN EMBEDDING(SEQ_CATEGORY_ID(seq, 12, ","), 32, sum) LABEL is_rising INTO m'
    )
    [job] = job if isinstance(job, list) else [job]
    assert "SequenceClassifier" in str(job)


def test_columns_without_a_sequence_are_refused(session: Session) -> None:
    with pytest.raises(SQLFlowError, match="the model reads sequences of ids, and no column is one"):
        train(session, "train.epochs = 1", "number")


def test_other_models_read_no_sequence(session: Session) -> None:
    with pytest.raises(SQLFlowError, match="SEQUENCE needs a model that reads ids in their order"):
        train(session, "train.epochs = 1", f"SEQUENCE({IDS}, 3)", "DNNClassifier")
