"""Functions of BigQuery ML on values, and its list of models, in ordinary SQL."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from edl.errors import SourceError, StatementSyntaxError
from sqlflow_edl.session.session import Session
from tests.databases import Databases
from tests.sessions import open_in_folder


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    with open_in_folder(tmp_path_factory.mktemp("values")) as opened:
        opened.run(
            "CREATE TABLE t AS SELECT range AS x, ['b', NULL, 'a', 'b', 'c'][1 + range] AS k FROM range(5)"
        )
        yield opened


def column(session: Session, text: str) -> list[object]:
    """Return the first column of the last result."""
    return session.run(text)[-1].to_arrow().column(0).to_pylist()


@pytest.mark.parametrize(
    ("call", "values"),
    [
        ("ML.STANDARD_SCALER(x) OVER ()", [-1.264911, -0.632456, 0.0, 0.632456, 1.264911]),  # as on its page
        ("ml.min_max_scaler(x + 1) OVER ()", [0.0, 0.25, 0.5, 0.75, 1.0]),
        ("ML.MIN_MAX_SCALER(x) OVER (PARTITION BY x % 2)", [0.0, 0.0, 0.5, 1.0, 1.0]),
        ("ML . MAX_ABS_SCALER(x - 4) OVER ()", [-1.0, -0.75, -0.5, -0.25, 0.0]),
        ("ML.ROBUST_SCALER(x) OVER ()", [-1.0, -0.5, 0.0, 0.5, 1.0]),
        ("ML.ROBUST_SCALER(x, [0, 100]) OVER ()", [-0.5, -0.25, 0.0, 0.25, 0.5]),
        ("ML.IMPUTER(NULLIF(x, 0), 'mean') OVER ()", [2.5, 1.0, 2.0, 3.0, 4.0]),
        ("ML.IMPUTER(k, 'most_frequent') OVER ()", ["b", "b", "a", "b", "c"]),
        ("ML.BUCKETIZE(NULLIF(x, 3), [1, 2.5])", ["bin_1", "bin_2", "bin_2", None, "bin_3"]),
        ("ML.QUANTILE_BUCKETIZE(x, 2) OVER ()", ["bin_1", "bin_1", "bin_2", "bin_2", "bin_2"]),
        ("ML.LABEL_ENCODER(k) OVER ()", [2, 0, 1, 2, 3]),
        ("ML.NGRAMS(['a', 'b', k], [2, 3], '#')[1]", ["a#b"] * 5),
        ("ML.DISTANCE([0, x], [3, x + 4])", [5.0] * 5),
        ("ML.DISTANCE([0, x], [3, x - 4], 'MANHATTAN')", [7.0] * 5),
        ("round(ML.DISTANCE([1.0, 2.0], [2.0, 4.0], 'COSINE'), 9)", [0.0] * 5),
        ("ML.POLYNOMIAL_EXPAND(STRUCT(x, x + 1 AS y), 2).x_y", [0, 2, 6, 12, 20]),
        ('ml.polynomial_expand(struct(x), 1)."x"', [0, 1, 2, 3, 4]),
        ("ML.FEATURE_CROSS(STRUCT(x, k)).x_k", ["0_b", None, "2_a", "3_b", "4_c"]),
        ("ML.ONE_HOT_ENCODER(k) OVER ()[1].index", [2, 0, 1, 2, 3]),
        ("ML.HASH_BUCKETIZE(k, 1)", [0] * 5),
        ("ML.LP_NORM([3, -4], 2)", [5.0] * 5),
        ("ML.NORMALIZER([x, 0.0], 1)[1]", [None, 1.0, 1.0, 1.0, 1.0]),
        ("1 - ML.MIN_MAX_SCALER(ML.LP_NORM([x, 0], 2)) OVER ()", [1.0, 0.75, 0.5, 0.25, 0.0]),
    ],
)
def test_a_function_is_an_expression_of_the_database(
    session: Session, call: str, values: list[object]
) -> None:
    found = column(session, f"SELECT {call} AS value FROM t ORDER BY x")
    assert found == pytest.approx(values, abs=1e-6) if isinstance(values[-1], float) else found == values


def test_columns_with_the_names_of_places_and_values_are_not_hidden(session: Session) -> None:
    rows = "(SELECT 'b' AS n, [3.0, 4.0] AS value, 'a' AS i) AS r"
    assert column(session, f"SELECT ML.NGRAMS([i, n], [2, 2], '+') FROM {rows}") == [["a+b"]]
    assert column(session, f"SELECT ML.NORMALIZER(value) FROM {rows}") == [[0.6, 0.8]]


def test_runs_of_words_come_in_the_order_of_their_first_word(session: Session) -> None:
    [found] = column(session, "SELECT ML.NGRAMS(['a', 'b', 'c'], [2, 3], '#')")
    assert found == ["a#b", "a#b#c", "b#c"]  # as on its page


def test_a_table_is_made_of_functions_and_of_predictions_at_once(session: Session) -> None:
    trees = "TO TRAIN BoostedTreesRegressor WITH train.num_boost_round = 2 LABEL y"
    session.run(f"SELECT x, x * 2.0 AS y FROM t {trees} INTO doubled")
    session.run(
        "CREATE TABLE scaled AS SELECT ML.MIN_MAX_SCALER(predicted_y) OVER () AS share "
        "FROM ML.PREDICT(MODEL doubled, (SELECT x FROM t))"
    )
    assert len(column(session, "SELECT share FROM scaled")) == 5


def test_a_schema_ml_of_the_database_is_its_own(session: Session) -> None:
    session.run("CREATE SCHEMA ml; CREATE MACRO ml.lp_norm(a, b) AS 'mine'")
    assert column(session, "SELECT ML.LP_NORM([3], 2)") == ["mine"]
    session.run("DROP SCHEMA ml CASCADE")


@pytest.mark.parametrize(
    ("call", "why"),
    [
        ("ML.STANDARD_SCALER(x)", "needs OVER"),
        ("ML.BUCKETIZE(x, [1]) OVER ()", "has no OVER"),
        ("ML.BUCKETIZE(x)", "other arguments"),
        ("ML.BUCKETIZE(x, [2, 1])", "ascending"),
        ("ML.BUCKETIZE(x, [k])", "a list of numbers"),
        ("ML.QUANTILE_BUCKETIZE(x, 1) OVER ()", "2 to 100 bins"),
        ("ML.IMPUTER(x, 'last') OVER ()", "not 'last'"),
        ("ML.LABEL_ENCODER(k) OVER (PARTITION BY x)", "nothing between"),
        ("ML.NGRAMS([k], [2, 1])", "least and the most"),
        ("ML.DISTANCE([1], [2], 'HAMMING')", "not 'HAMMING'"),
        ("ML.LP_NORM([1], 0.5)", "from 1 on"),
        ("ML.FEATURE_CROSS(STRUCT(x))", "crosses two columns"),
    ],
)
def test_other_arguments_are_an_error_at_their_place(session: Session, call: str, why: str) -> None:
    text = f"SELECT {call} FROM t"
    with pytest.raises(StatementSyntaxError, match=why) as caught:
        session.run(text)
    assert caught.value.span is not None
    assert text[caught.value.span.start :].startswith("ML.")


def test_an_error_around_another_function_is_at_the_statement(session: Session) -> None:
    text = "SELECT ML.MIN_MAX_SCALER(ML.LP_NORM([x], 2)) FROM t"
    with pytest.raises(StatementSyntaxError, match="needs OVER") as caught:
        session.run(f"SELECT 1; {text}")
    assert caught.value.span is not None
    assert (caught.value.span.start, caught.value.span.end) == (10, 10 + len(text))


def test_an_error_behind_the_functions_is_the_databases(session: Session) -> None:
    with pytest.raises(SourceError, match="nothing_here"):
        session.run("SELECT ML.MAX_ABS_SCALER(nothing_here) OVER () FROM t")


def test_the_models_are_a_table_of_the_information_schema(session: Session) -> None:
    trees = "TO TRAIN BoostedTreesClassifier WITH train.num_boost_round = 2 LABEL k"
    for name in ('"it\'s"', "plain", "plain"):
        session.run(f"SELECT x, k FROM t WHERE k <> 'c' {trees} INTO {name}")
    listed = column(
        session, "SELECT model_name FROM INFORMATION_SCHEMA.MODELS WHERE model_type LIKE '%Classifier'"
    )
    assert sorted(listed) == ["it's", "plain"]
    joined = (
        "FROM my_data.INFORMATION_SCHEMA.MODELS m JOIN t ON x = 1 WHERE m.creation_time > DATE '2020-01-01'"
    )
    assert set(column(session, f"SELECT DISTINCT m.model_name {joined}")) >= {"it's", "plain"}


def test_a_database_without_models_lists_none(tmp_path: Path) -> None:
    with Session(f"duckdb:///{tmp_path}/t.duckdb", create=True) as session:
        assert column(session, "SELECT * FROM INFORMATION_SCHEMA.MODELS") == []


@pytest.mark.parametrize("dialect", ["mysql", "postgres", "sqlite"])
def test_scalers_are_expressions_of_each_database(databases: Databases, dialect: str) -> None:
    session = databases.filled(dialect)
    rows = "(SELECT 1 AS x UNION ALL SELECT 2 UNION ALL SELECT 5) AS numbers"
    for call, values in (
        ("ML.MIN_MAX_SCALER(x) OVER ()", [0.0, 0.25, 1.0]),
        ("ML.MAX_ABS_SCALER(x) OVER ()", [0.2, 0.4, 1.0]),
        ("ML.LABEL_ENCODER(x) OVER ()", [1, 2, 3]),
    ):
        assert [
            float(value) for value in column(session, f"SELECT {call} AS s FROM {rows} ORDER BY x")
        ] == values
    assert column(session, f"SELECT ML.BUCKETIZE(x, [2]) AS s FROM {rows} ORDER BY x") == [
        "bin_1",
        "bin_2",
        "bin_2",
    ]
    with pytest.raises(StatementSyntaxError, match=f"{dialect} has no expression for ML.NGRAMS"):
        session.run("SELECT ML.NGRAMS(x, [1, 2])")
