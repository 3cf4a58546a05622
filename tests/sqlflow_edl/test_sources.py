"""Statements all the way on every source: the same rows and the same statement give the same model."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from contextlib import ExitStack
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from sklearn import datasets

import sqlflow_edl
from edl import data
from edl.errors import SemanticError, SourceError
from edl.jobs import job_folder
from edl.models.archive import read_archive
from sqlflow_edl.cli.main import main
from sqlflow_edl.reports.result import Result
from sqlflow_edl.session.session import Session
from tests.databases import Databases, fill, spelt
from tests.mariadb import Server

SETTINGS = "model.framework = torch, model.hidden_units = [8], model.members = 1, train.epoch = 5, seed = 3"
TRAIN = f"""
SELECT x0, x1, x2, x3, kind FROM iris WHERE id % 3 > 0
TO TRAIN DNNClassifier WITH {SETTINGS} LABEL kind INTO flowers.small;
"""
TRAIN_ODD = f"""
SELECT * FROM odd TO TRAIN DNNClassifier WITH {SETTINGS}
COLUMN BUCKETIZE(price, 4), MONTH(day), EMBEDDING(VOCABULARIZE(`Group`), 3), `order` LABEL verdict INTO odd.verdicts;
"""
KINDS = ("duckdb", "mysql", "sqlite", "csv", "postgres", "maxcompute")
SOURCES = [*KINDS[:2], *(pytest.param(kind, marks=pytest.mark.soak) for kind in KINDS[2:])]
ON_DUCKDB = [KINDS[0], *(pytest.param(kind, marks=pytest.mark.soak) for kind in KINDS[1:])]
CLASSES = ("No", "größe 表 😀", "no", "yes, really ")


def write_iris(path: Path) -> None:
    iris = datasets.load_iris()
    lines = (
        ",".join(map(str, [i, *row, iris.target_names[kind]]))
        for i, (row, kind) in enumerate(zip(iris.data, iris.target, strict=True))
    )
    path.write_text("\n".join(["id,x0,x1,x2,x3,kind", *lines, ""]), encoding="utf-8")


def odd() -> pa.Table:
    """Reserved words as names, every type with NULL in it, texts long and empty, labels that differ in case alone."""
    rows = range(240)
    day, moment = dt.date(2024, 2, 1), dt.datetime(2024, 2, 29, 23, 30)
    return pa.table(
        {
            "id": rows,
            "order": pa.array([None if i % 11 == 0 else i % 9 - 4 for i in rows], pa.int32()),
            "Group": [(None, "", "a'b", "größe\n表", "A'B")[i % 5] for i in rows],
            "price": pa.array([None if i % 7 == 0 else Decimal(i) / 4 for i in rows], pa.decimal128(9, 2)),
            "day": [None if i % 13 == 0 else day + dt.timedelta(days=i) for i in rows],
            "seen": [None if i % 17 == 0 else moment + dt.timedelta(hours=i) for i in rows],
            "open": [(True, False, None)[i % 3] for i in rows],
            "story": [f"{i} " + "lang 😀 " * 90 if i % 2 else "" for i in rows],
            "verdict": [CLASSES[i % 4] for i in rows],
        }
    )


@pytest.fixture(scope="module")
def sessions(tmp_path_factory: pytest.TempPathFactory, databases: Databases) -> Iterator[Sessions]:
    folder = tmp_path_factory.mktemp("sources")
    write_iris(folder / "iris.csv")
    with ExitStack() as opened:
        yield Sessions(folder, databases, opened)


class Sessions(dict[str, Session]):
    """The same tables in each source, and the same statements run on them, once the source is asked for."""

    def __init__(self, folder: Path, databases: Databases, opened: ExitStack) -> None:
        super().__init__()
        self._folder = folder
        self._databases = databases
        self._opened = opened

    def __missing__(self, kind: str) -> Session:
        iris = f"csv:{self._folder}/iris.csv"
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("XDG_STATE_HOME", str(self._folder / "state"))
            url = iris if kind == "csv" else self._databases.url(kind)
            session = self[kind] = self._opened.enter_context(sqlflow_edl.connect(url, create=True))
            if kind != "csv":
                with data.connect(iris) as source:
                    fill(session, "iris", source.stream("SELECT * FROM iris").read_all())
            fill(session, "odd", odd())
            list(session.run(TRAIN + TRAIN_ODD))
        return session


@pytest.fixture(params=SOURCES)
def session(request: pytest.FixtureRequest, sessions: Sessions) -> Session:
    return sessions[request.param]


def run(session: Session, text: str) -> list[Result]:
    return list(session.run(text))


def table(session: Session, text: str) -> pa.Table:
    return run(session, text)[-1].to_arrow()


# Models ------------------------------------------------------------------------------------------------------


@pytest.mark.soak
@pytest.mark.parametrize("model", ["flowers.small", "odd.verdicts"])
@pytest.mark.parametrize("other", SOURCES[1:-1])
def test_the_same_statement_gives_the_same_weights(
    sessions: Sessions, other: str, model: str, tmp_path: Path
) -> None:
    """But on MaxCompute, which puts the rows into another order (docs/maxcompute.md)."""
    weights = []
    for kind in ("duckdb", other):
        sessions[kind].registry.load(model, tmp_path / "model.zip")
        weights.append(read_archive(tmp_path / "model.zip").weights())
    assert weights[0]
    assert all(np.array_equal(weights[0][name], weights[1][name]) for name in weights[0])


@pytest.mark.soak
def test_a_model_knows_its_statement_and_its_rows(session: Session, tmp_path: Path) -> None:
    session.registry.load("flowers.small", tmp_path / "model.zip")
    found = read_archive(tmp_path / "model.zip")
    assert found.spec.rows.training + found.spec.rows.validation == 100
    assert found.spec.rows.pinned
    assert found.lineage.seed == 3
    assert len(found.curve) == 5
    assert found.spec.statement == TRAIN.strip().rstrip(";")
    described = table(session, "DESCRIBE MODEL flowers.small@1").to_pylist()
    values = {(row["section"], row["name"]): row["value"] for row in described}
    assert values["data", "kind"].startswith("91 rows, no NULL, 3 different, most often ")


@pytest.mark.soak
def test_training_goes_on_from_a_model_and_makes_a_version(session: Session) -> None:
    """With steps of no size, so that both versions predict the same."""
    [result] = run(
        session,
        "SELECT * FROM iris TO TRAIN DNNClassifier WITH epochs = 1, lr = 0"
        " VALIDATE ON (SELECT * FROM iris WHERE id < 9) LABEL kind USING flowers.small@1 INTO flowers.more",
    )
    assert result.model == "flowers.more@1"
    rows = "SELECT * FROM iris WHERE id % 50 = 7 ORDER BY id TO PREDICT USING"
    first, second = (table(session, f"{rows} {name}") for name in ("flowers.small@1", "flowers.more"))
    assert first.num_rows == 3
    assert first.equals(second)


# Predictions and figures -------------------------------------------------------------------------------------


def test_a_model_predicts_into_a_table_and_is_measured(session: Session) -> None:
    found = table(
        session,
        "SELECT * FROM iris WHERE id % 3 = 0 ORDER BY id TO PREDICT guesses.guess USING flowers.small;"
        "SELECT id, kind, guess, guess_confidence FROM guesses",
    ).to_pandas()
    assert found["id"].tolist() == list(range(0, 150, 3))
    assert found["guess_confidence"].between(1 / 3, 1).all()
    [measured] = run(session, "SELECT * FROM iris WHERE id % 3 = 0 TO EVALUATE flowers.small")
    assert measured.figures is not None
    assert measured.figures["accuracy"] == pytest.approx((found["kind"] == found["guess"]).mean())


@pytest.mark.soak
def test_every_type_and_any_text_comes_back_from_a_result_table_in_the_querys_order(session: Session) -> None:
    """Where NULL is in that order is the database's own affair."""
    rows = "SELECT * FROM odd ORDER BY price, id"
    given = table(session, rows)
    found = table(session, f"{rows} TO PREDICT judged.guess USING odd.verdicts; SELECT * FROM judged")
    assert found.num_rows == 240
    assert found.select(given.column_names).to_pylist() == given.to_pylist()
    [measured] = run(session, "SELECT * FROM odd TO EVALUATE odd.verdicts")
    right = np.mean([row["guess"] == row["verdict"] for row in found.to_pylist()])
    assert measured.figures is not None
    assert measured.figures["accuracy"] == pytest.approx(right)


