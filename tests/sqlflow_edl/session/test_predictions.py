"""PREDICT(model, query) inside a query: it gives the rows of a PREDICT statement, and no table stays."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest

from edl.errors import SemanticError, SourceError, Span, SQLFlowError
from edl.sources.maxcompute.source import MaxComputeSource
from sqlflow_edl.session.session import Session
from tests.databases import Databases, fill
from tests.sales import TRAIN, new_sales, sales

ROWS = "SELECT id, amount, city, day, is_new FROM fresh"


@pytest.fixture(
    scope="module",
    params=[
        "duckdb",
        "sqlite",
        *(pytest.param(name, marks=pytest.mark.soak) for name in ("mysql", "postgres", "maxcompute")),
    ],
)
def session(
    request: pytest.FixtureRequest, databases: Databases, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Session]:
    """With two models, and rows to predict in the table `fresh`."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        with Session(databases.url(request.param), create=True) as found:
            fill(found, "sales", sales())
            fill(found, "fresh", new_sales())
            for _ in found.run(TRAIN):
                pass
            yield found


def rows(session: Session, text: str) -> list[dict[str, object]]:
    """Return the rows of the last statement."""
    return [found.to_arrow() for found in session.run(text)][-1].to_pylist()


def test_a_query_has_the_predictions_of_the_statement(session: Session) -> None:
    columns = ("id", "kind", "kind_confidence", "kind_prob_far", "kind_prob_large", "kind_prob_near")
    expected, *found = (
        [[row[name] for name in columns] for row in rows(session, text)]
        for text in (
            f"{ROWS} ORDER BY id TO PREDICT USING kinds",
            f"SELECT * FROM PREDICT(kinds, ({ROWS})) AS p ORDER BY id",
            "SELECT * FROM PREDICT(kinds, fresh) ORDER BY id",
        )
    )
    assert found == [expected, expected]
    assert len(expected) == new_sales().num_rows


def test_columns_of_an_earlier_prediction_are_told_from_the_new_ones(session: Session) -> None:
    said = "kind_confidence is a column of the query; the model's is kind_confidence_2, and 1 more"
    query = f"SELECT *, 0.5 AS kind_confidence, 0.1 AS kind_prob_far FROM ({ROWS}) AS r"
    [renamed] = session.run(f"{query} TO PREDICT USING kinds")
    assert said in renamed.notes
    [plain] = session.run(f"{ROWS} TO PREDICT USING kinds")
    assert not any("is a column of the query" in note for note in plain.notes)


def test_the_database_does_the_rest(session: Session) -> None:
    expected = rows(session, f"{ROWS} TO PREDICT USING kinds")
    large = {row["id"] for row in expected if row["kind"] == "large"}
    joined = rows(
        session,
        "SELECT f.id FROM fresh f JOIN PREDICT(kinds@1, fresh) p ON f.id = p.id WHERE p.kind = 'large'",
    )
    assert {row["id"] for row in joined} == large
    counted = rows(session, f"SELECT kind, count(*) AS n FROM PREDICT(kinds, ({ROWS})) GROUP BY kind")
    assert {row["kind"]: row["n"] for row in counted}["large"] == len(large)


def test_the_former_name_of_the_confidence_is_named_at_its_place(session: Session) -> None:
    text = "SELECT avg(Kind_Prob) AS mean FROM PREDICT(kinds, fresh)"
    with pytest.raises(SemanticError, match="PREDICT adds no column kind_prob") as caught:
        rows(session, text)
    assert caught.value.hint == (
        "kind_confidence is the probability of the predicted class, kind_prob_far and kind_prob_large those of a class"
    )
    assert caught.value.span == Span(*_span(text, "Kind_Prob"))


def test_a_column_of_the_rows_may_have_that_name(session: Session) -> None:
    text = "SELECT kind_prob FROM PREDICT(kinds, (SELECT *, 7 AS kind_prob FROM fresh)) WHERE id = 1"
    assert rows(session, text) == [{"kind_prob": 7}]


def test_a_query_of_a_stored_table_is_told_the_name_of_the_confidence(session: Session) -> None:
    rows(session, f"{ROWS} TO PREDICT stored.kind USING kinds")
    try:
        for text in (
            "SELECT id FROM stored WHERE kind_prob > 0.5",
            "SELECT amount, kind_prob FROM stored TO TRAIN LinearRegressor LABEL amount INTO m",
        ):
            with pytest.raises(SourceError, match="kind_prob") as caught:
                rows(session, text)
            assert "kind_confidence is the probability of the predicted class" in str(caught.value.hint)
    finally:
        rows(session, "DROP TABLE stored")


