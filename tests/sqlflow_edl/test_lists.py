"""Lists of ids, with weights or without, as features: from TRAIN to PREDICT, in both frameworks and all models."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import sqlflow_edl
from edl.errors import SQLFlowError
from sqlflow_edl.results import Result
from sqlflow_edl.session import Session

# Even tags are worth one, odd ones minus one; `words` are the same tags as text, and `loads` have them with weights.
TABLE = """CREATE TABLE items AS SELECT
    tags, array_to_string(tags, '|') AS words, i % 7 AS shelf, (i % 10)::DOUBLE AS size,
    array_to_string(list_transform(tags, lambda t: t || ':' || (1 + t % 3)), ' ') AS loads,
    coalesce(list_sum(list_transform(tags, lambda t: (1 - 2 * (t % 2)) * (1 + t % 3))), 0)::DOUBLE AS heavy,
    coalesce(list_sum(list_transform(tags, lambda t: 1 - 2 * (t % 2))), 0)::DOUBLE AS worth,
    coalesce(list_sum(list_transform(tags, lambda t: 1 - 2 * (t % 2))), 0) > 0 AS good
FROM (SELECT i, list_transform(range(i % 4), lambda n: (hash(4 * i + n) % 40)::INT) AS tags FROM range(900) AS n(i))"""
SETTINGS = "train.epoch = 15, train.batch_size = 32, optimizer.learning_rate = 0.01"
BOTH = "EMBEDDING(CONCAT(CATEGORY_ID(shelf, 7), SEQ_CATEGORY_ID(tags, 40)) AS both, 4)"
WIDE = "EMBEDDING(both, 1) FOR wide"
MODELS = {  # model -> the selected columns, the label last, and what they become
    "DNNRegressor": ("size, loads, heavy", "size, EMBEDDING(SPARSE(loads, 40, SPACE, INT, COLON), 4)"),
    "LinearRegressor": ("shelf, words, worth", 'SEQ_CATEGORY_ID(words, 40, delimiter="|"), shelf'),
    "DeepFMClassifier": ("size, shelf, tags, good", "size, CATEGORY_ID(shelf, 7), SEQ_CATEGORY_ID(tags, 40)"),
    "DNNLinearCombinedClassifier": (
        "size, shelf, tags, good",
        f"COMBINE(size, {BOTH}) FOR deep COLUMN {WIDE}",
    ),
}


def run(session: Session, text: str) -> list[Result]:
    return list(session.run(text))


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        with sqlflow_edl.connect("duckdb:") as opened:
            run(opened, TABLE)
            yield opened


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("framework", ["keras", "torch"])  # the slower one: a framework's process stays
def test_what_lists_of_ids_are_worth_is_learned(session: Session, framework: str, model: str) -> None:
    selected, columns = MODELS[model]
    label = selected.rpartition(" ")[2]
    run(
        session,
        f"SELECT {selected} FROM items TO TRAIN {model} "
        f"WITH model.framework = {framework}, {SETTINGS} COLUMN {columns} LABEL {label} INTO m",
    )
    run(session, "SELECT * FROM items TO PREDICT found.guess USING m")
    close = f"abs({label} - guess) < 0.5" if label in ("worth", "heavy") else f"{label} = guess"
    [told] = run(session, f"SELECT avg(({close})::INT) AS right FROM found")
    assert told.to_arrow()["right"][0].as_py() > 0.9


def test_lists_are_described_and_go_on_from_a_model(session: Session) -> None:
    train = (
        "SELECT tags, worth FROM items TO TRAIN DNNRegressor WITH model.framework = torch "
        "COLUMN EMBEDDING(SEQ_CATEGORY_ID(tags, 40), 4, mean) LABEL worth {} INTO {}"
    )
    run(session, train.format("", "first"))
    run(session, train.format("USING first", "second"))
    with pytest.raises(SQLFlowError, match="first@1 has no feature"):
        run(session, train.format("USING first", "third").replace("40", "50"))
    [described] = run(session, "DESCRIBE MODEL second")
    assert "embedding of list of category id, buckets 40" in str(described.to_arrow().to_pylist())


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ("SEQ_CATEGORY_ID(size, 40)", "SEQ_CATEGORY_ID needs lists of whole numbers"),
        ("SEQ_CATEGORY_ID(tags)", "SEQ_CATEGORY_ID lacks its size"),
    ],
)
def test_what_is_no_list_is_named(session: Session, columns: str, message: str) -> None:
    with pytest.raises(SQLFlowError, match=message):
        run(session, f"SELECT * FROM items TO TRAIN DNNRegressor COLUMN {columns} LABEL worth INTO bad")