@pytest.mark.soak
def test_the_columns_of_the_classes_have_names_that_the_database_takes(session: Session) -> None:
    names = ["No", "größe 表 😀", "no_2", "yes, really"]
    if session.dialect == "mysql":  # no characters beyond 16 bits
        names[1] = "größe 表 _"
    elif session.dialect == "maxcompute":  # letters, digits and _, all of them small
        names = ["no", "größe_表__", "no_2", "yes__really_"]
    found = table(
        session,
        "SELECT * FROM odd WHERE id < 5 TO PREDICT named.guess USING odd.verdicts; SELECT * FROM named",
    )
    assert found.column_names[-6:] == ["guess", "guess_confidence", *(f"guess_prob_{name}" for name in names)]


def test_predictions_keep_the_other_columns_and_the_order(session: Session) -> None:
    found = table(
        session,
        "SELECT id, x3, x2, x1, x0, 'kept' AS more FROM iris ORDER BY id DESC TO PREDICT USING flowers.small",
    )
    assert found.column_names[:6] == ["id", "x3", "x2", "x1", "x0", "more"]
    assert found.column_names[6:] == [
        "kind",
        "kind_confidence",
        "kind_prob_setosa",
        "kind_prob_versicolor",
        "kind_prob_virginica",
    ]
    assert found["id"].to_pylist() == list(range(149, -1, -1))
    assert found["more"].unique().to_pylist() == ["kept"]