@pytest.mark.soak
def test_rows_are_added_to_a_table_with_the_former_name_of_the_confidence(session: Session) -> None:
    if session.dialect == "maxcompute":
        pytest.skip("the double of MaxCompute renames no columns")
    add = f"{ROWS} TO PREDICT older.kind USING kinds"
    rows(session, add)
    confidences = rows(session, "SELECT id, kind_confidence FROM older ORDER BY id")
    try:
        rows(session, "ALTER TABLE older RENAME COLUMN kind_confidence TO kind_prob")
        [again] = session.run(f"{add} APPEND")
        assert (
            "…_prob of older gets the probability of the predicted class, which new tables have as …_confidence"
            in again.notes
        )
        found = rows(session, "SELECT id, kind_prob AS kind_confidence FROM older ORDER BY id")
        assert found == [each for each in confidences for _ in range(2)]
    finally:
        rows(session, "DROP TABLE older")


def test_predictions_stand_in_common_table_expressions_and_read_them(session: Session) -> None:
    text = """WITH early AS (SELECT * FROM fresh WHERE id < 4),
        guessed AS (SELECT * FROM PREDICT(kinds, early)),
        priced AS (SELECT * FROM PREDICT(costs, guessed, interval = 0.9))
        SELECT count(*) AS n, count(kind) AS kinds, sum(CASE WHEN cost_high > cost THEN 1 ELSE 0 END) AS higher
        FROM priced"""
    assert rows(session, text) == [{"n": 4, "kinds": 4, "higher": 4}]


def test_predictions_are_predicted_from(session: Session) -> None:
    text = "SELECT * FROM PREDICT(costs, (SELECT * FROM PREDICT(kinds, fresh) WHERE id > 5)) ORDER BY id"
    found = rows(session, text)
    assert [row["id"] for row in found] == [6, 7]
    assert {"kind_confidence", "cost"} <= found[0].keys()


def test_several_models_predict_in_one_query(session: Session) -> None:
    text = "SELECT a.id FROM PREDICT(kinds, fresh) a JOIN PREDICT(costs, fresh) b ON a.id = b.id WHERE b.cost > 0"
    assert len(rows(session, text)) == new_sales().num_rows


def test_rows_of_a_query_become_a_table(session: Session) -> None:
    text = "CREATE TABLE guesses AS SELECT id, kind FROM PREDICT(kinds, fresh)"
    assert rows(session, f"{text}; SELECT count(*) AS n FROM guesses; DROP TABLE guesses; SELECT 8 AS n") == [
        {"n": 8}
    ]


@pytest.mark.soak
def test_predictions_are_added_to_a_table(session: Session) -> None:
    add = "INSERT INTO guesses SELECT id, kind FROM PREDICT(kinds, (SELECT * FROM fresh WHERE id {} 4))"
    begin = "CREATE TABLE guesses AS SELECT id, kind FROM PREDICT(kinds, fresh) WHERE id < 0"
    text = f"{begin}; {add.format('<')}; {add.format('>=')}; SELECT count(DISTINCT id) AS n FROM guesses"
    try:
        assert rows(session, text) == [{"n": new_sales().num_rows}]
    finally:
        rows(session, "DROP TABLE guesses")


@pytest.mark.soak
def test_a_statement_adds_its_rows_to_a_table(session: Session) -> None:
    begin = "CREATE TABLE added AS SELECT id, cost, 'old' AS note FROM PREDICT(costs, fresh) WHERE id = 0"
    add = "SELECT id, amount, city, day, is_new FROM fresh WHERE id {} 4 TO PREDICT added.cost USING costs APPEND"
    try:
        with pytest.raises(
            SourceError, match="the table added has no column amount, city, day, is_new"
        ) as caught:
            rows(session, f"{begin}; {add.format('<')}")
        assert caught.value.span == Span(*_span(f"{begin}; {add.format('<')}", "added.cost"))
        rows(session, "DROP TABLE added")
        found = [each.message for each in session.run(f"{add.format('<')}; {add.format('>=')}")]
        assert found == ["added 4 rows to added with costs@1", "added 4 rows to added with costs@1"]
        expected = rows(session, f"SELECT id, cost FROM PREDICT(costs, ({ROWS})) AS p ORDER BY id")
        assert rows(session, "SELECT id, cost FROM added ORDER BY id") == expected
    finally:
        rows(session, "DROP TABLE added")


