"""Rankings from TRAIN to PREDICT: groups stay whole, and the model is the library's own on the same rows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import lightgbm
import numpy as np
import pyarrow as pa
import pytest
from sklearn.metrics import ndcg_score

from edl import data, spec
from edl.errors import SQLFlowError
from edl.jobs import job_folder
from edl.models.archive import read_archive
from sqlflow_edl.session.observer import Silent
from sqlflow_edl.session.pinning import pin_and_fit
from sqlflow_edl.session.session import Session
from tests.databases import fill

ROWS, QUERIES = 1500, 90
rng = np.random.default_rng(13)
QUERY = rng.integers(0, QUERIES, ROWS)
FEATURES = rng.normal(size=(ROWS, 3))
USEFUL = FEATURES[:, 0] - np.abs(FEATURES[:, 1]) + 0.4 * rng.normal(size=ROWS)
SEARCHES = pa.table(
    {
        "search": [f"s{query}" for query in QUERY],
        "customer": QUERY % 20,
        "a": FEATURES[:, 0],
        "b": pa.array([None if i % 30 == 0 else value for i, value in enumerate(FEATURES[:, 1])]),
        "c": FEATURES[:, 2],
        "relevance": np.digitize(USEFUL, [0.0, 0.8, 1.5]),
        "asked": np.arange(ROWS) % 7,
    }
)
COLUMNS = "SELECT search, a, b, c, relevance FROM searches"
TRAIN = "TO TRAIN BoostedTreesRanker WITH train.group_column = search, num_boost_round = 20"


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    folder = tmp_path_factory.mktemp("ranking")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(folder))
        with Session(f"duckdb:///{folder}/ranking.duckdb", create=True) as opened:
            fill(opened, "searches", SEARCHES)
            yield opened


def last(session: Session, text: str) -> pa.Table:
    return list(session.run(text))[-1].to_arrow()


def pinned(session: Session, text: str) -> tuple[pa.Table, spec.Rows]:
    """The rows of a training, in their order."""
    [statement] = session.parse(text)
    job = job_folder.create("train", statement.text)
    found = pin_and_fit(session.source, session.compiler.training_plan(statement), job, Silent())
    reader = data.open_reader(found.pinned, job.rows)
    return pa.Table.from_batches(list(reader.read(0, reader.rows))), found.spec.rows


@pytest.mark.soak
def test_the_model_is_the_one_of_the_library_on_the_same_rows(session: Session, tmp_path: Path) -> None:
    text = f"{COLUMNS} {TRAIN} LABEL relevance VALIDATE 0.2 INTO ranker"
    rows, counted = pinned(session, text)
    training, validation = rows[: counted.training], rows[counted.training :]
    searches = [set(part["search"].to_pylist()) for part in (training, validation)]
    assert not searches[0] & searches[1]
    assert len(searches[1]) == pytest.approx(QUERIES / 5, abs=4)
    query = COLUMNS.replace("search, ", "")
    predicted = last(
        session, f"{text}; {query} TO PREDICT order_of.score USING ranker; SELECT score FROM order_of"
    )
    session.registry.load("ranker", tmp_path / "ranker")
    archive = read_archive(tmp_path / "ranker")
    booster = lightgbm.Booster(model_str=archive.weights()["booster"].tobytes().decode())
    matrix = np.column_stack([SEARCHES[name].to_numpy() for name in "abc"])
    np.testing.assert_allclose(np.sort(predicted["score"]), np.sort(booster.predict(matrix)), rtol=1e-12)
    order = np.lexsort((np.arange(counted.training), _numbers(training["search"])))
    by_group = training.take(order)
    sizes = np.unique(_numbers(by_group["search"]), return_counts=True)[1]
    rounds = booster.current_iteration()
    by_hand = lightgbm.train(
        {
            "objective": "lambdarank",
            "seed": 0,
            "deterministic": True,
            "force_row_wise": True,
            "verbosity": -1,
        },
        lightgbm.Dataset(_matrix(by_group), by_group["relevance"].to_numpy(), group=sizes),
        rounds,
    )
    np.testing.assert_allclose(by_hand.predict(matrix), booster.predict(matrix), rtol=1e-9, atol=1e-12)
    truth, scores = validation["relevance"].to_numpy(), booster.predict(_matrix(validation))
    of = np.array(validation["search"].to_pylist())
    each = [
        ndcg_score([2.0 ** truth[own] - 1], [scores[own]], k=10)
        for own in (of == search for search in searches[1])
        if truth[own].any()
    ]
    assert archive.metrics["ndcg@10"] == pytest.approx(np.mean(each), rel=1e-9)
    assert archive.metrics["loss"] == pytest.approx(1 - np.mean(each), rel=1e-9)


def _matrix(rows: pa.Table) -> np.ndarray:
    return np.column_stack([rows[name].to_numpy() for name in "abc"])


def _numbers(groups: pa.ChunkedArray) -> np.ndarray:
    """The order in which the adapter sorts groups that are texts."""
    from edl.features.hashing import hash_texts

    return (hash_texts(groups.combine_chunks()) >> np.uint64(11)).astype(np.int64)


@pytest.mark.parametrize("name", ["XGBRanker", pytest.param("xgboost.gbtree", marks=pytest.mark.soak)])
def test_a_ranking_is_evaluated_explained_and_described(session: Session, name: str) -> None:
    text = TRAIN.replace("BoostedTreesRanker", name) + ", objective = 'rank:pairwise'"
    of_columns, found, described = (
        result.to_arrow()
        for result in list(
            session.run(
                f"""{COLUMNS} {text} LABEL relevance INTO ranks;
                {COLUMNS} TO EXPLAIN ranks; {COLUMNS} TO EVALUATE ranks; DESCRIBE MODEL ranks"""
            )
        )[1:]
    )
    assert of_columns["feature"].to_pylist()[0] in ("a", "b")
    assert found.column_names == ["loss", "ndcg@10", "map"]
    assert found["ndcg@10"][0].as_py() > 0.9
    assert found["loss"][0].as_py() == pytest.approx(1 - found["ndcg@10"][0].as_py())
    rows = {row["name"]: row["value"] for row in described.to_pylist() if row["section"] == "label"}
    assert rows == {"relevance": "a relevance, which orders the rows of each search"}


@pytest.mark.soak
def test_a_worker_trains_the_same_ranking(session: Session, tmp_path: Path) -> None:
    for name, more in (("here", ""), ("there", ", train.num_workers = 1")):
        last(session, f"{COLUMNS} {TRAIN}{more} LABEL relevance INTO {name}")
        session.registry.load(name, tmp_path / name)
    here, there = (read_archive(tmp_path / name) for name in ("here", "there"))
    assert here.weights()["booster"].tobytes() == there.weights()["booster"].tobytes()
    assert here.metrics == pytest.approx(there.metrics)


@pytest.mark.soak
@pytest.mark.parametrize("name", ["BoostedTreesRanker", "XGBRanker"])
def test_two_workers_learn_a_ranking_together(session: Session, name: str) -> None:
    text = TRAIN.replace("BoostedTreesRanker", name)
    found = []
    for more in ("", ", train.num_workers = 2"):
        *_, measured = session.run(f"{COLUMNS} {text}{more} LABEL relevance INTO m; {COLUMNS} TO EVALUATE m")
        found.append(measured.to_arrow()["ndcg@10"][0].as_py())
    assert found[1] == pytest.approx(found[0], abs=0.03)


def test_larger_groups_may_divide_the_rows(session: Session) -> None:
    query = "SELECT search, customer, a, relevance FROM searches"
    text = f"{query} {TRAIN}, validation.column = customer LABEL relevance INTO m"
    rows, counted = pinned(session, text)
    for column in ("customer", "search"):
        sides = (rows[: counted.training][column], rows[counted.training :][column])
        assert not set(sides[0].to_pylist()) & set(sides[1].to_pylist())


@pytest.mark.soak
def test_validation_rows_of_a_query_have_groups_too(session: Session) -> None:
    validated = f"VALIDATE ON ({COLUMNS} WHERE customer < 5)"
    last(
        session,
        f"{COLUMNS} WHERE customer >= 5 {TRAIN} LABEL relevance {validated} INTO of_others; SHOW MODELS",
    )
    with pytest.raises(SQLFlowError, match="the validation rows lack the column search"):
        session.compile(
            f"{COLUMNS} {TRAIN} LABEL relevance VALIDATE ON (SELECT a, b, c, relevance FROM searches) INTO m"
        )


def test_the_group_must_be_selected_to_evaluate(session: Session) -> None:
    last(session, f"{COLUMNS} {TRAIN} LABEL relevance INTO alone; SHOW MODELS")
    with pytest.raises(SQLFlowError, match="the query lacks the column search, of the groups"):
        last(session, "SELECT a, b, c, relevance FROM searches TO EVALUATE alone")


@pytest.mark.parametrize(
    ("name", "framework", "loss"),
    [
        ("LGBMRanker WITH qid = search", "lightgbm", "lambdarank"),
        ("xgboost.XGBRanker WITH group = search", "xgboost", "lambdarank"),
        ("BoostedTreesRanker WITH qid = search, loss = 'rank:pairwise'", "xgboost", "pairwise"),
        ("BoostedTrees WITH qid = search, loss = 'rank:ndcg'", "lightgbm", "lambdarank"),
        ("xgboost.gbtree WITH objective = 'rank:pairwise', qid = search", "xgboost", "pairwise"),
    ],
)
def test_rankers_have_their_names_in_other_systems(
    session: Session, name: str, framework: str, loss: str
) -> None:
    [found] = session.compile(f"{COLUMNS} TO TRAIN {name} LABEL relevance INTO m")
    assert (found.spec.model.name, found.spec.framework) == ("BoostedTreesRanker", framework)
    assert found.spec.loss.name == loss
    assert found.spec.label == spec.RankingLabel("relevance", "search")
    assert found.spec.columns == ("a", "b", "c")


def test_the_plan_says_why_the_library_is_not_the_usual_one(session: Session) -> None:
    text = "BoostedTreesRanker WITH qid = search, loss = 'rank:pairwise' LABEL relevance INTO m"
    planned = last(session, f"EXPLAIN {COLUMNS} TO TRAIN {text}").to_pylist()
    [why] = [row["why"] for row in planned if row["name"] == "framework"]
    assert why == "lightgbm has no loss pairwise"


@pytest.mark.soak
def test_a_ranking_grows_beyond_another(session: Session, tmp_path: Path) -> None:
    first = f"{COLUMNS} {TRAIN} LABEL relevance VALIDATE 0 INTO short"
    more = f"{COLUMNS} {TRAIN} LABEL relevance VALIDATE 0 USING short INTO long"
    last(session, f"{first}; {more}; SHOW MODELS")
    session.registry.load("long", tmp_path / "long")
    archive = read_archive(tmp_path / "long")
    assert archive.weights()["booster"].tobytes().count(b"\nTree=") == 40
