"""Rows of EVALUATE that trained the model: counted, left out, or not known; no query of other people is run for it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa
import pytest

from edl.errors import SemanticError
from edl.jobs.trials import Trial
from edl.models.archive import read_archive
from edl.spec import Member
from sqlflow_edl.analysis.rows.repeatable import is_repeatable
from sqlflow_edl.session.comparison import _in_both, trained_rows
from sqlflow_edl.session.session import Session
from tests.databases import DIALECTS, Databases, fill
from tests.edl.models.conftest import SPEC, write

ROWS = 120
DRAW = np.random.default_rng(46)
HOUSES = pa.table(
    {
        "id": range(ROWS),
        "x": DRAW.normal(size=ROWS),
        "city": [f"c{i % 3}" for i in range(ROWS)],
        "price": DRAW.normal(size=ROWS),
    }
)
TREES = "TO TRAIN BoostedTreesRegressor WITH train.num_boost_round = 2"
UNSEEN = "WITH validation.unseen_only = true"


OTHERS = [pytest.param(each, marks=pytest.mark.soak) for each in DIALECTS if each != "duckdb"]


@pytest.fixture(scope="module", params=["duckdb", *OTHERS])
def session(
    request: pytest.FixtureRequest, databases: Databases, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Session]:
    """Models of a table, and of some of its rows; `m` has 12 validation rows."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        with Session(databases.url(request.param), create=True) as opened:
            fill(opened, "houses", HOUSES)
            fill(opened, "others", HOUSES)
            yield opened


def trained(session: Session, name: str, query: str = "SELECT * FROM houses") -> dict[str, float | None]:
    [result] = session.run(f"{query} {TREES} LABEL price VALIDATE 0.1 INTO {name}")
    return dict(result.figures or {})


def evaluated(session: Session, text: str) -> tuple[dict[str, float | None], list[str]]:
    [result] = session.run(text)
    return dict(result.figures or {}), [note for note in result.notes if "trained" in note]


def test_the_rows_that_trained_the_model_are_counted_and_left_out(session: Session) -> None:
    of_validation = trained(session, "m")
    _, [said] = evaluated(session, "SELECT * FROM houses TO EVALUATE m")
    assert said == (
        "108 of these 120 rows trained m@1, so the metrics are better than on new rows; "
        "WITH validation.unseen_only = true measures the others alone"
    )
    unseen, [said] = evaluated(session, f"SELECT * FROM houses TO EVALUATE m {UNSEEN}")
    assert said == "108 of 120 rows trained m@1 and are left out"
    assert unseen == pytest.approx(of_validation, rel=1e-5)


def test_rows_are_compared_whatever_the_order_and_the_columns_of_the_query(session: Session) -> None:
    trained(session, "some", "SELECT id, x, city, price FROM houses WHERE id < 60")
    query = "SELECT price, x, 7 AS more, city, id FROM houses WHERE id >= {} ORDER BY x"
    _, [said] = evaluated(session, f"{query.format(30)} TO EVALUATE some")
    assert 20 <= int(said.split(" of these 90 rows")[0]) <= 30
    _, [said] = evaluated(session, f"{query.format(60)} TO EVALUATE some")
    assert said == "none of these 60 rows trained some@1"
    _, said_nothing = evaluated(session, f"{query.format(60)} TO EVALUATE some {UNSEEN}")
    assert not said_nothing


@pytest.mark.soak
@pytest.mark.parametrize(
    "model", ["KMeans WITH model.n_clusters = 2", "IsolationForest WITH model.n_estimators = 2"]
)
def test_rows_of_clusters_and_anomalies_are_counted_without_a_label(session: Session, model: str) -> None:
    session.run(f"SELECT x, price FROM houses TO TRAIN {model} VALIDATE 0.1 INTO groups")
    [note] = evaluated(session, "SELECT x, price FROM houses TO EVALUATE groups")[1]
    assert note.startswith("108 of these 120 rows trained groups@")


def test_rows_of_another_table_are_not_compared(session: Session) -> None:
    trained(session, "here")
    assert evaluated(session, "SELECT * FROM others TO EVALUATE here")[1] == []
    _, [said] = evaluated(session, f"SELECT * FROM others TO EVALUATE here {UNSEEN}")
    assert said == "here@1 was trained on rows of other tables, so all rows are measured"


@pytest.mark.soak
def test_without_a_column_of_the_training_it_is_not_known(session: Session) -> None:
    trained(session, "typed")
    _, [said] = evaluated(
        session, "SELECT id, x, city, price AS paid FROM houses TO EVALUATE typed LABEL paid"
    )
    assert "trained typed@1 is not known: the query lacks columns of its training" in said


def test_of_a_table_that_has_changed_it_is_not_known(session: Session) -> None:
    fill(session, "growing", HOUSES)
    trained(session, "before", "SELECT * FROM growing")
    session.source.stage("growing", "changed", 0, 0, HOUSES.slice(1).to_reader())
    session.source.commit("growing", "changed", 1)
    _, [said] = evaluated(session, "SELECT * FROM growing TO EVALUATE before")
    assert said == (
        "how many of these 119 rows trained before@1 is not known: its query yields other rows than in its training"
    )
    with pytest.raises(SemanticError, match="is not known: its query yields other rows") as caught:
        evaluated(session, f"SELECT * FROM growing TO EVALUATE before {UNSEEN}")
    assert caught.value.span is not None


@pytest.mark.soak
def test_nothing_is_left_of_rows_that_all_trained_the_model(session: Session) -> None:
    list(session.run(f"SELECT * FROM houses {TREES} LABEL price VALIDATE 0 INTO every"))
    _, [said] = evaluated(session, "SELECT * FROM houses TO EVALUATE every")
    assert said == "all of these 120 rows trained every@1, so the metrics are better than on new rows"
    with pytest.raises(SemanticError, match="all of these 120 rows trained every@1"):
        evaluated(session, f"SELECT * FROM houses TO EVALUATE every {UNSEEN}")