@pytest.mark.soak
@pytest.mark.parametrize(
    "session",
    ["duckdb", "sqlite", *(pytest.param(name, marks=pytest.mark.soak) for name in ("mysql", "postgres"))],
    indirect=True,
)
def test_rows_that_a_table_refuses_are_an_error_at_its_name_and_none_is_added(session: Session) -> None:
    rows(
        session,
        "CREATE TABLE few AS SELECT id, amount, city, day, is_new, 1.5e0 AS cost FROM fresh WHERE id = 4; "
        "CREATE UNIQUE INDEX few_ids ON few (id); SELECT 1",
    )
    (statement,) = session.parse(f"{ROWS} TO PREDICT few.cost USING costs APPEND")
    with pytest.raises(SourceError, match=r"(?i)unique|duplicate") as caught:
        session.execute(statement)
    assert caught.value.span == Span(*_span(statement.text, "few.cost"))
    assert [row["id"] for row in rows(session, "SELECT id FROM few")] == [4]


def test_rows_are_not_added_to_no_table(session: Session) -> None:
    (statement,) = session.parse(f"{ROWS} TO PREDICT USING kinds APPEND")
    with pytest.raises(SemanticError, match="APPEND needs a table") as caught:
        session.execute(statement)
    assert caught.value.span == Span(*_span(statement.text, "APPEND"))
    (statement,) = session.parse(f"{ROWS} TO PREDICT other.kind USING kinds APPEND")
    plan = session.plan(statement).to_arrow().to_pylist()
    assert any(str(row["value"]).startswith("rows added to a table") for row in plan)


def _span(text: str, part: str) -> tuple[int, int]:
    return text.index(part), text.index(part) + len(part)


@pytest.mark.parametrize("session", [pytest.param("maxcompute", marks=pytest.mark.soak)], indirect=True)
def test_a_partition_of_maxcompute_is_replaced_by_predictions(session: Session) -> None:
    day = (
        "INSERT OVERWRITE TABLE daily PARTITION (ds = '20261126') SELECT id, kind FROM PREDICT(kinds, fresh)"
    )
    begin = "CREATE TABLE daily (id BIGINT, kind STRING) PARTITIONED BY (ds STRING)"
    text = f"{begin}; {day}; {day}; SELECT ds, count(*) AS n FROM daily GROUP BY ds"
    assert rows(session, text) == [{"ds": "20261126", "n": new_sales().num_rows}]


def test_no_table_stays(session: Session) -> None:
    before = session.source.tables()
    rows(session, "SELECT * FROM PREDICT(kinds, fresh)")
    assert temporary(session) == []
    unread = next(session.stream("SELECT * FROM PREDICT(kinds, fresh)"))
    assert unread.reader is not None
    rows(session, "SELECT 1 AS a")
    assert temporary(session) == []
    with pytest.raises(SourceError):
        rows(session, "SELECT nothing FROM PREDICT(kinds, fresh)")
    rows(session, "SELECT 1 AS a")
    assert temporary(session) == []
    assert session.source.tables() == before


def temporary(session: Session) -> list[object]:
    """The temporary tables of the connection that we made. MySQL does not list them."""
    if isinstance(session.source, MaxComputeSource):
        return [found.name for found in session.source.list_objects("edl_")]
    lists = {
        "duckdb": "SELECT view_name FROM duckdb_views() WHERE view_name LIKE 'edl\\_%' ESCAPE '\\'",
        "sqlite": "SELECT name FROM sqlite_temp_master WHERE name LIKE 'edl\\_%' ESCAPE '\\'",
        "postgres": "SELECT relname FROM pg_class WHERE starts_with(relname, 'edl_')",
        "mysql": "SELECT table_name FROM information_schema.tables WHERE table_name LIKE 'edl\\_%'",
    }
    reader = session.source.execute(lists[session.dialect])
    return [] if reader is None else reader.read_all().column(0).to_pylist()


