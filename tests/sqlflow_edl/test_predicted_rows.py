"""EVALUATE of predictions in the rows, without a model: figures, reports, plans, and mistakes at their places."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import sqlflow_edl
from edl.errors import SemanticError
from sqlflow_edl.reports.result import Result
from sqlflow_edl.session.session import Session
from tests.sql_cases import Case, cases, refusal

SCORED = """
    SELECT 1 AS id, 'yes' AS truth, 'yes' AS guess, 0.9 AS p, 0.1 AS q, 0 AS k, 1 AS j, 1.5 AS x, 2.5 AS y
    UNION ALL SELECT 2, 'no', 'no', 0.2, 0.8, 0, 0, 2.5, 2.5 UNION ALL SELECT 3, 'yes', 'no', 0.4, 0.6, 1, 1, 3.5, 3.5
    UNION ALL SELECT 4, 'no', NULL, 0.1, 0.9, 1, 1, 4.5, 4.5 UNION ALL SELECT 5, 'no', 'yes', 0.7, 0.3, 2, 1, 5.5, 5.5
    UNION ALL SELECT 6, 'yes', 'yes', 0.6, 0.4, 3, 3, 6.5, 7.5 UNION ALL SELECT 7, 'no', 'no', 0.3, 0.7, 0, 0, 7.5, 9.5
    UNION ALL SELECT 8, 'no', 'no', 0.2, 0.8, 1, 0, 8.5, NULL"""


def in_duckdb(file: str) -> list[Case]:
    return [case for case in cases(file) if case.dialect == "duckdb"]


@pytest.fixture(scope="module")
def session() -> Iterator[Session]:
    with sqlflow_edl.connect("duckdb:") as opened:
        list(opened.run(f"CREATE TABLE scored AS {SCORED}"))
        yield opened


def evaluated(session: Session, clauses: str, query: str = "SELECT * FROM scored") -> Result:
    [result] = session.run(f"{query} TO EVALUATE {clauses}")
    return result


def test_predicted_classes_are_measured_on_each_database(url: str) -> None:
    with sqlflow_edl.connect(url) as session:
        list(session.run(f"CREATE TABLE scored AS {SCORED}"))
        result = evaluated(session, "WITH evaluate.prediction = guess LABEL truth INTO figures_of_guesses")
        assert result.warnings == ("guess is NULL in 1 of 8 rows, which the figures leave out",)
        [stored] = session.run("SELECT * FROM figures_of_guesses")
        [row] = stored.to_arrow().to_pylist()
        clauses = "WITH evaluate.probability = {'no': q, 'yes': p}, evaluate.weight_column = id LABEL truth"
        weighed = evaluated(session, clauses).figures
    assert weighed is not None
    assert (weighed["accuracy"], weighed["auc"]) == pytest.approx(
        (28 / 36, (1 * 26 + 3 * 21 + 6 * 21) / (10 * 26))
    )
    assert row == {
        "loss": None,
        "accuracy": pytest.approx(5 / 7),
        "precision": pytest.approx(2 / 3),
        "recall": pytest.approx(2 / 3),
        "f1": pytest.approx(2 / 3),
    }


def test_a_table_of_predictions_has_the_figures_of_its_model(session: Session) -> None:
    """Rows of three classes, with their probabilities and weights."""
    pytest.importorskip("lightgbm")
    list(
        session.run(
            "CREATE TABLE sizes AS SELECT range AS id, (range * 37) % 50 / 10.0 AS length, range % 3 + 1.0 AS times, "
            "CASE WHEN (range * 37) % 50 + range % 7 > 35 THEN 'L' WHEN (range * 37) % 50 > 12 THEN 'M' ELSE 'S' END "
            "AS size FROM range(120);"
            "SELECT length, times, size FROM sizes TO TRAIN BoostedTreesClassifier WITH train.epoch = 3, "
            "train.weight_column = times VALIDATE 0 LABEL size INTO fitted;"
            "SELECT * FROM sizes TO PREDICT guessed.guess USING fitted"
        )
    )
    clauses = "WITH validation.metrics = [accuracy, f1, log_loss, brier, mcc]"
    model = evaluated(session, f"fitted {clauses} LABEL size", "SELECT * FROM sizes").to_arrow()
    table = evaluated(
        session,
        f"{clauses}, evaluate.prediction = guess, evaluate.weight_column = times, evaluate.probability = "
        "{'S': guess_prob_S, 'L': guess_prob_L, 'M': guess_prob_M} LABEL size",
        "SELECT * FROM guessed",
    ).to_arrow()
    assert table.column_names == model.column_names
    for name in model.column_names:
        assert table[name][0].as_py() == pytest.approx(model[name][0].as_py(), rel=1e-6), name


def test_numbers_are_measured_by_the_type_of_the_columns(session: Session) -> None:
    result = evaluated(session, "WITH evaluate.prediction = y LABEL x")
    assert result.message == "regression of 7 rows"
    assert result.to_arrow().to_pylist()[0] == {
        "loss": pytest.approx(6 / 7),
        "rmse": pytest.approx((6 / 7) ** 0.5),
        "mae": pytest.approx(4 / 7),
        "r2": pytest.approx(1 - 6 / 28),
    }


def test_whole_numbers_are_classes_unless_the_statement_says_otherwise(session: Session) -> None:
    assert list(evaluated(session, "WITH evaluate.prediction = j LABEL k").figures or ()) == [
        "loss",
        "accuracy",
        "precision",
        "recall",
        "f1",
    ]
    numbers = evaluated(session, "WITH evaluate.prediction = j, evaluate.kind = regression LABEL k")
    assert numbers.figures is not None
    assert numbers.figures["mae"] == pytest.approx(3 / 8)


def test_the_class_of_a_probability_is_named_and_decided_by_the_threshold(session: Session) -> None:
    clauses = "WITH evaluate.probability = p, evaluate.report = {} LABEL truth"
    result = evaluated(session, clauses.format("confusion_matrix, evaluate.threshold = 0.4"))
    assert result.notes == ("p is taken as the probability of yes, and not of no",)
    assert result.to_arrow()["row_count"].to_pylist() == [4, 1, 0, 3]
    curve = evaluated(session, clauses.format("roc_curve"))
    assert curve.message.endswith("the positive class is yes")
    assert curve.to_arrow()["true_positives"].to_pylist() == [1, 1, 2, 3, 3, 3, 3]


def test_facts_that_make_the_figures_doubtful_are_warnings(session: Session) -> None:
    assert evaluated(session, "WITH evaluate.prediction = k LABEL truth").warnings == (
        "no value of k is one of truth: are they the same classes?",
    )
    uneven = evaluated(
        session,
        "WITH evaluate.probability = {'no': p, 'yes': twice} LABEL truth",
        "SELECT truth, p, p / 2 AS twice FROM scored",
    )
    assert uneven.warnings == ("the probabilities of 8 rows do not add up to 1",)


@pytest.mark.variants(8)
@pytest.mark.parametrize("case", in_duckdb("measurement/errors.sql"), ids=str)
def test_an_error_is_told_at_its_place(session: Session, case: Case) -> None:
    refusal(case, lambda program: list(session.run(program)))


def test_the_plan_names_the_columns_and_starts_nothing(session: Session) -> None:
    [statement] = session.parse(
        "SELECT * FROM scored TO EVALUATE WITH evaluate.probability = {'no': q, 'yes': p} LABEL truth INTO planned"
    )
    rows = {
        (row["section"], row["name"]): row["value"] for row in session.plan(statement).to_arrow().to_pylist()
    }
    assert rows["kind", ""] == "classification"
    assert (rows["probability", "q"], rows["probability", "p"]) == ("no", "yes")
    assert ("metrics", "auc") in rows
    assert not [each for each in session.source.tables() if "planned" in str(each)]


def test_a_program_is_checked_before_its_first_statement(session: Session) -> None:
    program = session.read(
        "CREATE TABLE later AS SELECT * FROM scored;"
        "SELECT * FROM later TO EVALUATE WITH evaluate.prediction = g LABEL t;"
        "SELECT * FROM later TO EVALUATE WITH evaluate.predicted = g LABEL t;"
        "SELECT * FROM scored TO EVALUATE WITH evaluate.prediction = g LABEL truth"
    )
    problems = [each and each.message for each in session.problems(program)]
    assert problems[:2] == [None, None], "the columns of a table that is yet to be made are not known"
    assert problems[2] == "unknown attribute evaluate.predicted"
    assert problems[3] == "unknown column g"


def test_the_statement_cannot_be_detached(session: Session) -> None:
    [statement] = session.parse(
        "SELECT * FROM scored TO EVALUATE WITH evaluate.prediction = guess LABEL truth INTO r"
    )
    with pytest.raises(SemanticError, match="runs in the client, so it cannot be detached"):
        session.leave(statement)