@pytest.mark.soak
def test_workers_measure_unseen_rows_too(session: Session) -> None:
    alone = trained(session, "shared")
    found, _ = evaluated(
        session, f"SELECT * FROM houses TO EVALUATE shared {UNSEEN}, evaluate.num_workers = 1"
    )
    assert found == pytest.approx(alone, rel=1e-5)


def test_equal_rows_count_as_often_as_they_were_trained_on() -> None:
    known, own = (np.array(each, np.uint64) for each in ([7, 7, 9], [7, 5, 7, 9, 7]))
    assert _in_both(own, known).tolist() == [True, False, True, True, False]
    assert not _in_both(own, known[:0]).any()
    assert not len(_in_both(own[:0], known))


@pytest.mark.parametrize(("refit", "folds", "count"), [(None, 1, 6), (0, 1, 6), (9, 1, 10), (None, 4, 8)])
def test_members_of_an_ensemble_are_trained_on_the_rows_of_other_folds_or_on_all(
    refit: int | None, folds: int, count: int, tmp_path: Path
) -> None:
    rows = msgspec.structs.replace(SPEC.rows, total=10, training=6, validation=2)
    spec = msgspec.structs.replace(SPEC, rows=rows, members=(Member(1.0, SPEC, folds),))
    trials = [Trial(1, "DNN", "", weight=1.0, refit=refit), Trial(2, "DNN", "", refit=9)]
    assert trained_rows(read_archive(write(tmp_path / "m.zip", spec=spec, trials=trials)), 10) == count


@pytest.mark.parametrize(
    ("stored", "dialect"),
    [
        ("SELECT * FROM houses", "duckdb"),
        ("SELECT x, LN(price) AS price FROM main.houses WHERE id % 4 > 0 AND city IN ('a', 'b')", "duckdb"),
        ("SELECT CAST(x AS DOUBLE) AS x FROM `houses` ORDER BY id LIMIT 9", "mysql"),
        ("SELECT * FROM houses WHERE isfinite(price) AND NOT isnan(x) AND left(city, 1) = 'c'", "duckdb"),
        ("SELECT h.x, count(*) AS n FROM houses AS h JOIN cities USING (city) GROUP BY h.x", "postgres"),
    ],
)
def test_queries_of_the_same_tables_that_change_nothing_are_run_again(stored: str, dialect: str) -> None:
    assert is_repeatable(stored, "SELECT * FROM houses, cities", dialect)


@pytest.mark.parametrize(
    ("stored", "dialect"),
    [
        ("SELECT * FROM secrets", "duckdb"),
        ("SELECT * FROM houses WHERE id IN (SELECT id FROM secrets)", "duckdb"),
        ("SELECT * FROM houses; DROP TABLE houses", "duckdb"),
        ("DROP TABLE houses", "duckdb"),
        ("SELECT * FROM read_csv('/etc/passwd')", "duckdb"),
        ("SELECT * FROM '/etc/passwd'", "duckdb"),
        ("SELECT *, getenv('HOME') AS h FROM houses", "duckdb"),
        ("SELECT *, nextval('s') AS n FROM houses", "postgres"),
        ("SELECT *, grant_all() AS n FROM houses", "postgres"),
        ("SELECT * INTO stolen FROM houses", "postgres"),
        ("SELECT * FROM houses FOR UPDATE", "postgres"),
        ("WITH gone AS (DELETE FROM houses RETURNING *) SELECT * FROM gone", "postgres"),
        ("SELECT * FROM houses /*! INTO OUTFILE '/tmp/x' */", "mysql"),
        ("SELECT @a := 1 FROM houses", "mysql"),
        ("SELECT SLEEP(99) FROM houses", "mysql"),
        ("", "duckdb"),
    ],
)
def test_other_queries_in_a_stored_model_are_not_run(stored: str, dialect: str) -> None:
    assert not is_repeatable(stored, "SELECT * FROM houses", dialect)


def test_the_query_of_the_statement_itself_is_run_whatever_it_is() -> None:
    assert is_repeatable("SELECT f(x) FROM houses", "SELECT f(x) FROM houses", "postgres")


def test_an_evaluation_is_compared_with_a_guess_over_its_own_rows(session: Session) -> None:
    rows = "SELECT x, price, id % 4 = 0 AS rare, 1 + id % 4 AS w FROM houses WHERE id < 100"
    for name, weight in (("plain", ""), ("weighed", ", train.weight_column = 'w'")):
        training = f"{rows} TO TRAIN BoostedTreesClassifier WITH train.num_boost_round = 2"
        list(session.run(f"{training}{weight} LABEL rare INTO {name}"))
    [plain] = session.run(f"{rows} TO EVALUATE plain")
    [weighed] = session.run(f"{rows} TO EVALUATE weighed")
    most = "0" if session.dialect in ("sqlite", "mysql") else "FALSE"
    assert f"of 100 rows; always {most}: 75.0 %." in plain.verdict
    assert f"of 100 rows; always {most}: 90.0 %." in weighed.verdict  # 225 of 250
    trained(session, "priced")
    [result] = session.run("SELECT * FROM houses TO EVALUATE priced")
    assert result.figures is not None
    rmse, r2 = result.figures["rmse"], result.figures["r2"]
    assert isinstance(rmse, float)
    assert isinstance(r2, float)
    assert result.verdict.startswith(f"Off by {rmse:.4g} (root mean square) on 120 rows; always their mean: ")
