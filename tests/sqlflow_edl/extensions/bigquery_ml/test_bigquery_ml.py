"""Statements of BigQuery ML: they compile to what our own ones compile to, and run on DuckDB."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import NormalDist

import msgspec
import pyarrow as pa
import pytest

import sqlflow_edl
from edl.errors import SemanticError, SQLFlowError, StatementSyntaxError
from sqlflow_edl.extensions.bigquery_ml.functions import ModelFunction
from sqlflow_edl.extensions.bigquery_ml.reference_columns import as_in_reference
from sqlflow_edl.session.predictions import with_texts
from sqlflow_edl.session.session import Session
from sqlflow_edl.syntax import parse
from sqlflow_edl.syntax.ast import Statement
from sqlflow_edl.syntax.predict_calls import predict_calls
from tests.databases import Databases
from tests.sql_cases import Case, cases, refusal


def in_duckdb(file: str) -> list[Case]:
    return [case for case in cases(file) if case.dialect == "duckdb"]


@pytest.mark.variants(2)
@pytest.mark.parametrize("case", in_duckdb("bigquery/models.sql"), ids=str)
def test_a_model_equals_our_own_statements_model(case: Case, databases: Databases) -> None:
    session = databases.filled("duckdb")
    [theirs] = session.compile(case.program)
    [ours] = session.compile(case.fields["same"])
    assert without_statement(theirs.spec) == without_statement(ours.spec)
    if theirs.spec.search is not None:
        assert theirs.spec.statement == case.program
        for candidate in theirs.spec.search.candidates:
            [again] = session.compile(candidate.spec.statement)
            assert again.spec.model == candidate.spec.model, "the statement of a trial runs by itself"


@pytest.mark.variants(2)
@pytest.mark.parametrize(
    ("options", "warns"),
    [
        ("model_type = 'LINEAR_REG', max_iterations = 5", True),
        (
            "model_type = 'LINEAR_REG', max_iterations = 5, optimize_strategy = 'BATCH_GRADIENT_DESCENT'",
            False,
        ),
        ("model_type = 'LINEAR_REG'", False),
        ("model_type = 'LOGISTIC_REG', max_iterations = 5", False),
    ],
)
def test_iterations_that_bigquery_would_not_count_are_told(
    options: str, warns: bool, session: Session
) -> None:
    text = (
        f"CREATE MODEL m OPTIONS({options}, input_label_cols = ['price']) AS SELECT rooms, price FROM houses"
    )
    [compiled] = session.compile(text)
    assert any("BigQuery solves LINEAR_REG exactly" in note for note in compiled.notes) == warns


def test_columns_that_transform_does_not_list_are_no_features(databases: Databases) -> None:
    text = (
        "CREATE MODEL m TRANSFORM({}, income) OPTIONS(model_type='linear_reg', input_label_cols=['income']) AS "
        "SELECT age, city, income FROM people"
    )
    session = databases.filled("duckdb")
    for items, columns in (("LN(age) AS age", ("age",)), ("*", ("age", "city"))):
        [compiled] = session.compile(text.format(items))
        assert compiled.spec.columns == columns


def without_statement(job: object) -> object:
    """The JobSpec without its text, and its candidates' without theirs."""
    replace = msgspec.structs.replace
    search = job.search  # type: ignore[attr-defined]
    if search is not None:
        candidates = tuple(replace(each, spec=replace(each.spec, statement="")) for each in search.candidates)
        search = replace(search, candidates=tuple(replace(each, name="") for each in candidates))
    return replace(job, statement="", search=search)  # type: ignore[type-var]


@pytest.mark.variants(12)
@pytest.mark.parametrize("case", in_duckdb("bigquery/errors.sql"), ids=str)
def test_an_error_is_told_at_its_place(case: Case) -> None:
    refusal(case, parse)


def test_places_are_those_in_the_program() -> None:
    before = "SELECT 1;\n\n-- a model\n"
    text = "CREATE MODEL m OPTIONS(model_type='linear_reg', learn_rate=0.5) AS SELECT 2 AS label;"
    _, statement = parse(before + text)
    [rate] = statement.attributes
    assert (before + text)[rate.key_span.start : rate.value.span.end] == "learn_rate=0.5"
    assert statement.select == "SELECT 2 AS label"
    assert statement.select_span is not None
    assert (before + text)[statement.select_span.start :] == "SELECT 2 AS label;"


