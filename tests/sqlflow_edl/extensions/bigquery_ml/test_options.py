"""Options of CREATE MODEL as attributes, with what they warn of."""

from __future__ import annotations

import pytest

from edl.errors import SQLFlowError
from sqlflow_edl.syntax import parse
from sqlflow_edl.syntax.ast import Call, Statement


def create(options: str, query: str = "SELECT 1 AS x, 2 AS label") -> Statement:
    [statement] = parse(f"CREATE MODEL m OPTIONS({options}) AS {query}")
    return statement


def attributes(options: str) -> dict[str, object]:
    return {each.key: getattr(each.value, "value", each.value) for each in create(options).attributes}


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ("model_type='linear_reg', l2_reg=0.5", {"model.l2": 0.5}),
        ("model_type='linear_reg', l1_reg=0, l2_reg=0", {}),
        (
            "model_type='linear_reg', l1_reg=1, l2_reg=2",
            {
                "optimizer": "ftrl",
                "optimizer.l1_regularization_strength": 1,
                "optimizer.l2_regularization_strength": 2,
            },
        ),
        (
            "model_type='dnn_regressor', optimizer='ADAM', l2_reg=0.1",
            {"optimizer": "adamw", "optimizer.weight_decay": 0.1},
        ),
        (
            "model_type='dnn_regressor', optimizer='FTRL', l1_reg=0.1",
            {"optimizer": "ftrl", "optimizer.l1_regularization_strength": 0.1},
        ),
        ("model_type='boosted_tree_regressor', l1_reg=3", {"model.reg_alpha": 3}),
        ("model_type='boosted_tree_regressor', booster_type='dart'", {"model.booster": "dart"}),
        ("model_type='boosted_tree_regressor', booster_type='GBTREE', num_parallel_tree=1", {}),
        (
            "model_type='boosted_tree_regressor', num_parallel_tree=2, colsample_bylevel=0.5",
            {"model.num_parallel_tree": 2, "model.colsample_bylevel": 0.5, "model.framework": "xgboost"},
        ),
        ("model_type='automl_classifier', optimization_objective='MAXIMIZE_AU_ROC'", {"auto.metric": "auc"}),
    ],
)
def test_an_option_is_an_attribute(options: str, wanted: dict[str, object]) -> None:
    assert attributes(options) == wanted


def test_values_to_search_stay_calls() -> None:
    [penalty] = create("model_type='linear_reg', l2_reg=HPARAM_CANDIDATES([0, 0.1])").attributes
    assert isinstance(penalty.value, Call)
    assert penalty.value.function == "CANDIDATES"
    assert [getattr(each, "value", None) for each in penalty.value.args] == [0, 0.1]


FORECAST = "model_type='arima_plus', time_series_timestamp_col='x', time_series_data_col='label', horizon=3"


@pytest.mark.parametrize(
    ("option", "warning"),
    [
        ("non_seasonal_order=(1, 0, 1)", "non_seasonal_order has no effect"),
        ("clean_spikes_and_dips=TRUE", "values are learned as they are"),
        ("adjust_step_changes=FALSE", ""),
        ("seasonalities=['WEEKLY', 'YEARLY']", "seasonalities has no effect"),
        ("holiday_region=['US', 'CA']", "holidays are of one country"),
        ("holiday_region='DE'", ""),
    ],
)
def test_an_option_that_only_tunes_arima_is_told(option: str, warning: str) -> None:
    told = create(f"{FORECAST}, {option}").warnings
    assert (warning in " ".join(told)) if warning else told == ()


def test_a_country_and_a_lowest_value_of_a_forecast_are_attributes() -> None:
    found = attributes(f"{FORECAST}, holiday_region='US', forecast_limit_lower_bound=0")
    assert (found["forecast.holidays"], found["forecast.non_negative"]) == ("US", True)


def test_a_column_marks_the_first_centres() -> None:
    found = attributes(
        "model_type='kmeans', num_clusters=2, kmeans_init_method='CUSTOM', kmeans_init_col='is first'"
    )
    assert found == {"model.n_clusters": 2, "model.init_column": "is first"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("kmeans_init_method='CUSTOM'", "'CUSTOM' needs the column that marks the first centres"),
        ("kmeans_init_method='RANDOM', kmeans_init_col='a'", "needs kmeans_init_method = 'CUSTOM'"),
        ("kmeans_init_col='a'", "needs kmeans_init_method = 'CUSTOM'"),
        ("kmeans_init_method='FIRST'", "is not available"),
    ],
)
def test_the_method_and_the_column_of_first_centres_belong_together(options: str, message: str) -> None:
    with pytest.raises(SQLFlowError, match=message):
        create(f"model_type='kmeans', num_clusters=2, {options}")


def test_an_expiration_may_be_any_expression() -> None:
    soon = "TIMESTAMP_ADD(CURRENT_TIMESTAMP(), INTERVAL 7 DAY)"
    assert attributes(f"model_type='linear_reg', expiration_timestamp={soon}, l2_reg=1") == {"model.l2": 1}


@pytest.mark.parametrize(
    ("options", "whole"),
    [
        ("fit_intercept=FALSE, num_clusters=2", "num_clusters=2"),
        ("num_clusters=HPARAM_RANGE(2, 4), num_trials=3", "num_clusters=2"),
        ("num_clusters=2, fit_intercept=FALSE, warm_start=FALSE", "num_clusters=2, warm_start=FALSE"),
    ],
)
def test_an_error_shows_the_whole_statement_without_the_option(options: str, whole: str) -> None:
    with pytest.raises(SQLFlowError) as raised:
        create(f"model_type='kmeans', {options}")
    errors = getattr(raised.value, "errors", (raised.value,))
    assert (
        errors[-1].corrected
        == f"CREATE MODEL m OPTIONS(model_type='kmeans', {whole}) AS SELECT 1 AS x, 2 AS label"
    )


def test_a_label_that_transform_computes_is_a_column_of_the_query() -> None:
    [statement] = parse(
        "CREATE MODEL m TRANSFORM(x, LN(y) AS `log y`) OPTIONS(model_type='linear_reg', input_label_cols=['log y']) AS "
        "SELECT x, y FROM t"
    )
    assert statement.select == 'SELECT edl_rows.*, LN(y) AS "log y" FROM (\nSELECT x, y FROM t\n) AS edl_rows'
    assert "select it in queries of ML.EVALUATE" in statement.warnings[0]


def test_candidates_of_a_search_may_be_lists() -> None:
    found = create(
        "model_type='dnn_classifier', hidden_units=HPARAM_CANDIDATES([STRUCT([8, 4]), STRUCT([2])])"
    )
    [units] = [each.value for each in found.attributes if each.key == "model.hidden_units"]
    assert isinstance(units, Call)
    assert [[item.value for item in part.items] for part in units.args] == [[8, 4], [2]]  # type: ignore[union-attr]


def test_columns_of_a_file_are_not_of_a_training() -> None:
    with pytest.raises(SQLFlowError, match="INPUT and OUTPUT belong to the model of a file"):
        parse("CREATE MODEL m INPUT(x FLOAT64) OUTPUT(y STRING) OPTIONS(model_type='linear_reg') AS SELECT 1")
    [statement] = parse(
        "CREATE MODEL m INPUT(x FLOAT64, z STRING) OUTPUT(y FLOAT64) OPTIONS(model_type='onnx', model_path='m.onnx')"
    )
    assert any("the file names its columns" in warning for warning in statement.warnings)