@pytest.mark.soak
def test_an_evaluation_goes_into_a_table_with_a_column_per_figure(session: Session) -> None:
    found = table(
        session,
        "SELECT x0, x1, x2, x3, kind AS truth FROM iris TO EVALUATE flowers.small LABEL truth INTO quality;"
        "SELECT * FROM quality",
    )
    assert found.column_names == ["loss", "accuracy", "log_loss", "f1"]
    assert found.num_rows == 1


@pytest.mark.soak
def test_which_classes_are_taken_for_which_is_counted(session: Session) -> None:
    text = "SELECT * FROM iris TO EVALUATE flowers.small WITH evaluate.report = confusion_matrix"
    [result] = run(session, text)
    found = result.to_arrow()
    assert found.column_names == ["kind", "predicted", "row_count", "share"]
    assert (found.num_rows, sum(found["row_count"].to_pylist())) == (9, 150)
    right = [row["row_count"] for row in found.to_pylist() if row["kind"] == row["predicted"]]
    assert result.figures
    assert result.figures["accuracy"] == pytest.approx(sum(right) / 150)
    [result] = run(session, f"{text} INTO taken")
    assert result.rows == 9
    assert (
        table(session, "SELECT kind, predicted, row_count, share FROM taken").to_pydict() == found.to_pydict()
    )


@pytest.mark.soak
def test_a_model_is_explained_by_the_columns_that_it_reads(session: Session) -> None:
    [result] = run(session, "SELECT * FROM iris TO EXPLAIN flowers.small WITH explain.samples = 4")
    found = result.to_arrow().to_pydict()
    assert result.figures == dict(zip(found["feature"], found["importance"], strict=True))
    assert sorted(found["feature"]) == ["x0", "x1", "x2", "x3"]
    assert found["importance"] == sorted(found["importance"], reverse=True)
    assert sum(found["share"]) == pytest.approx(1.0)
    settings = "explain.samples = 4, explain.level = model"
    [result] = run(session, f"SELECT * FROM iris TO EXPLAIN flowers.small WITH {settings} INTO weights")
    assert result.rows == 4
    assert table(session, "SELECT feature, importance, share FROM weights").to_pydict() == found


def test_rows_are_explained_whatever_is_in_them(session: Session) -> None:
    text = "SELECT * FROM odd WHERE id < 40 TO EXPLAIN odd.verdicts WITH explain.samples = 3"
    [result] = run(session, f"{text}, summary.plot_type = bar USING TreeExplainer INTO reasons")
    assert "summary.plot_type, USING TreeExplainer have no effect" in result.notes[0]
    found = table(session, "SELECT * FROM reasons ORDER BY id")
    names = [name for name in found.column_names if name.endswith("_shap")]
    assert len(names) == 7  # every column but the label and the id
    total = np.sum([found[name].to_numpy() for name in (*names, "verdict_base")], axis=0)
    assert total == pytest.approx(found["verdict_confidence"].to_numpy())
    assert found["id"].to_pylist() == list(range(40))


