"""Examples of forecasts: regular steps, what was known at an origin, the backtest, and the rows ahead."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from edl.errors import SemanticError
from edl.forecasting import Series, examples
from edl.forecasting.grid import grid
from edl.forecasting.steps import infer
from edl.spec.forecast import AUTO_ETS, LEVEL, NAIVE, Step

START = date(2024, 1, 1)


def days(count: int, start: date = START) -> list[date]:
    return [start + timedelta(number) for number in range(count)]


def table(count: int = 40, unknown: int = 0, stores: str = "ab", seed: int = 1) -> pa.Table:
    """Rows of several series in any order, without a label in the last `unknown` ones of each."""
    rows = [
        {
            "day": day,
            "store": store,
            "sales": None if number >= count - unknown else float(100 * place + number),
        }
        for place, store in enumerate(stores)
        for number, day in enumerate(days(count))
    ]
    order = np.random.default_rng(seed).permutation(len(rows))
    schema = pa.schema({"day": pa.date32(), "store": pa.string(), "sales": pa.float64()})
    return pa.Table.from_pylist([rows[place] for place in order], schema)


def series(**changed: Any) -> Series:
    return Series(
        "sales",
        **{"time": "day", "by": ["store"], "horizon": 3, "step": "1 day", "season": 7, "lags": 2, **changed},
    )


def steps_of(times: list[Any]) -> Step:
    return infer(pa.array(times), np.ones(len(times) - 1, dtype=bool), "day")


@pytest.mark.parametrize(
    ("times", "step", "season", "words"),
    [
        (days(5), "1 day", 7, "1 day"),
        (days(30)[::7], "7 day", 52, "7 days"),
        ([date(2024, month, 1) for month in (1, 2, 3, 4)], "1 month", 12, "1 month"),
        (
            [date(2023, 12, 31), date(2024, 1, 31), date(2024, 2, 29), date(2024, 3, 31)],
            "1 month",
            12,
            "1 month",
        ),
        ([date(2023, 1, 1), date(2023, 4, 1), date(2023, 7, 1)], "3 month", 4, "3 months"),
        ([date(2020, 1, 1), date(2021, 1, 1), date(2022, 1, 1)], "12 month", 1, "12 months"),
        ([datetime(2024, 1, 1, hour) for hour in range(4)], "3600 second", 24, "1 hour"),
        ([datetime(2024, 1, 1, 0, 30 * half) for half in range(2)], "1800 second", 48, "30 minutes"),
        ([1990, 1991, 1992], "1", 1, "1"),
        ([10, 20, 30, 50], "10", 1, "10"),
    ],
)
def test_the_usual_step_and_its_season_follow_from_the_times(
    times: list[Any], step: str, season: int, words: str
) -> None:
    found = steps_of(times)

    assert (str(found), found.season, found.words) == (step, season, words)
    assert Step.parse(step) == found


def test_a_row_of_training_knows_only_what_was_known_at_its_origin() -> None:
    found = series().examples(table(), "train")

    rows = found.rows.slice(0, found.training).to_pylist()
    for row in rows:
        number = (row["day"] - START).days
        base = row["sales"] - number
        origin = number - row["forecast.step"]
        lag_1 = row["forecast.lag_1"] * row["forecast.scale"] + row["forecast.level"]
        season = row["forecast.season_1"] * row["forecast.scale"] + row["forecast.level"]
        assert lag_1 == pytest.approx(base + origin)
        assert season == pytest.approx(row["forecast.seasonal_naive"]) == pytest.approx(base + number - 7)
        assert row["forecast.level"] == pytest.approx(base + origin - 3)
        assert row["forecast.seasonal_naive_error"] == pytest.approx(7)
    assert {row["forecast.step"] for row in rows} == {1, 2, 3}
    assert max(row["day"] for row in rows) == START + timedelta(36)


def test_the_backtest_is_the_last_horizon_of_each_series_seen_from_the_step_before() -> None:
    found = series().examples(table(), "train")
    backtest = found.rows.slice(found.training)

    assert backtest.num_rows == 6
    assert set(backtest["day"].to_pylist()) == set(days(40)[-3:])
    assert [(row["day"] - START).days - row["forecast.step"] for row in backtest.to_pylist()] == [36] * 6
    assert series().examples(table(), "evaluate").rows.equals(backtest)


def test_each_window_of_a_backtest_is_seen_from_the_step_before_it() -> None:
    found = series(windows=2).examples(table(stores="a"), "train")
    backtest = found.rows.slice(found.training).to_pylist()

    assert max(row["day"] for row in found.rows.slice(0, found.training).to_pylist()) == START + timedelta(33)
    places = [((row["day"] - START).days, row["forecast.step"]) for row in backtest]
    assert places == [(34, 1), (35, 2), (36, 3), (37, 1), (38, 2), (39, 3)]


def test_auto_ets_forecasts_the_backtest_and_no_training_row() -> None:
    rows = series(windows=2).examples(table(), "train")
    found = rows.rows["forecast.auto_ets"].to_numpy()
    backtest = rows.rows["sales"].to_numpy()[rows.training :]

    assert np.isnan(found[: rows.training]).all()
    np.testing.assert_allclose(found[rows.training :], backtest, atol=0.1)  # lines


def test_auto_ets_forecasts_some_windows_of_many_evenly_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(examples, "MOST_WINDOWS", 2)
    found = series().examples(table(stores="abc"), "train")
    backtest = found.rows.slice(found.training).to_pylist()

    forecast = {row["store"] for row in backtest if not np.isnan(row["forecast.auto_ets"])}
    assert forecast == {"a", "c"}
    assert found.notes == ("AutoETS forecasts 2 of the 3 windows of the backtest, evenly chosen",)


def test_the_order_of_the_rows_changes_no_example() -> None:
    one, other = (series().examples(table(seed=seed), "train").rows for seed in (1, 2))

    for name in one.column_names:
        np.testing.assert_array_equal(one[name].to_numpy(), other[name].to_numpy())


def test_rows_after_the_last_known_label_are_forecast_in_their_order() -> None:
    rows = table(unknown=2)
    found = series().examples(rows, "predict").rows

    wanted = [row for row in rows.to_pylist() if row["sales"] is None]
    assert [(row["day"], row["store"]) for row in found.to_pylist()] == [
        (row["day"], row["store"]) for row in wanted
    ]
    assert sorted(found["forecast.step"].to_pylist()) == [1, 1, 2, 2]


def test_a_missing_row_and_an_unknown_label_are_gaps() -> None:
    rows = table(stores="a", seed=0).filter(pa.compute.field("day") != START + timedelta(20))
    found = series(by=["store"]).examples(rows, "train")

    assert found.notes == ("1 of 40 steps have no value",)
    assert START + timedelta(20) not in found.rows["day"].to_pylist()
    after = [row for row in found.rows.to_pylist() if (row["day"] - START).days - row["forecast.step"] == 21]
    assert after
    assert all(np.isnan(row["forecast.lag_2"]) for row in after)


def test_a_series_that_is_too_short_is_left_out_with_a_note() -> None:
    short = table(count=9, stores="c")
    found = series().examples(pa.concat_tables([table(), short]), "train")

    assert set(found.rows["store"].to_pylist()) == {"a", "b"}
    assert found.notes == ("1 of 3 series have fewer than 12 values and are left out",)


def test_a_window_of_the_backtest_begins_after_a_known_value() -> None:
    rows = table(stores="a")
    unknown = pa.array([(day - START).days in (35, 36) for day in rows["day"].to_pylist()])
    sales = pa.array(rows["sales"].to_pylist(), mask=unknown.to_numpy(zero_copy_only=False))
    found = series().examples(rows.set_column(2, "sales", sales), "train")
    backtest = found.rows.slice(found.training)
    assert sorted((day - START).days for day in backtest["day"].to_pylist()) == [37]
    assert backtest["forecast.step"].to_pylist() == [3]


def test_each_series_without_rows_to_forecast_gets_the_next_steps() -> None:
    rows = table(unknown=2)
    of_a = rows.filter((np.array(rows["store"].to_pylist()) == "a") | rows["sales"].is_valid().to_numpy())
    found = series().examples(of_a, "predict")
    ahead = sorted((row["store"], (row["day"] - START).days) for row in found.rows.to_pylist())
    assert ahead == [("a", 38), ("a", 39), ("b", 38), ("b", 39), ("b", 40)]
    assert not found.notes


def test_a_series_that_ends_before_the_others_is_said() -> None:
    rows = table()
    early = (np.array(rows["store"].to_pylist()) == "a") | (
        np.array(rows["day"].to_pylist()) < START + timedelta(30)
    )
    [note] = series().examples(rows.filter(early), "predict").notes
    assert note == (
        "1 of 2 series have no value at 2024-02-09, the last time of the others: the forecast of store = b begins "
        "after 2024-01-30"
    )


def test_series_without_rows_to_forecast_are_said_if_the_model_needs_rows() -> None:
    rows = table(unknown=2)
    of_a = rows.filter((np.array(rows["store"].to_pylist()) == "a") | rows["sales"].is_valid().to_numpy())
    [note] = series(known=["promo"]).examples(of_a.append_column("promo", of_a["sales"]), "predict").notes
    assert note == "1 of 2 series have no rows to forecast, and no forecast"


def test_a_constant_series_has_a_scale() -> None:
    rows = pa.table({"day": days(30), "store": ["a"] * 30, "sales": [5.0] * 30})

    found = series().examples(rows, "train").rows
    assert set(found["forecast.scale"].to_pylist()) == {5.0}


@pytest.mark.parametrize(
    ("rows", "mode", "message", "hint"),
    [
        (
            pa.concat_tables([table(), table()]),
            "train",
            "store = a, day = 2024-01-01 has several rows: 80",
            "GROUP BY",
        ),
        (
            table(count=11),
            "train",
            "has 11 known values, and 12 are needed: 3 for the backtest and 9 before",
            "smaller",
        ),
        (
            table(unknown=5),
            "predict",
            "a row 5 steps after its last known sales, and the model forecasts 3",
            "= 5",
        ),
        (table(unknown=40), "predict", "has no known sales", "select the rows before the forecast"),
        (table().slice(0, 0), "train", "the query yields no rows", None),
    ],
)
def test_rows_that_cannot_be_forecast_are_an_error(
    rows: pa.Table, mode: Any, message: str, hint: str | None
) -> None:
    with pytest.raises(SemanticError) as caught:
        series().examples(rows, mode)

    assert message in caught.value.message
    assert hint is None or hint in str(caught.value.hint)


def test_a_model_that_needs_other_columns_needs_the_rows_to_forecast() -> None:
    with pytest.raises(SemanticError, match="sales is known in the last row of each series") as caught:
        series(known=["promo"]).examples(table(), "predict")

    assert str(caught.value.hint).endswith("with NULL as sales; the model reads promo of them")


def test_without_rows_to_forecast_they_are_the_next_steps_of_each_series() -> None:
    found = series().examples(table(), "predict").rows

    wanted = [(day, store) for store in "ab" for day in days(3, START + timedelta(40))]
    assert sorted(zip(found["day"].to_pylist(), found["store"].to_pylist(), strict=True)) == sorted(wanted)
    assert found["sales"].null_count == 6


@pytest.mark.parametrize(
    ("times", "wanted"),
    [
        ([date(2024, 1, 31), date(2024, 2, 29), date(2024, 3, 31)], [date(2024, 4, 30), date(2024, 5, 31)]),
        ([date(2024, 1, 15), date(2024, 2, 15), date(2024, 3, 15)], [date(2024, 4, 15), date(2024, 5, 15)]),
        ([date(2021, 1, 1), date(2022, 1, 1), date(2023, 1, 1)], [date(2024, 1, 1), date(2025, 1, 1)]),
        (
            [datetime(2024, 1, 1, 21), datetime(2024, 1, 1, 22), datetime(2024, 1, 1, 23)],
            [datetime(2024, 1, 2, 0), datetime(2024, 1, 2, 1)],
        ),
        ([10, 20, 30], [40, 50]),
    ],
)
def test_the_next_steps_follow_the_calendar(times: list[Any], wanted: list[Any]) -> None:
    rows = pa.table({"day": times, "sales": [1.0, 2.0, 3.0]})
    step = str(grid(rows, "sales", "day", ()).step)
    found = series(by=[], horizon=2, step=step, season=1).examples(rows, "predict").rows

    assert found["day"].type == rows["day"].type
    assert found["day"].to_pylist() == wanted


@pytest.mark.parametrize(
    ("times", "message"),
    [
        (
            [datetime(2024, 1, 1), datetime(2024, 1, 2), datetime(2024, 1, 3), datetime(2024, 1, 4, 5)],
            "2024-01-04 05:00",
        ),
        ([datetime(2024, 1, 1, 0, 0, 0, 5), datetime(2024, 1, 2)], "fractions of a second"),
        ([datetime(2024, 1, 1), None], "is NULL in 1 of 2 rows"),
        ([1.5, 2.5], "is of type double"),
        ([1, 2, 3, 4, 5, 6, 1_000_000], "7 rows for 1,000,000 steps of 1"),
    ],
)
def test_irregular_times_are_an_error(times: list[Any], message: str) -> None:
    rows = pa.table({"day": times, "sales": [1.0] * len(times)})
    with pytest.raises(SemanticError) as caught:
        grid(rows, "sales", "day", ())

    assert message in caught.value.message


def test_a_small_series_is_seen_alike_beside_a_billion_times_larger_one() -> None:
    sales = 10 + np.random.default_rng(0).normal(size=400)
    both = {"day": days(400) * 2, "store": ["a"] * 400 + ["b"] * 400}
    together = pa.table({**both, "sales": np.concatenate([1e9 * sales, sales])})
    found = series(season=7).examples(together, "refit").rows.to_pandas().groupby("store")
    alone = series(season=7).examples(together.slice(400), "refit").rows.to_pandas()
    small = found.get_group("b").reset_index(drop=True)
    for name in alone.columns.drop(["day", "store"]):
        np.testing.assert_allclose(small[name], alone[name], rtol=1e-9, atol=1e-9, err_msg=name)


def test_series_of_large_numbers_have_the_examples_of_their_differences_from_a_centre() -> None:
    small = table(unknown=0)
    values = np.array(small["sales"].to_pylist()) / 100  # deviations below 1e-6 of the large numbers
    small, large = (
        small.set_column(2, "sales", pa.array(values + centre)) for centre in (0.0, 1_700_000_000.0)
    )
    wanted = series().examples(small, "train").rows
    found = series(centre=1_700_000_000.0).examples(large, "train").rows
    for name in wanted.column_names:
        shifted = name in ("sales", LEVEL, NAIVE, AUTO_ETS)
        if pa.types.is_floating(wanted[name].type):
            ours, theirs = found[name].to_numpy(), wanted[name].to_numpy()
            np.testing.assert_allclose(ours - 1_700_000_000.0 * shifted, theirs, rtol=1e-4, atol=1e-4)
        else:
            assert found[name].equals(wanted[name])
