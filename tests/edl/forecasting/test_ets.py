"""AutoETS: series that a form describes are continued by it, in any company."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from edl.forecasting.ets import auto_ets

STEPS = np.arange(66)
NOISE = np.random.default_rng(0).normal(0, 0.3, len(STEPS))
WEEK = np.resize([5.0, 2.0, -3.0, -6.0, -1.0, 0.0, 3.0], len(STEPS))
SERIES = {
    "a constant level": 50 + NOISE,
    "a line": 10 + 2.0 * STEPS + NOISE,
    "an added season": 100 + WEEK + NOISE,
    "a multiplied season on a line": (50 + STEPS) * (1 + WEEK / 20) + NOISE,
}


def forecast(*series: npt.NDArray[np.float64], season: int = 7) -> npt.NDArray[np.float64]:
    """Forecast the last ten values of each series from those before."""
    ends = np.cumsum([len(each) for each in series])
    firsts = ends - [len(each) for each in series]
    with np.errstate(all="ignore"):
        return auto_ets(np.concatenate(series), ends - 10, firsts, 10, season)


@pytest.mark.soak
@pytest.mark.parametrize("name", SERIES)
def test_a_series_of_a_form_is_continued_by_it(name: str) -> None:
    [found] = forecast(SERIES[name])

    np.testing.assert_allclose(found, SERIES[name][-10:], atol=2.0)


@pytest.mark.soak
def test_the_forecast_of_a_series_does_not_depend_on_the_length_of_others() -> None:
    short, long = SERIES["an added season"][-40:], SERIES["a line"]
    gaps = np.where(STEPS % 9 == 4, np.nan, long)

    together = forecast(short, gaps, long)
    np.testing.assert_allclose(together[1], long[-10:], atol=2.0)
    np.testing.assert_allclose(together[0], forecast(short)[0], atol=0.5)


def test_few_values_and_constant_ones_are_continued_by_the_last() -> None:
    few, constant = np.arange(14.0), np.full(40, 3.0)

    assert forecast(few, constant, season=1).tolist() == [[3.0] * 10, [3.0] * 10]