def test_null_and_unseen_values_are_predicted(session: Session) -> None:
    found = table(
        session, "SELECT NULL AS x0, NULL AS x1, 5 AS x2, -1e300 AS x3 TO PREDICT USING flowers.small"
    )
    assert found["kind"].to_pylist()[0] in ("setosa", "versicolor", "virginica")
    quote = "`" if session.dialect in ("mysql", "maxcompute") else '"'
    found = table(
        session,
        f"SELECT id, NULL AS {quote}order{quote}, 'new' AS {quote}Group{quote}, NULL AS price, NULL AS day, seen,"
        " NULL AS open, story FROM odd WHERE id < 3 TO PREDICT USING odd.verdicts",
    )
    assert set(found["verdict"].to_pylist()) <= set(CLASSES)


def test_no_rows_predict_no_rows(session: Session) -> None:
    found = table(
        session,
        "SELECT * FROM iris WHERE id < 0 TO PREDICT none.kind USING flowers.small; SELECT * FROM none",
    )
    assert found.num_rows == 0
    assert "kind_confidence" in found.column_names


def test_columns_are_found_whatever_their_case(session: Session) -> None:
    query = "SELECT x0 AS X0, x1, x2 AS X2, x3 FROM iris WHERE id < 3"
    found = table(session, f"{query} TO PREDICT USING flowers.small")
    assert found.num_rows == 3
    assert found.column_names[:4] == [spelt("X0", session), "x1", spelt("X2", session), "x3"]


@pytest.mark.soak
def test_a_result_replaces_the_one_before_it(session: Session) -> None:
    for rows in (150, 7):
        run(session, f"SELECT * FROM iris WHERE id < {rows} TO PREDICT again.kind USING flowers.small")
    assert table(session, "SELECT * FROM again").num_rows == 7


def test_a_table_that_no_job_made_is_never_replaced(session: Session) -> None:
    run(session, "CREATE TABLE mine AS SELECT * FROM iris")
    text = "SELECT * FROM iris TO PREDICT mine.guess USING flowers.small"
    with pytest.raises(SourceError, match="mine") as raised:
        run(session, text)
    assert raised.value.span is not None
    assert table(session, "SELECT count(*) AS n FROM mine")["n"].to_pylist() == [150]


# Errors ------------------------------------------------------------------------------------------------------

CURVE = "SELECT * FROM iris TO EVALUATE flowers.small WITH evaluate.report = roc_curve"


@pytest.mark.variants(5)
@pytest.mark.parametrize("session", ON_DUCKDB, indirect=True)
@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("SELECT * FROM iris TO PREDICT USING flwers.small", "flwers", "flowers"),
        ("SELECT x0, x1, x2 FROM iris TO PREDICT USING flowers.small", "lacks the column x3", "select x3, too"),
        ("SELECT * FROM iris TO PREDICT", "the statement needs a model", "USING flowers.small"),
        ("TO PREDICT x USING flowers.small", "there is no SELECT to predict", "SELECT"),
        ("SELECT 1 TO PREDICT WITH predict.batch_sise = 3 USING flowers.small", "batch_sise", "predict.batch_size"),
        ("SELECT x0, x1, x2, x3 FROM iris TO EVALUATE flowers.small", "lacks the label kind", "select kind, too"),
        ("SELECT * FROM iris TO EVALUATE flowers.small LABEL knd", "unknown column knd", "did you mean kind?"),
        ("SELECT * FROM iris TO EVALUATE flowers.small WITH metrics = rmse", "rmse measures", "accuracy"),
        (CURVE, "with two classes; kind has 3", "confusion_matrix"),
        ("SELECT x0, x1, x2 FROM iris TO EXPLAIN flowers.small", "lacks the column x3", "select x3, too"),
        ("TO EXPLAIN flowers.small", "there is no SELECT to explain", "SELECT"),
        ("SELECT * FROM iris TO EXPLAIN flowers.small USING TreExplainer", "no explainer", "TreeExplainer"),
        ("SELECT * FROM iris TO EXPLAIN flowers.small WITH explain.level = row", "cannot be 'row'", "mean rows?"),
        ("SELECT * FROM iris TO PREDICT USING flowers.small@9", "model flowers.small has no version 9", "known: 1"),
    ],
)  # fmt: skip
def test_a_wrong_use_of_a_model_is_answered_with_the_right_one(
    session: Session, text: str, message: str, hint: str
) -> None:
    with pytest.raises(SemanticError, match=message) as raised:
        run(session, text)
    if session.dialect != "maxcompute":  # where no query is run for an error
        assert hint in (raised.value.hint or "")
    assert raised.value.span is not None


