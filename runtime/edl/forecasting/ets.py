"""AutoETS, the baseline of a backtest: exponential smoothing of each series alone (Hyndman et al., 2002).

Each series is forecast by the form with the least corrected Akaike criterion: without a trend, with one or a damped
one; without a season, with an added or a multiplied one; with added or multiplied errors. The smoothing parameters of
all series are searched for at once, by random candidates near the best ones, and the initial states come from the first
seasons; so it needs no Python loop over series, and no library that compiles.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Trend = Literal["none", "linear", "damped"]
Season = Literal["none", "added", "multiplied"]

MOST_VALUES = 500  # of a series, the last ones; of long seasons as many as 8 have
LONGEST_SEASON = 53  # of longer ones the states are too many
FEWEST = 8  # values from which parameters are searched for; fewer are continued by the last one
_EXACT = 1e-12
# Candidates of each search, first over the whole range and then nearer and nearer to the best.
_CANDIDATES = (24, 8, 8, 8)
_RADII = (0.15, 0.06, 0.02)
_LOW, _HIGH = np.array([0.01, 0.01, 0.01, 0.8]), np.array([0.99, 0.99, 0.99, 0.98])


class _States(NamedTuple):
    """Level and trend (series, candidates), and seasonal states (season, series, candidates)."""

    level: Floats
    trend: Floats
    season: Floats


class _Fitted(NamedTuple):
    """Best candidate of each series: its criterion (series,) and its forecasts (series, horizon)."""

    criterion: Floats
    forecasts: Floats


def auto_ets(values: Floats, ends: Ints, firsts: Ints, horizon: int, season: int) -> Floats:
    """Return the forecasts (series, horizon) after each end.

    values: of all series, flat, NaN if unknown. ends, firsts: place after the last known value of each series, and
    place of its first one.
    """
    seasonal = 1 < season <= LONGEST_SEASON
    firsts = np.maximum(firsts, ends - max(MOST_VALUES, 8 * season * seasonal))
    lengths = ends - firsts
    places = firsts[:, np.newaxis] + np.arange(int(lengths.max()))
    inside = places < ends[:, np.newaxis]
    rows = np.where(inside, values[np.minimum(places, len(values) - 1)], np.nan)
    seasons: list[Season] = ["none", "added", "multiplied"] if seasonal else ["none"]
    trends: list[Trend] = ["none", "linear", "damped"]
    fitted = [
        _fit_form(rows, lengths, horizon, season if kind != "none" else 1, trend, kind)
        for kind in seasons
        for trend in trends
    ]
    best = np.argmin([form.criterion for form in fitted], axis=0)
    forecasts = np.stack([form.forecasts for form in fitted])[best, np.arange(len(rows))]
    last = values[ends - 1][:, np.newaxis]
    searched = (lengths >= FEWEST) & np.isfinite(np.min([form.criterion for form in fitted], axis=0))
    return np.where(searched[:, np.newaxis] & np.isfinite(forecasts), forecasts, last)


def _fit_form(rows: Floats, lengths: Ints, horizon: int, season: int, trend: Trend, kind: Season) -> _Fitted:
    """Search for the parameters of one form: alpha, beta / alpha, gamma / (1 - alpha), and phi, the damping."""
    random = np.random.default_rng(0)
    start = _initial(rows, season, trend, kind)
    count = len(rows)
    best, at = np.full(count, np.inf), np.tile((_LOW + _HIGH) / 2, (count, 1))
    states, phis = start, at[:, 3]
    for number, candidates in enumerate(_CANDIDATES):
        if number:
            noise = random.normal(0, _RADII[number - 1], (count, candidates, 4)) * (_HIGH - _LOW)
            tried = np.clip(at[:, np.newaxis] + noise, _LOW, _HIGH)
        else:
            tried = np.tile(_LOW + (_HIGH - _LOW) * random.random((candidates, 4)) ** 2, (count, 1, 1))
            tried[..., 3] = _LOW[3] + (_HIGH[3] - _LOW[3]) * random.random(candidates)
        criteria, ends = _smooth_series(rows, lengths, start, tried, season, trend, kind)
        chosen = criteria.argmin(axis=1)
        numbers = np.arange(count)
        better = criteria[numbers, chosen] < best
        best = np.where(better, criteria[numbers, chosen], best)
        at = np.where(better[:, np.newaxis], tried[numbers, chosen], at)
        phis = at[:, 3]
        states = _States(
            *(
                np.where(better, new[..., numbers, chosen], old[..., 0] if number == 0 else old)
                for new, old in zip(ends, states, strict=True)
            )
        )
    return _Fitted(
        best,
        _forecast_ahead(
            states, lengths, phis if trend == "damped" else np.ones(count), horizon, season, kind
        ),
    )


def _smooth_series(
    rows: Floats, lengths: Ints, start: _States, tried: Floats, season: int, trend: Trend, kind: Season
) -> tuple[Floats, _States]:
    """Return the criterion of each candidate (series, candidates), and its states after the last value."""
    alpha = tried[..., 0]
    beta, gamma = alpha * tried[..., 1], (1 - alpha) * tried[..., 2]
    phi = tried[..., 3] if trend == "damped" else np.ones_like(alpha)
    level, slope = (np.broadcast_to(state, alpha.shape) for state in start[:2])
    states = np.broadcast_to(start.season, (season, *alpha.shape)).copy()
    squares, relative, logs = (np.zeros(alpha.shape) for _ in range(3))
    for step in range(rows.shape[1]):
        value = rows[:, step, np.newaxis]
        base = level + phi * slope if trend != "none" else level
        seasonal = states[step % season]
        mean = base if kind == "none" else base + seasonal if kind == "added" else base * seasonal
        error = np.where(np.isnan(value), 0.0, value - mean)
        squares += error**2
        relative += (error / mean) ** 2
        logs += np.where(np.isnan(value), 0.0, np.log(mean))
        change = error / seasonal if kind == "multiplied" else error
        active = (step < lengths)[:, np.newaxis]
        if trend != "none":
            slope = np.where(active, phi * slope + beta * change, slope)
        if kind != "none":
            states[step % season] = seasonal + gamma * (error / base if kind == "multiplied" else error)
        level = np.where(active, base + alpha * change, level)
    counts = (~np.isnan(rows)).sum(axis=1)[:, np.newaxis]
    numbers = 3 + {"none": 0, "linear": 2, "damped": 3}[trend] + (season if kind != "none" else 0)
    penalty = 2 * numbers + 2 * numbers * (numbers + 1) / np.maximum(counts - numbers - 1, 1e-9)
    # Of forms that fit exactly the penalty decides.
    least = _EXACT * np.nansum(rows**2, axis=1)[:, np.newaxis]
    of_added = counts * np.log(squares + least) if kind != "multiplied" else np.full_like(squares, np.inf)
    of_multiplied = counts * np.log(relative + _EXACT * counts) + 2 * logs
    criteria = np.fmin(of_added, of_multiplied) + np.where(counts > numbers + 1, penalty, np.inf)
    return np.where(np.isnan(criteria), np.inf, criteria), _States(level, slope, states)


def _initial(rows: Floats, season: int, trend: Trend, kind: Season) -> _States:
    """Return the states before the first value, each with an axis of one candidate.

    The seasonal states are means of the differences or ratios to the mean of each of the first three seasons; level and
    trend describe a line through the first values without them.
    """
    count, width = rows.shape
    states = np.full((season, count, 1), 1.0 if kind == "multiplied" else 0.0)
    seasonal = rows
    if kind != "none":
        whole = max(1, min(3, width // season))
        first = rows[:, : whole * season]
        if first.shape[1] < season:
            first = np.pad(first, ((0, 0), (0, season - first.shape[1])), constant_values=np.nan)
        first = first.reshape(count, -1, season)
        middle = _mean(first, axis=2, keepdims=True)
        parts = first / middle if kind == "multiplied" else first - middle
        factors = _mean(parts, axis=1)
        centre = factors.mean(axis=1, keepdims=True)
        factors = factors / centre if kind == "multiplied" else factors - centre
        states = np.nan_to_num(factors, nan=1.0 if kind == "multiplied" else 0.0).T[..., np.newaxis]
        tiled = np.tile(states[..., 0].T, (1, -(-width // season)))[:, :width]
        seasonal = rows / tiled if kind == "multiplied" else rows - tiled
    head = seasonal[:, : max(10, 2 * season)]
    level = _mean(head, axis=1)
    slope = np.zeros(count)
    if trend != "none":
        times = np.where(np.isnan(head), np.nan, np.arange(1, head.shape[1] + 1))
        moved = times - _mean(times, axis=1, keepdims=True)
        slope = np.nansum(moved * (head - level[:, np.newaxis]), axis=1) / np.maximum(
            np.nansum(moved**2, axis=1), 1e-9
        )
        level = level - slope * _mean(times, axis=1)
    return _States(level[:, np.newaxis], slope[:, np.newaxis], states)


def _mean(values: Floats, axis: int, *, keepdims: bool = False) -> Floats:
    """Return the mean of the known values, 0 if there are none."""
    counts = (~np.isnan(values)).sum(axis=axis, keepdims=keepdims)
    means: Floats = np.nansum(values, axis=axis, keepdims=keepdims) / np.maximum(counts, 1)
    return means


def _forecast_ahead(
    states: _States, lengths: Ints, phi: Floats, horizon: int, season: int, kind: Season
) -> Floats:
    """Return the forecasts (series, horizon) from the states after the last values."""
    steps = np.arange(1, horizon + 1)
    damped = np.cumsum(phi[:, np.newaxis] ** steps, axis=1)
    levels: Floats = states.level[:, np.newaxis] + damped * states.trend[:, np.newaxis]
    if kind == "none":
        return levels
    places = (lengths[:, np.newaxis] + steps - 1) % season
    seasonal_states = states.season[places, np.arange(len(lengths))[:, np.newaxis]]
    seasonal: Floats = levels * seasonal_states if kind == "multiplied" else levels + seasonal_states
    return seasonal