# Functions --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def session() -> Iterator[Session]:
    with sqlflow_edl.connect("duckdb:") as opened:
        list(
            opened.run(
                "CREATE TABLE houses AS SELECT range % 7 AS rooms, (range % 7) * 10.0 AS price, "
                "CASE WHEN range % 7 > 3 THEN 'large' ELSE 'small' END AS size FROM range(140);"
                "CREATE MODEL shop.prices OPTIONS(model_type='boosted_tree_regressor', input_label_cols=['price'], "
                "max_iterations=20) AS SELECT rooms, price FROM houses;"
                "CREATE MODEL sizes OPTIONS(model_type='boosted_tree_classifier', input_label_cols=['size'], "
                "max_iterations=20) AS SELECT rooms, size FROM houses;"
                "CREATE MODEL bare OPTIONS(model_type='boosted_tree_regressor', input_label_cols=['price'], "
                "data_split_method='NO_SPLIT', max_iterations=2) AS SELECT rooms, price FROM houses;"
                "CREATE TABLE days AS SELECT DATE '2024-01-01' + CAST(d AS INT) AS day, k AS store, "
                "10 * k + d % 7 AS sold FROM range(60) AS a(d), range(1, 3) AS b(k);"
                "CREATE MODEL sales OPTIONS(model_type='ARIMA_PLUS', time_series_timestamp_col='day', "
                "time_series_data_col='sold', time_series_id_col='store', horizon=5) AS SELECT * FROM days;"
                "CREATE TABLE points AS SELECT range AS x FROM range(9)"
            )
        )
        yield opened


def rows(session: Session, text: str) -> list[dict[str, object]]:
    *_, last = session.run(text)
    return last.to_arrow().to_pylist()


def test_predictions_stand_beside_the_columns_of_the_query(session: Session) -> None:
    found = rows(session, "SELECT * FROM ML.PREDICT(MODEL shop.prices, TABLE houses) ORDER BY rooms LIMIT 1")
    assert set(found[0]) == {"rooms", "price", "size", "predicted_price"}
    assert found[0]["predicted_price"] == pytest.approx(0.0, abs=5)
    [total] = rows(
        session,
        "SELECT count(*) AS n FROM houses h JOIN ML.PREDICT(MODEL sizes, (SELECT DISTINCT rooms FROM houses)) p "
        "USING (rooms) WHERE p.predicted_size = 'large'",
    )
    assert total == {"n": 60}


def test_a_model_that_exists_is_not_trained_where_it_may_not(session: Session) -> None:
    options = "OPTIONS(model_type='boosted_tree_regressor', input_label_cols=['price'], max_iterations=1)"
    create = f"CREATE MODEL IF NOT EXISTS {{}} {options} AS SELECT rooms, price FROM houses"
    [result] = session.run(create.format("shop.prices"))
    assert result.message == "there is a model shop.prices@1 already; nothing is trained"
    [statement] = session.parse(create.format("shop.prices"))
    [row] = session.plan(statement).to_arrow().to_pylist()
    assert row["value"] == "nothing, as there is shop.prices@1"
    [result] = session.run(create.format("shop.new_prices"))
    assert result.model == "shop.new_prices@1"
    session.run("DROP MODEL shop.new_prices")


