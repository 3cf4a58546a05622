"""Standard errors and p-values of weights, against figures of statsmodels."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from edl.errors import SemanticError
from sqlflow_edl.extensions.bigquery_ml.weight_errors import _incomplete_beta, _two_sided_t
from sqlflow_edl.session.session import Session
from tests.sessions import open_in_folder


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    with open_in_folder(tmp_path_factory.mktemp("errors")) as opened:
        opened.run(
            "CREATE TABLE t AS SELECT i % 7 AS x, ['a', 'b', 'a'][1 + i % 3] AS k, 2.0 * (i % 7) + (i * 5) % 4 AS y, "
            "(i * 5) % 9 + i % 7 > 6 AS flag FROM range(60) AS r(i);"
            "CREATE MODEL lines OPTIONS(model_type='LINEAR_REG', input_label_cols=['y'], calculate_p_values=TRUE, "
            "category_encoding_method='DUMMY_ENCODING') AS SELECT x, k, y FROM t"
        )
        yield opened


def weights(session: Session, call: str) -> dict[tuple[str, str | None], dict]:
    rows = session.run(f"SELECT * FROM {call}")[-1].to_arrow().to_pylist()
    return {(row["processed_input"], row["category"]): row for row in rows}


def test_the_weights_of_a_number_are_the_exact_ones_with_their_errors(session: Session) -> None:
    found = weights(session, "ML.ADVANCED_WEIGHTS(MODEL lines)")
    assert list(found) == [("x", None), ("k", "b"), ("__INTERCEPT__", None)]
    x = found["x", None]
    assert x["weight"] == pytest.approx(2.0, abs=0.05)
    assert 0 < x["standard_error"] < 0.2
    assert x["p_value"] < 1e-9
    assert found["k", "b"]["p_value"] > 0.05, "the category has no influence"


def test_standardized_weights_are_in_units_of_the_deviation(session: Session) -> None:
    plain, scaled = (
        weights(session, f"ML.ADVANCED_WEIGHTS(MODEL lines{setting})")["x", None]
        for setting in ("", ", STRUCT(TRUE AS standardize)")
    )
    assert scaled["weight"] / plain["weight"] == pytest.approx(2.0, abs=0.1)  # the deviation of x
    assert scaled["p_value"] == pytest.approx(plain["p_value"])


@pytest.mark.soak
def test_the_weights_of_two_classes_are_those_of_their_logit(session: Session) -> None:
    session.run(
        "CREATE MODEL classes OPTIONS(model_type='LOGISTIC_REG', input_label_cols=['flag'], max_iterations=1) AS "
        "SELECT x, flag FROM t"
    )
    found = weights(session, "ML.ADVANCED_WEIGHTS(MODEL classes)")["x", None]
    assert found["weight"] > 0
    assert found["p_value"] < 0.01


def test_probabilities_of_students_t_are_those_of_its_table() -> None:
    for value, freedom, share in ((2.228, 10, 0.05), (12.706, 1, 0.05), (1.96, 100_000, 0.05), (0.0, 5, 1.0)):
        assert _two_sided_t(value, freedom) == pytest.approx(share, abs=2e-4)
    assert _incomplete_beta(0.5, 2.0, 2.0) == pytest.approx(0.5)


def test_columns_that_are_sums_of_others_are_an_error(session: Session) -> None:
    session.run(
        "CREATE OR REPLACE MODEL twice OPTIONS(model_type='LINEAR_REG', input_label_cols=['y'], l2_reg=1) AS "
        "SELECT x, 2 * x AS z, y FROM t"
    )
    with pytest.raises(SemanticError, match="sums of others"):
        session.run("SELECT * FROM ML.ADVANCED_WEIGHTS(MODEL twice)")


def test_columns_of_other_sizes_are_no_sums_and_have_exact_errors(session: Session) -> None:
    session.run(
        "CREATE TABLE ticks AS SELECT 1.7e9 + i * 3600 AS seconds, (i * 7 % 11) / 1e7 AS share, "
        "i / 24 + (i * 7 % 11) + (i * 5) % 4 AS y FROM range(60) AS r(i);"
        "CREATE OR REPLACE MODEL sizes OPTIONS(model_type='LINEAR_REG', input_label_cols=['y']) AS SELECT * FROM ticks"
    )
    found = weights(session, "ML.ADVANCED_WEIGHTS(MODEL sizes)")
    rows = session.run(
        "SELECT i / 24 AS day, share * 1e7 AS share, y FROM (SELECT (seconds - 1.7e9) / 3600 AS i, * FROM ticks)"
    )
    day, share, y = (column.to_numpy() for column in rows[-1].to_arrow().columns)
    design = np.column_stack([np.ones(60), day, share])
    exact = np.linalg.lstsq(design, y)[0]
    rest = y - design @ exact
    errors = np.sqrt(rest @ rest / 57 * np.diag(np.linalg.inv(design.T @ design)))
    for name, place, unit in (("seconds", 1, 86400), ("share", 2, 1e-7)):
        assert found[name, None]["weight"] * unit == pytest.approx(exact[place], rel=1e-6)
        assert found[name, None]["standard_error"] * unit == pytest.approx(errors[place], rel=1e-6)
    at_zero = exact[0] - exact[1] * 1.7e9 / 86400
    assert found["__INTERCEPT__", None]["weight"] == pytest.approx(at_zero, rel=1e-6)


def test_a_number_as_a_category_has_a_weight_for_each_value(session: Session) -> None:
    session.run("SELECT x, y FROM t TO TRAIN LinearRegressor COLUMN VOCABULARIZE(x) LABEL y INTO values_of_x")
    found = weights(session, "ML.ADVANCED_WEIGHTS(MODEL values_of_x)")
    assert [name for name, value in found if value is not None] == ["x"] * 6


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        ("LinearRegressor COLUMN LN(x + 1)", "the model sees standardize"),
        ("LinearRegressor COLUMN BUCKETIZE(x, 3)", "the model sees one_hot"),
        ("LinearRegressor WITH train.weight_column = w", "the model weighs its rows"),
    ],
)
def test_a_model_of_other_inputs_than_its_columns_is_refused(
    session: Session, statement: str, reason: str
) -> None:
    session.run(f"SELECT x, 1 + x % 3 AS w, y FROM t TO TRAIN {statement} LABEL y INTO refused")
    with pytest.raises(SemanticError, match=reason):
        session.run("SELECT * FROM ML.ADVANCED_WEIGHTS(MODEL refused)")
