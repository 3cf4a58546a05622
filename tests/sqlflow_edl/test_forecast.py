"""Forecasts from TRAIN to PREDICT, EVALUATE and EXPLAIN, on one table of three seasonal series."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta

import numpy as np
import pyarrow as pa
import pytest

import sqlflow_edl
from edl.errors import SQLFlowError
from sqlflow_edl.session.session import Session
from tests.databases import fill, on_each

DAYS, AHEAD = 90, 7
WEEK = np.array([1.0, 1.2, 1.4, 1.3, 1.1, 0.7, 0.5])
rng = np.random.default_rng(3)


def sales() -> pa.Table:
    """Three stores of different size with a week and a promotion that is known for the days ahead."""
    number = np.tile(np.arange(DAYS + AHEAD), 3)
    store = np.repeat([1, 2, 3], DAYS + AHEAD)
    promo = rng.random(len(number)) < 0.2
    truth = 10.0**store * (WEEK[number % 7] + 0.8 * promo) * rng.normal(1, 0.02, len(number))
    return pa.table(
        {
            "day": [date(2024, 1, 1) + timedelta(int(each)) for each in number],
            "store": store,
            "promo": promo,
            "truth": truth,
            "sales": pa.array(truth, mask=number >= DAYS),
        }
    )


WITH = "WITH forecast.time = day, forecast.series = store, forecast.horizon = 7"
KNOWN = "SELECT day, store, promo, sales FROM sales WHERE sales IS NOT NULL"
TRAIN = f"{KNOWN} TO TRAIN Forecast {WITH} LABEL sales INTO m"


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    folder = tmp_path_factory.mktemp("forecast")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(folder))
        with Session(f"duckdb:///{folder}/forecast.duckdb", create=True) as opened:
            fill(opened, "sales", sales())
            yield opened


@pytest.fixture(scope="module")
def trained(session: Session) -> object:
    return list(session.run(TRAIN))[-1]


@pytest.fixture
def model(session: Session, trained: object) -> Session:
    return session


def last(session: Session, text: str) -> pa.Table:
    return list(session.run(text))[-1].to_arrow()


def test_training_reports_the_backtest_beside_the_seasonal_naive_forecast_and_auto_ets(
    trained: object,
) -> None:
    assert "the backtest, the last 14 steps of each series in 2 windows" in trained.message
    assert trained.measured_on == "42 rows of the backtest"
    of_plan, of_end = trained.notes
    assert of_plan == "day has steps of 1 day; season: 7 steps"
    assert of_end.startswith("trained again on all 1,659 examples, those of the backtest included, in ")
    assert trained.figures["mase"] < 0.5 * trained.figures["seasonal_naive_mase"]
    assert trained.figures["mae"] < trained.figures["seasonal_naive_mae"]
    assert 0.5 < trained.figures["auto_ets_mase"] / trained.figures["seasonal_naive_mase"] < 2


def test_predict_answers_the_rows_after_the_last_known_label(model: Session) -> None:
    list(model.run("SELECT * FROM sales TO PREDICT ahead.forecast USING m"))

    found = last(model, "SELECT * FROM ahead ORDER BY store, day")
    assert found.column_names == ["day", "store", "promo", "truth", "sales", "forecast"]
    assert found.num_rows == 3 * AHEAD
    error = np.abs(found["forecast"].to_numpy() / found["truth"].to_numpy() - 1)
    assert np.median(error) < 0.1


@pytest.mark.soak
def test_another_query_may_name_its_columns_in_another_case_and_be_evaluated(model: Session) -> None:
    query = (
        "SELECT sales AS SALES, store AS Store, promo AS PROMO, day AS Day FROM sales WHERE sales IS NOT NULL"
    )
    [same] = last(model, f"{query} TO EVALUATE m").to_pylist()
    [own] = last(model, f"{KNOWN} TO EVALUATE m").to_pylist()

    assert same == own
    assert same["mase"] < same["seasonal_naive_mase"]


@pytest.mark.soak
def test_evaluating_the_rows_of_the_training_is_said(model: Session) -> None:
    [found] = list(
        model.run("SELECT day, store, promo, sales FROM sales WHERE sales IS NOT NULL TO EVALUATE m")
    )

    assert any("the model was trained on these rows, too" in note for note in found.notes)


@pytest.mark.soak
def test_explain_adds_up_to_the_forecasts_of_the_backtest(model: Session) -> None:
    list(model.run(f"{KNOWN} TO EXPLAIN m INTO why"))

    found = last(model, "SELECT * FROM why")
    values = [found[name].to_numpy() for name in found.column_names if name.endswith("_shap")]
    assert found.num_rows == 21
    assert "forecast.season_1_shap" in found.column_names
    np.testing.assert_allclose(
        found["sales"].to_numpy(), found["sales_base"].to_numpy() + sum(values), rtol=1e-5
    )


@pytest.mark.soak
def test_another_process_reads_the_model_back(model: Session) -> None:
    with Session(model.source.url) as other:
        assert last(other, "SELECT * FROM sales TO PREDICT USING m").num_rows == 3 * AHEAD


def test_the_plan_names_the_series_and_the_backtest(model: Session) -> None:
    rows = {(row["section"], row["name"]): row for row in last(model, f"EXPLAIN {TRAIN}").to_pylist()}

    assert rows["forecast", "step"]["value"] == "1 day"
    assert rows["forecast", "season"]["value"] == "7 steps"
    assert rows["rows", "validation"]["why"] == "the backtest, the last 14 steps of each series in 2 windows"


def test_describe_names_the_series(model: Session) -> None:
    rows = {
        (row["section"], row["name"]): row["value"] for row in last(model, "DESCRIBE MODEL m").to_pylist()
    }

    assert rows["forecast", "horizon"] == "7 steps"
    assert rows["validation", "rows"] == "42, the last 14 steps of each series in 2 windows"


@pytest.mark.soak
def test_quantiles_become_columns_around_the_forecast(session: Session) -> None:
    wanted = "forecast.quantiles = [0.9, 0.1], train.num_boost_round = 40"
    list(session.run(f"{KNOWN} TO TRAIN Forecast {WITH}, {wanted} LABEL sales INTO wide"))

    [measured] = last(session, f"{KNOWN} TO EVALUATE wide").to_pylist()
    assert 0.6 <= measured["coverage"] <= 1
    found = last(session, "SELECT * FROM sales TO PREDICT USING wide")
    assert found.column_names[-3:] == ["sales", "sales_q10", "sales_q90"]
    low, middle, high = (found[name].to_numpy() for name in ("sales_q10", "sales", "sales_q90"))
    assert (low <= middle).all()
    assert (middle <= high).all()
    assert (low < high).any()


@pytest.mark.soak
def test_a_network_forecasts_with_quantiles_and_is_measured_and_explained(session: Session) -> None:
    settings = f"{WITH}, forecast.quantiles = [0.1, 0.9], forecast.lags = 8, train.epoch = 3"
    [trained] = session.run(f"{KNOWN} TO TRAIN TiDE {settings} LABEL sales INTO tide")
    assert trained.figures["mase"] < trained.figures["seasonal_naive_mase"]

    found = last(session, "SELECT * FROM sales TO PREDICT USING tide")
    low, middle, high = (found[name].to_numpy() for name in ("sales_q10", "sales", "sales_q90"))
    assert found.num_rows == 3 * AHEAD
    assert np.median(np.abs(middle / found["truth"].to_numpy() - 1)) < 0.2
    assert ((low <= middle) & (middle <= high) & (low < high)).all()

    [measured] = last(session, f"{KNOWN} TO EVALUATE tide").to_pylist()
    assert 0.5 <= measured["coverage"] <= 1

    list(session.run(f"{KNOWN} TO EXPLAIN tide WITH explain.samples = 4 INTO tide_why"))
    why = last(session, "SELECT * FROM tide_why")
    values = [why[name].to_numpy() for name in why.column_names if name.endswith("_shap")]
    np.testing.assert_allclose(why["sales"].to_numpy(), why["sales_base"].to_numpy() + sum(values), rtol=1e-3)


def test_explain_of_rows_to_forecast_adds_up_by_parts(model: Session) -> None:
    list(model.run("SELECT * FROM sales TO EXPLAIN m INTO why_ahead"))

    found = last(model, "SELECT * FROM why_ahead")
    assert found.num_rows == 3 * AHEAD
    parts = [found[f"sales_{part}"].to_numpy() for part in ("trend", "season", "holidays", "columns")]
    values = [found[name].to_numpy() for name in found.column_names if name.endswith("_shap")]
    forecast = found["sales"].to_numpy()
    np.testing.assert_allclose(sum(parts), forecast, rtol=1e-9)
    np.testing.assert_allclose(found["sales_base"].to_numpy() + sum(values), forecast, rtol=1e-9)
    np.testing.assert_allclose(parts[3], found["promo_shap"].to_numpy())
    promo = np.array(found["promo"].to_pylist())
    assert (parts[3][promo] > parts[3][~promo].max()).mean() > 0.5


NUMBERED = (
    "SELECT 1 AS number, sales FROM sales TO TRAIN Forecast WITH forecast.time = number, forecast.horizon = 7"
)
COUNTS = """CREATE TABLE IF NOT EXISTS counts AS
SELECT CAST(d AS DATE) AS day, CASE WHEN d < TIMESTAMP '2024-06-01'
  THEN greatest(0, 3 - date_diff('day', TIMESTAMP '2024-03-01', d) // 30) * (dayofweek(d) NOT IN (0, 6))::INT END AS n
FROM range(TIMESTAMP '2024-03-01', TIMESTAMP '2024-06-08', INTERVAL 1 DAY) AS days(d)"""


@pytest.mark.variants(1)
@pytest.mark.parametrize(
    "model", ["Forecast WITH train.num_boost_round = 20,", "TiDE WITH train.epoch = 5, train.seed = 1,"]
)
def test_forecasts_of_counts_are_not_negative_and_quantiles_are_apart_from_them(
    session: Session, model: str
) -> None:
    list(session.run(COUNTS))
    settings = "forecast.time = day, forecast.horizon = 7, forecast.quantiles = [0.1, 0.9]"
    train = f"SELECT day, n FROM counts WHERE n IS NOT NULL TO TRAIN {model} {settings} LABEL n INTO falling"
    rows = {
        (row["section"], row["name"]): row["value"] for row in last(session, f"EXPLAIN {train}").to_pylist()
    }
    assert rows["forecast", "non_negative"] == "yes"
    list(session.run(train))
    found = last(session, "SELECT * FROM counts TO PREDICT USING falling")
    low, middle, high = (found[name].to_numpy() for name in ("n_q10", "n", "n_q90"))
    assert (low >= 0).all()
    assert ((low < middle) | (middle == 0)).all()
    assert (middle < high).all()


def test_a_forecast_may_be_negative_if_the_history_or_the_statement_says_so(session: Session) -> None:
    settings = f"{WITH}, train.num_boost_round = 2"
    loss = "SELECT day, store, sales - 2000 AS loss FROM sales WHERE sales IS NOT NULL"

    def planned(text: str) -> object:
        rows = last(session, f"EXPLAIN {text} INTO e").to_pylist()
        return {(row["section"], row["name"]): row["value"] for row in rows}.get(("forecast", "non_negative"))

    assert planned(f"{loss} TO TRAIN Forecast {settings} LABEL loss") is None
    assert planned(f"{loss} TO TRAIN Forecast {settings}, forecast.non_negative = TRUE LABEL loss") == "yes"
    assert planned(f"{KNOWN} TO TRAIN Forecast {settings}, forecast.non_negative = FALSE LABEL sales") is None


@pytest.mark.variants(1)
@pytest.mark.parametrize(
    "model", ["Forecast WITH", "TiDE WITH train.epoch = 10, train.early_stopping = 0, train.keep = last,"]
)
def test_holidays_of_a_country_are_learned(session: Session, model: str) -> None:
    calendar = pytest.importorskip("holidays").country_holidays("DE", subdiv="BY", years=(2022, 2023, 2024))
    days = [date(2022, 1, 1) + timedelta(number) for number in range(3 * 365 - 2)]
    is_free = np.array([day in calendar for day in days])
    week = np.array([1.3 if day.weekday() > 4 else 1.0 for day in days])
    sold = week * np.where(is_free, 5.0, 100.0) * np.random.default_rng(1).normal(1, 0.03, len(days))
    ahead = np.array([day >= date(2024, 12, 20) for day in days])
    fill(session, "shop", pa.table({"day": days, "truth": sold, "sold": pa.array(sold, mask=ahead)}))
    settings = "forecast.time = day, forecast.horizon = 14, forecast.holidays = 'de-by'"
    list(session.run(
        f"SELECT day, sold FROM shop WHERE sold IS NOT NULL TO TRAIN {model} {settings} LABEL sold INTO open_days"
    ))  # fmt: skip
    found = last(session, "SELECT * FROM shop TO PREDICT USING open_days")
    free = np.array([day in calendar for day in found["day"].to_pylist()])
    assert free.sum() == 2
    assert found["sold"].to_numpy()[free].max() < 40
    assert found["sold"].to_numpy()[~free].min() > 80
    rows = {
        (row["section"], row["name"]): row["value"]
        for row in last(session, "DESCRIBE MODEL open_days").to_pylist()
    }
    assert rows["forecast", "holidays"] == "DE-BY"


def test_only_parts_of_the_time_with_a_cycle_longer_than_a_season_are_features(model: Session) -> None:
    def parts(season: int) -> set[str]:
        rows = last(
            model, f"EXPLAIN {KNOWN} TO TRAIN Forecast {WITH}, forecast.season = {season} LABEL sales INTO e"
        )
        return {
            row["value"] for row in rows.to_pylist() if row["section"] == "features" and row["name"] == "day"
        }

    assert parts(7) == set()
    assert parts(1) == {"weekday"}


@pytest.mark.soak
def test_a_season_that_the_series_do_not_show_twice_is_none(session: Session) -> None:
    weekly = "SELECT day, sales FROM sales WHERE store = 1 AND sales IS NOT NULL AND dayofweek(day) = 1"
    settings = "forecast.time = day, forecast.horizon = 2, train.num_boost_round = 2"
    [found] = list(session.run(f"{weekly} TO TRAIN Forecast WITH {settings} LABEL sales INTO weekly"))

    assert found.notes[0].startswith(
        "day has steps of 7 days; season: none, as 52 steps are long for these series"
    )


@pytest.mark.soak
def test_a_number_may_be_the_time_of_one_series(session: Session) -> None:
    query = "SELECT day - DATE '2024-01-01' AS number, sales FROM sales WHERE store = 1 AND sales IS NOT NULL"
    settings = "forecast.time = number, forecast.horizon = 7, forecast.season = 7, train.num_boost_round = 2"
    [found] = list(session.run(f"{query} TO TRAIN Forecast WITH {settings} LABEL sales INTO single"))

    assert found.notes == ("number has steps of 1; season: 7 steps",)
    ahead = last(session, f"{query} TO PREDICT USING single")
    assert ahead["number"].to_pylist() == list(range(DAYS, DAYS + AHEAD))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            f"{KNOWN} TO TRAIN Forecast WITH forecast.time = day, forecast.horizon = 7 LABEL sales INTO e",
            "several rows",
        ),
        (f"{KNOWN} TO TRAIN Forecast {WITH}000 LABEL sales INTO e", "the longest series has 90 known values"),
        (f"{KNOWN} TO TRAIN Forecast {WITH} LABEL sales USING m INTO e", "is not trained further"),
        ("SELECT day, store, promo FROM sales TO PREDICT USING m", "lacks the column sales"),
        (f"{KNOWN} TO PREDICT USING m", "there is nothing to forecast"),
        (f"{KNOWN} TO TRAIN TiDE {WITH}, train.num_workers = 2 LABEL sales INTO e", "unknown attribute"),
        (
            f"{NUMBERED}, forecast.holidays = DE LABEL sales INTO e",
            "number is a number, and holidays are of dates",
        ),
    ],
)
def test_a_query_that_cannot_be_forecast_is_an_error_with_its_place(
    model: Session, text: str, message: str
) -> None:
    with pytest.raises(SQLFlowError) as caught:
        list(model.run(text))

    assert message in caught.value.message
    assert caught.value.span is not None


@pytest.mark.parametrize(
    ("time", "words", "number"),
    [
        ("year(day) * 100 + month(day)", "months", "t * 100 + 1"),
        ("CAST(strftime(day, '%Y%m%d') AS INT)", "days", "t"),
    ],
)
def test_months_and_days_as_numbers_are_converted_by_the_hint(
    session: Session, time: str, words: str, number: str
) -> None:
    expression = f"CAST(TRY_STRPTIME(CAST({number} AS VARCHAR), '%Y%m%d') AS DATE)"
    days = "SELECT DATE '2022-11-01' + CAST(i AS INT) AS day, i % 9 AS y FROM range(400) AS rows (i)"
    query = f"SELECT {time} AS t, SUM(y) AS y FROM ({days}) GROUP BY 1"
    train = "TO TRAIN Forecast WITH forecast.time = t, forecast.horizon = 2, train.num_boost_round = 2 LABEL y INTO n"
    with pytest.raises(SQLFlowError, match=f"t has {words} as whole numbers") as caught:
        session.run(f"{query} {train}")
    assert caught.value.hint == f"select {expression} AS t"
    [trained] = session.run(f"SELECT {expression} AS t, y FROM ({query}) {train}")
    assert f"t has steps of 1 {words[:-1]}" in trained.notes[0]


def test_a_forecast_of_workdays_is_of_workdays(session: Session) -> None:
    days = "SELECT DATE '2023-01-02' + CAST(i AS INT) AS day, i % 7 AS y FROM range(89) AS rows (i) WHERE i % 7 < 5"
    with_time = "WITH forecast.time = day, forecast.horizon = 6, train.num_boost_round = 20"
    [trained] = session.run(f"{days} TO TRAIN Forecast {with_time} LABEL y INTO workdays")
    assert "day has steps of 1 day, Monday to Friday; season: 5 steps" in trained.notes
    [forecast] = session.run(f"{days} TO PREDICT USING workdays")
    rows = forecast.to_arrow()
    assert [day.isoformat()[5:] for day in rows["day"].to_pylist()] == [
        "04-03", "04-04", "04-05", "04-06", "04-07", "04-10"
    ]  # fmt: skip
    assert rows["y"].to_numpy() == pytest.approx([0, 1, 2, 3, 4, 0], abs=1.2)


def test_workers_and_files_are_refused(model: Session) -> None:
    with (
        Session(model.source.url, workers=2) as several,
        pytest.raises(SQLFlowError, match="runs in one process"),
    ):
        list(several.run("SELECT * FROM sales TO PREDICT USING m"))


@on_each("url", always=())
def test_every_database_has_series_to_forecast(url: str) -> None:
    with sqlflow_edl.connect(url) as session:
        fill(session, "sales", sales())
        train = f"{KNOWN} TO TRAIN Forecast {WITH}, train.num_boost_round = 20 LABEL sales INTO m"
        list(session.run(f"{train}; SELECT * FROM sales TO PREDICT ahead.forecast USING m"))
        found = last(session, "SELECT truth, forecast FROM ahead")
    assert found.num_rows == 3 * AHEAD
    error = np.abs(found["forecast"].to_numpy() / found["truth"].to_numpy() - 1)
    assert np.median(error) < 0.3