def test_a_model_is_exported_to_a_file(session: Session, tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx")
    for uri in (str(tmp_path / "a.onnx"), (tmp_path / "b.onnx").as_uri()):
        [result] = session.run(f"EXPORT MODEL `shop.prices` OPTIONS(URI = '{uri}')")
        assert result.message.startswith("wrote shop.prices@1 to ")
    assert onnx.load(tmp_path / "a.onnx").graph.input[0].name == "rooms"
    assert (tmp_path / "a.onnx").read_bytes() == (tmp_path / "b.onnx").read_bytes()


@pytest.mark.parametrize(
    ("options", "message", "place"),
    [
        ("URI = 'gs://bucket/m'", "exported to a file of this machine, not to gs", "'gs://bucket/m'"),
        ("URL = 'm.onnx'", "unknown option URL", "URL"),
        ("URI = 3", "the options name no file", "OPTIONS"),
        ("URI = 'a.onnx', uri = 'b.onnx'", "uri is given twice", "uri"),
        ("URI = 'm.keras'", "a model in lightgbm cannot be written to m.keras", "'m.keras'"),
    ],
)
def test_an_export_that_cannot_be_is_told_at_its_place(
    session: Session, options: str, message: str, place: str
) -> None:
    text = f"EXPORT MODEL sizes OPTIONS({options})"
    with pytest.raises(SQLFlowError, match=message) as raised:
        session.run(text)
    span = raised.value.span
    assert span is not None
    assert text[span.start : span.end] == place


def test_a_forecast_has_a_horizon_without_the_option_and_says_so(session: Session) -> None:
    text = (
        "CREATE MODEL m OPTIONS(model_type='ARIMA_PLUS', time_series_timestamp_col='day', "
        "time_series_data_col='sold', time_series_id_col='store') AS SELECT * FROM days"
    )
    [statement] = session.parse(text)
    assert statement.warnings == (
        "the forecast has a horizon of 30 steps; horizon = 90 in OPTIONS asks for 90",
    )
    assert [each.value.value for each in statement.attributes if each.key == "forecast.horizon"] == [30]  # type: ignore[union-attr]


@pytest.mark.soak
def test_a_threshold_is_written_as_a_struct(session: Session) -> None:
    text = "SELECT * FROM ML.PREDICT(MODEL sizes, (SELECT 0 AS rooms), STRUCT({} AS threshold))"
    found = [rows(session, text.format(value))[0]["predicted_size"] for value in (1e-9, 0.5)]
    assert found == ["small", "small"]
    (call,) = predict_calls(text.format(0.25), "duckdb")
    [threshold] = call.attributes
    assert (threshold.key, threshold.value.value) == ("predict.threshold", 0.25)  # type: ignore[union-attr]
    assert text.format(0.25)[threshold.value.span.start : threshold.value.span.end] == "0.25"


@pytest.mark.soak
def test_figures_and_explanations_are_rows(session: Session) -> None:
    [figures] = rows(session, "SELECT * FROM ML.EVALUATE(MODEL shop.prices, TABLE houses)")
    [ours] = rows(session, "SELECT * FROM houses TO EVALUATE shop.prices")
    assert (figures["mean_absolute_error"], figures["r2_score"]) == (ours["mae"], ours["r2"])
    assert figures["mean_squared_error"] == pytest.approx(ours["rmse"] ** 2)
    assert None not in figures.values()
    text = "SELECT * FROM ML.EXPLAIN_PREDICT(MODEL shop.prices, (SELECT rooms, price FROM houses LIMIT 7))"
    for each in rows(session, text):
        [share] = each["top_feature_attributions"]
        assert share["feature"] == "rooms"
        assert each["baseline_prediction_value"] + share["attribution"] == pytest.approx(
            each["prediction_value"]
        )
        assert each["prediction_value"] == pytest.approx(each["predicted_price"])
        assert "price" in each, "the label is a column of the query"


@pytest.mark.variants(5)
@pytest.mark.parametrize("case", in_duckdb("bigquery/functions.sql"), ids=str)
def test_a_function_gives_the_rows_of_our_own_statement(case: Case, session: Session) -> None:
    found = rows(session, case.program)
    assert found
    if "same" in case.fields:
        assert found == rows(session, case.fields["same"])
    if "columns" in case.fields:
        assert set(case.fields["columns"].split(", ")) <= set(found[0])


@pytest.mark.variants(6)
@pytest.mark.parametrize("case", in_duckdb("bigquery/reference.sql"), ids=str)
def test_a_statement_of_the_reference_compiles(case: Case, session: Session) -> None:
    [compiled] = session.compile(case.program)
    assert compiled.spec.label is not None
    if "hparam_tuning_objectives" in case.program:
        assert compiled.spec.search is not None
        assert compiled.spec.search.metric == "auc"
    if "class_weights = [" in case.program:
        assert compiled.spec.loss.params["class_weights"] == (0.75, 0.25), "large comes before small"
    if "instance_weight_col" in case.program:
        assert compiled.spec.weights is not None


@pytest.mark.variants(5)
@pytest.mark.parametrize("case", in_duckdb("bigquery/function_errors.sql"), ids=str)
def test_a_model_that_does_not_suit_is_told_at_its_place(case: Case, session: Session) -> None:
    refusal(case, lambda text: rows(session, text))


def test_an_explanation_by_probabilities_explains_the_predicted_class(session: Session) -> None:
    [compiled] = session.compile(
        "CREATE MODEL m OPTIONS(model_type='logistic_reg', input_label_cols=['size']) AS "
        "SELECT rooms, price, size FROM houses"
    )
    [call] = predict_calls("SELECT * FROM ML.EXPLAIN_PREDICT(MODEL m, (SELECT 1))", "duckdb")
    ours = {
        "note": ["x", "y"],
        "predicted_size": ["large", "small"],
        "predicted_size_confidence": [0.7, 0.9],
        "size_base": [0.6, 0.6],  # of small
        "rooms_shap": [0.1, 0.0],
        "price_shap": [-0.4, 0.3],
    }
    found = as_in_reference(call, compiled.spec, pa.table(ours), tuple(ours)[1:]).to_pylist()
    assert [each["baseline_prediction_value"] for each in found] == pytest.approx([0.4, 0.6])
    assert [each["prediction_value"] for each in found] == pytest.approx([0.7, 0.9])
    shares = [(each["feature"], each["attribution"]) for each in found[0]["top_feature_attributions"]]
    assert shares == [("price", 0.4), ("rooms", -0.1)]


@pytest.mark.parametrize("call", ["ML.PREDICT(MODEL sizes, TABLE houses)", "PREDICT(sizes, houses)"])
def test_explain_of_a_query_with_predictions_shows_what_would_run(call: str, session: Session) -> None:
    found = rows(session, f"EXPLAIN SELECT count(*) FROM {call}")
    assert {"statement", "model", "features"} <= {row["section"] for row in found}
    assert {"name": "sizes@1", "section": "model"}.items() <= found[1].items()


def test_explain_analyze_belongs_to_the_database(session: Session) -> None:
    [row] = rows(session, "EXPLAIN ANALYZE SELECT * FROM ML.FEATURE_INFO(MODEL sizes)")
    assert row["explain_key"] == "analyzed_plan"
    assert rows(session, "EXPLAIN SELECT 1")[0]["explain_key"] == "physical_plan"


def test_weights_of_categories_are_json_where_a_database_has_no_lists_of_records() -> None:
    weights = [
        None,
        [{"category": "a", "weight": 0.5}, {"category": None, "weight": 1.0}],
        [],
        [{"category": 'NaN":NaN,"\\', "weight": math.nan}, {"category": ":NaN", "weight": -math.inf}],
    ]
    given = pa.table({"name": ["x", "y", "z", "NaN"], "weights": weights})
    found = with_texts(given.to_reader(max_chunksize=3)).read_all()
    assert found["weights"].to_pylist() == [
        None,
        '[{"category":"a","weight":0.5},{"category":null,"weight":1.0}]',
        "[]",
        r'[{"category":"NaN\":NaN,\"\\","weight":null},{"category":":NaN","weight":null}]',
    ]
    assert found["name"].to_pylist() == given["name"].to_pylist()


def test_lists_of_numbers_are_json_where_a_database_has_no_lists() -> None:
    given = pa.table({"name": ["x", "y"], "quantiles": [[1.5, 2.0], None]})
    assert with_texts(given.to_reader()).read_all() == given
    found = with_texts(given.to_reader(), lists=True).read_all()
    assert found["quantiles"].to_pylist() == ["[1.5, 2.0]", None]


def derived(
    session: Session, training: str, call: str, tables: dict[str, dict[str, list[object]]]
) -> list[dict]:
    """The rows of a call, without the job: the predictions are `tables`, by the query."""

    def predict(statement: Statement) -> tuple[pa.Table, tuple[str, ...]]:
        table = pa.table(tables[statement.select])
        return table, tuple(table.column_names[1:])

    return of_call(session, training, call, predict)


def of_call(
    session: Session,
    training: str,
    call: str,
    predict: Callable[[Statement], tuple[pa.Table, tuple[str, ...]]],
) -> list[dict]:
    """The rows of a call of a model that was not trained."""
    [compiled] = session.compile(training)
    [found] = predict_calls(call, "duckdb")
    statement = Statement("predict", call, found.span, select=found.query)
    function = ModelFunction(found, statement, compiled.spec, session.source, predict, lambda _: None)
    return function.rows().to_pylist()


def test_the_share_of_anomalies_is_taken_from_the_training_rows(session: Session) -> None:
    training = "SELECT x FROM points"
    scores = {
        training: {
            "x": [0] * 11,
            "anomaly": [False] * 11,
            "anomaly_score": [each / 20 for each in range(11)],
        },
        "SELECT 1": {"x": [1, 2], "anomaly": [False, False], "anomaly_score": [0.39, 0.41]},
    }
    call = "SELECT * FROM ML.DETECT_ANOMALIES(MODEL m, {}(SELECT 1))"
    train = f"{training} TO TRAIN IsolationForest WITH model.contamination = 0.05 INTO m"
    found = derived(session, train, call.format("STRUCT(0.2 AS contamination), "), scores)
    assert [each["is_anomaly"] for each in found] == [False, True]
    for own in ("", "STRUCT(0.05 AS contamination), "):
        assert not any(each["is_anomaly"] for each in derived(session, train, call.format(own), scores))


def test_the_distance_to_a_centre_is_in_units_of_the_radius_of_the_cluster(session: Session) -> None:
    training = "SELECT x FROM points"
    distances = {
        training: {"x": [0] * 4, "cluster": [0, 0, 1, 1], "cluster_distance": [3.0, 5.0, 0.0, 0.0]},
        "SELECT 1": {"x": [1, 2], "cluster": [0, 1], "cluster_distance": [34.0, None]},
    }
    call = "SELECT * FROM ML.DETECT_ANOMALIES(MODEL m, STRUCT(0.1 AS contamination), (SELECT 1))"
    train = f"{training} TO TRAIN KMeans WITH model.n_clusters = 3 INTO m"
    near, unknown = derived(session, train, call, distances)
    assert near == {
        "x": 1,
        "is_anomaly": True,
        "normalized_distance": pytest.approx(34 / 17**0.5),
        "centroid_id": 1,
    }
    assert (unknown["is_anomaly"], unknown["normalized_distance"]) == (None, None)


@pytest.mark.parametrize(
    ("settings", "message", "place"),
    [
        ("", "needs the share of anomalies among the training rows", "m"),
        ("STRUCT(0.6 AS contamination), ", "contamination is a number between 0 and 0.5", "0.6"),
    ],
)
def test_a_share_of_anomalies_is_needed_and_below_a_half(
    session: Session, settings: str, message: str, place: str
) -> None:
    call = f"SELECT * FROM ML.DETECT_ANOMALIES(MODEL m, {settings}(SELECT 1))"
    with pytest.raises(SemanticError, match=message) as raised:
        derived(session, "SELECT x FROM points TO TRAIN KMeans INTO m", call, {})
    assert raised.value.span is not None
    assert call[raised.value.span.start : raised.value.span.end] == place


@pytest.mark.parametrize("day", ["day", "row"])
def test_the_anomalies_of_a_forecast_lie_outside_of_its_interval(session: Session, day: str) -> None:
    call = f"""SELECT * FROM ML.DETECT_ANOMALIES(MODEL m, STRUCT({{}} AS anomaly_prob_threshold), (
        SELECT 7 AS {day}, 'a' AS note, 12.0 AS sold UNION ALL SELECT 6, 'b', 5.0 UNION ALL SELECT 8, 'c', NULL))"""
    training = f"SELECT range AS {day}, sold FROM (SELECT range, 1.0 AS sold FROM range(6))"
    train = (
        f"{training} TO TRAIN Forecast WITH forecast.time = {day}, forecast.horizon = 3, "
        "forecast.quantiles = [0.1, 0.9] LABEL sold INTO m"
    )
    queries: list[str] = []

    def predict(statement: Statement) -> tuple[pa.Table, tuple[str, ...]]:
        queries.append(statement.select)
        found = {day: [6, 7, 8], "sold": [10.0] * 3, "sold_q10": [8.0] * 3, "sold_q90": [11.0] * 3}
        return pa.table(found), ("sold", "sold_q10", "sold_q90")

    high, low, unknown = of_call(session, train, call.format(0.8), predict)
    assert (high["note"], high["sold"], high["is_anomaly"], low["is_anomaly"]) == ("a", 12.0, True, True)
    assert (high["lower_bound"], high["upper_bound"]) == pytest.approx((8, 11))
    assert high["anomaly_probability"] == pytest.approx(
        2 * NormalDist().cdf(2 * NormalDist().inv_cdf(0.9)) - 1
    )
    assert (unknown["is_anomaly"], unknown["anomaly_probability"]) == (None, None)
    high, low, _ = of_call(session, train, call.format(0.995), predict)
    assert (high["is_anomaly"], low["is_anomaly"]) == (False, True)
    *_, past = session.run(queries[0])
    days = [(each[day], each["sold"]) for each in past.to_arrow().to_pylist()]
    assert sorted(days) == [(step, 1.0 if step < 6 else None) for step in range(9)], (
        "values to judge are not known"
    )


def test_each_series_is_forecast_from_its_own_past(session: Session) -> None:
    call = """SELECT * FROM ML.DETECT_ANOMALIES(MODEL m,
        (SELECT 'a' AS shop, 9 AS day, 1.0 AS sold UNION ALL SELECT 'b', 3, 1.0))"""
    shops = "(SELECT 'a' AS shop UNION ALL SELECT 'b' UNION ALL SELECT 'c')"
    training = f"SELECT shop, range AS day, 1.0 AS sold FROM range(9), {shops} WHERE shop = 'a' OR range < 3"
    train = (
        f"{training} TO TRAIN Forecast WITH forecast.time = day, forecast.series = shop, forecast.horizon = 2, "
        "forecast.quantiles = [0.1, 0.9] LABEL sold INTO m"
    )
    queries: list[str] = []

    def predict(statement: Statement) -> tuple[pa.Table, tuple[str, ...]]:
        queries.append(statement.select)
        found = {"shop": ["a", "b"], "day": [9, 3], "sold": [1.0] * 2, "low": [0.0] * 2, "high": [2.0] * 2}
        return pa.table(found), ("sold", "low", "high")

    assert [each["is_anomaly"] for each in of_call(session, train, call, predict)] == [False, False]
    past = [(each["shop"], each["day"]) for each in rows(session, queries[0])]
    assert sorted(past) == [*(("a", day) for day in range(10)), *(("b", day) for day in range(4))]


def test_an_interval_without_quantiles_of_its_own_follows_a_normal_distribution(session: Session) -> None:
    training = "SELECT day, sold FROM days WHERE store = 1"
    values = {"day": [2, 1], "sold": [10.0, 20.0], "sold_q10": [9.0, 18.0], "sold_q90": [11.0, 21.0]}
    call = "SELECT * FROM ML.FORECAST(MODEL m, STRUCT(1 AS horizon, {} AS confidence_level))"
    level = 2 * NormalDist().cdf(2 * NormalDist().inv_cdf(0.9)) - 1
    train = (
        f"{training} TO TRAIN Forecast WITH forecast.time = day, forecast.horizon = 2, "
        "forecast.quantiles = [0.1, 0.9] LABEL sold INTO m"
    )
    for of, bounds in ((0.8, (18, 21)), (level, (16, 22))):
        [row] = derived(session, train, call.format(of), {training: values})
        assert (row["forecast_timestamp"], row["forecast_value"]) == (1, 20.0)
        found = row["prediction_interval_lower_bound"], row["prediction_interval_upper_bound"]
        assert found == pytest.approx(bounds)


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        (
            "SELECT * FROM ML.GLOBAL_EXPLAIN(MODEL m, STRUCT(1 AS class_levels_explain))",
            "has no setting class",
            "class_level_explain?",
        ),
        (
            "SELECT * FROM ML.PREDICT(MODEL m, TABLE t, STRUCT(0.3 AS threshold,))",
            "has a comma without",
            "STRUCT",
        ),
        ("SELECT * FROM ML.GENERATE_TEXT(MODEL m)", "there is no ML.GENERATE_TEXT", "a service of Google"),
        (
            "SELECT * FROM ML.ARIMA_COEFFICIENTS(MODEL m)",
            "there is no ML.ARIMA",
            "ML.GLOBAL_EXPLAIN(MODEL m)",
        ),
        ("SELECT * FROM ML.WEIGHTS(MODEL m, TABLE t)", "takes a model alone", "(MODEL my_model)"),
        (
            "SELECT * FROM ML.CENTROIDS(MODEL m, STRUCT(TRUE AS standardise))",
            "no setting standardise",
            "standardize?",
        ),
        ("SELECT * FROM ML.TRAINING_INFO(MODEL m, TABLE t)", "takes a model alone", "(MODEL my_model)"),
        ("SELECT * FROM ML.PREDIKT(MODEL m, TABLE t)", "there is no ML.PREDIKT", "did you mean PREDICT?"),
        ("SELECT * FROM ML.PREDICT(MODEL m)", "ML.PREDICT needs a query behind the model", "TABLE my_table"),
    ],
)
def test_other_functions_are_answered_with_what_to_write(text: str, message: str, hint: str) -> None:
    with pytest.raises(StatementSyntaxError, match=message) as caught:
        predict_calls(text, "duckdb")
    assert hint in (caught.value.hint or "")


def test_functions_of_a_schema_ml_are_ordinary() -> None:
    assert predict_calls("SELECT ml.score(a), ml.predictor FROM ml.evaluate_all(t)", "duckdb") == []
