"""ALTER MODEL: a model gets another name, and keeps a description, labels and the time when it expires."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from edl.errors import ErrorList, SQLFlowError
from sqlflow_edl.session.session import Session
from tests.sessions import open_in_folder

TRAIN = "CREATE MODEL {} OPTIONS(model_type='BOOSTED_TREE_REGRESSOR', max_iterations=1, input_label_cols=['y']) AS "


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    with open_in_folder(tmp_path_factory.mktemp("renamed")) as opened:
        opened.run("CREATE TABLE t AS SELECT range AS x, range * 2.0 AS y FROM range(40)")
        for name in ("shop.old", "taken"):
            opened.run(TRAIN.format(name) + "SELECT * FROM t")
        yield opened


@pytest.mark.parametrize(
    "text", ["ALTER MODEL `shop.{}` RENAME TO `shop.{}`", "alter model /* a */ shop.{} rename to shop.{} ;"]
)
def test_a_renamed_model_predicts_under_its_new_name(session: Session, text: str) -> None:
    [result] = session.run(text.format("old", "new"))
    assert result.message == "shop.old is named shop.new, 1 version"
    [rows] = session.run("SELECT count(predicted_y) AS n FROM ML.PREDICT(MODEL shop.new, TABLE t)")
    assert rows.to_arrow().to_pylist() == [{"n": 40}]
    session.run("ALTER MODEL shop.new RENAME TO shop.old")


def test_a_model_that_is_not_there_is_not_renamed_where_it_may_be_absent(session: Session) -> None:
    [result] = session.run("ALTER MODEL IF EXISTS nothing RENAME TO something")
    assert result.message == "there is no model nothing; nothing is renamed"


def facts_of(session: Session, model: str) -> dict[str, str]:
    [described] = session.run(f"DESCRIBE MODEL {model}")
    rows = described.to_arrow().to_pylist()
    return {row["name"]: row["value"] for row in rows if row["section"] == "description"}


def test_create_model_keeps_the_same_facts(session: Session) -> None:
    session.run(
        "CREATE MODEL told OPTIONS(model_type='BOOSTED_TREE_REGRESSOR', max_iterations=1, input_label_cols=['y'], "
        "description = 'what y is', labels = [('team', 'sales'), ('stage', 'trial')], friendly_name = NULL, "
        "expiration_timestamp = TIMESTAMP '2030-01-02') AS SELECT * FROM t"
    )
    assert facts_of(session, "told") == {
        "description": "what y is",
        "labels": "team: sales, stage: trial",
        "expiration_timestamp": "2030-01-02 00:00:00 UTC",
    }
    session.run("ALTER MODEL told SET OPTIONS(labels = NULL)")
    assert "labels" not in facts_of(session, "told")


def test_a_wrong_fact_of_create_model_is_an_error_at_its_place(session: Session) -> None:
    with pytest.raises(SQLFlowError, match="description has another form") as raised:
        session.parse(
            "CREATE MODEL told OPTIONS(model_type='LINEAR_REG', input_label_cols=['y'], description = 3) AS SELECT 1"
        )
    assert raised.value.span is not None


def test_a_model_keeps_its_description_labels_and_expiration(session: Session) -> None:
    [result] = session.run(
        "ALTER MODEL taken SET OPTIONS(description = 'it''s \"y\"', friendly_name = \"y\", -- a comment\n"
        "labels = [('team', 'sales'), ('trial', '')], expiration_timestamp = TIMESTAMP '2030-01-02 10:00:00+02:00')"
    )
    assert result.message == "taken keeps its description, friendly_name, labels, expiration_timestamp"
    assert facts_of(session, "taken") == {
        "description": 'it\'s "y"',
        "friendly_name": "y",
        "labels": "team: sales, trial",
        "expiration_timestamp": "2030-01-02 08:00:00 UTC",
    }
    [result] = session.run("ALTER MODEL `taken` SET OPTIONS(friendly_name = NULL, description = 'b')")
    assert result.message == "taken keeps its description and has no friendly_name any more"
    session.run("ALTER MODEL taken RENAME TO described")
    assert facts_of(session, "described")["description"] == "b"
    session.run("ALTER MODEL described RENAME TO taken")


def test_a_time_of_expiration_may_be_said_from_now(session: Session) -> None:
    later = "TIMESTAMP_ADD(CURRENT_TIMESTAMP(), INTERVAL 7 DAY)"
    session.run(f"ALTER MODEL taken SET OPTIONS(expiration_timestamp = {later})")
    time = datetime.fromisoformat(facts_of(session, "taken")["expiration_timestamp"].removesuffix(" UTC"))
    assert timedelta(days=6) < time - datetime.now(UTC).replace(tzinfo=None) < timedelta(days=8)


def test_options_of_a_model_that_may_be_absent_are_planned_and_set(session: Session) -> None:
    [result] = session.run("ALTER MODEL IF EXISTS nothing SET OPTIONS(description = 'a')")
    assert result.message == "there is no model nothing; nothing is changed"
    for name, planned in (
        ("nothing", "there is no model nothing; nothing would be changed"),
        ("taken", "taken would keep its labels"),
    ):
        [statement] = session.parse(f"ALTER MODEL IF EXISTS {name} SET OPTIONS(labels = NULL)")
        [row] = session.plan(statement).to_arrow().to_pylist()
        assert row["value"] == planned


def test_the_plan_says_how_many_versions_would_get_the_name(session: Session) -> None:
    [statement] = session.parse("ALTER MODEL taken RENAME TO free")
    [row] = session.plan(statement).to_arrow().to_pylist()
    assert row["value"] == "would be named free, 1 version"
    assert session.registry.has("taken")


def test_later_statements_of_a_program_know_the_new_name(session: Session) -> None:
    program = "ALTER MODEL taken RENAME TO other; SHOW TRAIN other; ALTER MODEL other RENAME TO taken"
    assert len(session.run(program)) == 3
    with pytest.raises(SQLFlowError, match="renamed to other by an earlier statement"):
        session.run("ALTER MODEL taken RENAME TO other; SHOW TRAIN taken")


@pytest.mark.parametrize(
    ("text", "message", "place", "hint"),
    [
        (
            "ALTER MODEL taken RENAME TO shop.old",
            "there is a model shop.old already",
            "shop.old",
            "DROP MODEL",
        ),
        ("ALTER MODEL take RENAME TO x", "there is no model take", "take", "taken"),
        ("ALTER MODEL taken RENAME TO x@2", "names a version", "x@2", "write x"),
        ("ALTER MODEL taken@1 RENAME TO x", "renamed with all its versions", "taken@1", "ALTER MODEL taken"),
        ("ALTER MODEL taken RENAME TO x now", "unexpected now", "now", "leave it out"),
        (
            "ALTER MODEL taken SET OPTIONS(vertex_ai_model_version_aliases = ['a'])",
            "have tags",
            "vertex_ai_model_version_aliases",
            "SET MODEL taken TAG my_tag 1",
        ),
        ("ALTER MODEL taken SET OPTIONS(kms_key_name = 'a')", "stores its tables", "kms_key_name", "encrypt"),
        ("ALTER MODEL taken SET OPTIONS(labels = ['a'])", "another form", "['a']", "[('team', 'sales')]"),
        ("ALTER MODEL taken SET OPTIONS(expiration_timestamp = 'soon')", "form", "'soon'", "'2030-01-01'"),
        ("ALTER MODEL taken SET OPTIONS(description)", "has no value", "description", "description = "),
        (
            "ALTER MODEL taken SET OPTIONS(labels = [('a', 'b')], labels = NULL)",
            "given twice",
            "labels",
            "keep one",
        ),
        ("ALTER MODEL taken SET OPTIONS(descr = 'a')", "unknown option descr", "descr", "description"),
        ("ALTER MODEL taken SET OPTIONS()", "the options are empty", "SET OPTIONS", "RENAME TO"),
        ("ALTER MODEL taken TO x", "ALTER MODEL is not a statement", "ALTER MODEL", "RENAME TO n"),
    ],
)
def test_what_cannot_be_altered_is_told_at_its_place(
    session: Session, text: str, message: str, place: str, hint: str
) -> None:
    with pytest.raises(SQLFlowError, match=message) as raised:
        session.run(text)
    error = raised.value.errors[0] if isinstance(raised.value, ErrorList) else raised.value
    assert error.span is not None
    assert text[error.span.start : error.span.end] == place
    assert hint in (error.hint or "")