@pytest.mark.parametrize(
    ("kind", "name"), [("mysql", "wie 😀"), pytest.param("maxcompute", "my guess", marks=pytest.mark.soak)]
)
def test_a_predicted_column_that_the_database_cannot_name_is_told_before_the_work(
    kind: str, name: str, sessions: Sessions
) -> None:
    text = f"SELECT * FROM iris TO PREDICT named.`{name}` USING flowers.small"
    with pytest.raises(SemanticError, match=f"{name} cannot name a column of {kind}"):
        run(sessions[kind], text)


@pytest.mark.soak
def test_names_of_postgresql_are_read_as_in_a_query(sessions: Sessions) -> None:
    """In small letters, but for those in quotation marks."""
    session = sessions["postgres"]
    for target, table_name, column in (("Said.Kind", "said", "kind"), ('"Said"."Kind"', '"Said"', "Kind")):
        run(session, f"SELECT * FROM iris TO PREDICT {target} USING flowers.small")
        assert column in session.source.schema(f"SELECT * FROM {table_name}").names


@pytest.mark.soak
def test_a_training_process_that_waits_holds_no_connections(sessions: Sessions) -> None:
    """Its readers lie in cycles of references, which Python frees only after many further objects."""
    session = sessions["postgres"]
    for _ in range(3):
        run(session, TRAIN)
    counting = (
        "SELECT count(*) AS n FROM pg_stat_activity, pg_sleep(0.1)"
        " WHERE datname = current_database() AND query LIKE '%sqlflow_edl_rows_%' AND query LIKE 'COPY%'"
    )
    counts = (table(session, counting)["n"][0].as_py() for _ in range(100))
    assert any(count == 0 for count in counts)


def test_an_error_of_the_database_points_into_the_statement(session: Session) -> None:
    text = f"SELECT 1;\nSELECT * FROM irs TO TRAIN DNNClassifier WITH {SETTINGS} LABEL kind INTO x"
    with pytest.raises(SourceError) as raised:
        run(session, text)
    span = raised.value.span
    assert span is not None
    assert text[span.start : span.end] == "irs"
    assert raised.value.hint == "did you mean iris?"


def test_a_query_without_rows_trains_nothing(session: Session) -> None:
    with pytest.raises(SemanticError, match="the query yields no rows"):
        run(session, TRAIN.replace("id % 3 > 0", "id < 0"))


# Ordinary SQL ------------------------------------------------------------------------------------------------


@pytest.mark.soak
def test_ordinary_sql_goes_to_the_database_as_it_is(session: Session) -> None:
    text = "CREATE TABLE train (target INT); INSERT INTO train VALUES (1); SELECT target FROM train train"
    assert table(session, text).to_pydict() == {"target": [1]}


@pytest.mark.soak
@pytest.mark.parametrize("kind", SOURCES[:-1])  # MaxCompute has no transactions
def test_statements_of_the_database_pass_through(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    servers = {"mysql": "mariadb", "postgres": "postgresql"}
    url = f"{kind}:{tmp_path}/iris.{kind}"
    if kind in servers:
        server: Server = request.getfixturevalue(servers[kind])
        url = server.url()
    write_iris(tmp_path / "iris.csv")
    program = (
        "CREATE TABLE t (a INTEGER, b VARCHAR(9)); INSERT INTO t VALUES (1, 'x;'), (2, NULL); UPDATE t SET a = a + 1;"
        "DELETE FROM t WHERE a = 3; BEGIN; INSERT INTO t VALUES (9, 'gone'); ROLLBACK; SELECT * FROM t"
    )
    assert main(["run", "-e", program, "--source", url, "--create", "--format", "csv"]) == 0
    assert capsys.readouterr().out == "a,b\n2,x;\n"


@pytest.mark.soak
def test_what_a_dead_client_has_staged_is_dropped_by_the_next_session(tmp_path: Path) -> None:
    url = f"duckdb:{tmp_path / 'd.duckdb'}"
    job = job_folder.create("predict")
    with data.connect(url, create=True) as source:
        source.stage("result", job.id, 0, 0, [pa.record_batch({"a": [1.0]})])
        job.end("died")
    with sqlflow_edl.connect(url) as session:
        [found] = session.run(
            "SELECT count(*) AS n FROM duckdb_tables() WHERE starts_with(table_name, 'sqlflow_edl_stage_')"
        )
        assert found.to_arrow()["n"].to_pylist() == [0]