@pytest.mark.soak
def test_a_transaction_of_the_user_stays_open(session: Session) -> None:
    if session.dialect == "mysql":  # its rows are pinned in a table, which would end the transaction
        list(session.run("START TRANSACTION; DELETE FROM sales WHERE id < 10"))
        with pytest.raises(SourceError, match="a transaction is open on this connection"):
            rows(session, "SELECT count(*) AS n FROM PREDICT(kinds, fresh)")
        list(session.run("ROLLBACK"))
    elif session.dialect != "maxcompute":  # which has none
        text = "BEGIN; DELETE FROM sales WHERE id < 10; SELECT count(*) AS n FROM PREDICT(kinds, fresh); ROLLBACK"
        assert [found.to_arrow().to_pylist() for found in session.run(text)][2] == [{"n": 8}]
    assert rows(session, "SELECT count(*) AS n FROM sales") == [{"n": sales().num_rows}]


@pytest.mark.parametrize(
    ("text", "message", "place"),
    [
        ("SELECT * FROM PREDICT(kind, fresh)", "there is no model kind", "kind"),
        (
            "SELECT * FROM PREDICT(kinds, (SELECT id FROM fresh))",
            "the query lacks the columns amount, city, day, is_new that the model reads",
            "SELECT id FROM fresh",
        ),
        ("CREATE VIEW v AS SELECT * FROM PREDICT(kinds, fresh)", "a view cannot have it", "CREATE VIEW"),
        (
            "SELECT * FROM PREDICT(kinds, fresh) TO TRAIN LinearClassifier LABEL kind INTO x",
            "the query of TRAIN cannot have predictions",
            "PREDICT(kinds, fresh)",
        ),
        (
            "SELECT * FROM PREDICT(kinds, fresh) TO MAXIMIZE SUM(x) WITH variables = 'x(id)', var_type = Reals",
            "the query of MAXIMIZE cannot have predictions",
            "PREDICT(kinds, fresh)",
        ),
        ("SELECT * FROM PREDICT(kinds, fresh, often = 1)", "predict.often", "often"),
    ],
)
def test_an_error_has_the_place_in_the_call(session: Session, text: str, message: str, place: str) -> None:
    before = "SELECT 1 AS a;\n"
    for program in (text, before + text):
        with pytest.raises(SQLFlowError, match=message) as caught:
            list(session.run(program))
        span = caught.value.span
        assert span is not None
        assert program[span.start : span.end].startswith(place)


@pytest.mark.soak
def test_an_error_of_the_database_has_the_place_behind_the_call() -> None:
    table = pa.table({"x": [1.0, 2.0, 3.0], "y": [2.0, 4.0, 6.0]})
    with Session("duckdb:") as session:
        fill(session, "t", table)
        list(
            session.run(
                "SELECT * FROM t TO TRAIN BoostedTreesRegressor WITH train.num_boost_round = 1 LABEL y INTO m"
            )
        )
        text = "SELECT p.x FROM PREDICT(m, (SELECT * FROM t)) p WHERE p.nothing > 1"
        with pytest.raises(SourceError) as caught:
            list(session.run(text))
    assert caught.value.span is not None
    assert text[caught.value.span.start :].startswith(("nothing", "p.nothing"))
    assert "edl_" not in caught.value.message


def test_a_database_without_temporary_tables_is_refused_before_rows_are_predicted(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session.source, "temporary_tables", False)
    text = "SELECT * FROM PREDICT(kinds, fresh)"
    with pytest.raises(SemanticError, match="which this data source does not have") as caught:
        list(session.run(text))
    assert caught.value.span == Span(text.index("PREDICT"), len(text))
    assert caught.value.hint is not None
    assert "TO PREDICT my_table" in caught.value.hint


def test_a_program_is_refused_before_it_runs_if_a_model_is_missing(session: Session) -> None:
    with pytest.raises(SemanticError, match="there is no model nobody"):
        session.program("SELECT 1 AS a; SELECT * FROM PREDICT(nobody, fresh)")
    assert session.program(
        f"{TRAIN.replace('INTO kinds', 'INTO later')}; SELECT * FROM PREDICT(later, fresh)"
    )


def test_the_plan_names_the_model(session: Session) -> None:
    (statement,) = session.parse("SELECT * FROM PREDICT(kinds, fresh)")
    found = session.plan(statement).to_arrow().to_pylist()
    assert found[0]["value"] == "is passed to the database, with predictions in it"
    assert any("kinds@1" in str(row.values()) for row in found)
