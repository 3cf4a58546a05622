"""Small models of every kind, trained once, and rows to predict, with all that rows may have in them."""

from __future__ import annotations

import contextlib
import datetime as dt
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest

from edl.frameworks.trees.forest import Forest, of_lightgbm, of_xgboost
from edl.frameworks.trees.objectives import XGBOOST
from edl.models.archive import Archive, read_archive
from sqlflow_edl.codegen.trees import objective
from sqlflow_edl.session.session import Session
from tests.databases import fill
from tests.searches import short

if TYPE_CHECKING:
    from sqlflow_edl.extensions.serving.model import ServedModel

CITIES = ("Oslo", "Rome", "Kyiv", 'O\'Slo "x" \\ø', "a;b -- %s {c}")
NEAR = ("oslo", "Oslo ", "OSLO", "Atlantis", "", "Rome\\", "ø")  # which no database may take for one of them
COLUMNS = "amount, small, price, city, shop, day, seen, is_new"
FIRST = dt.date(2020, 1, 1)


@dataclass(frozen=True)
class Trained:
    """A trained model. file: its archive. reference: its name and version."""

    file: Path
    reference: str

    @cached_property
    def archive(self) -> Archive:
        return read_archive(self.file)

    @cached_property
    def model(self) -> ServedModel:
        from sqlflow_edl.extensions.serving.model import load_model  # which the core does without

        return load_model(self.file, self.reference)


def rows(count: int, seed: int, *, training: bool = False, infinite: bool = False) -> pa.Table:
    """Rows of random values. Those that are not for training have NULLs, unseen categories and extremes."""
    draw = np.random.default_rng(seed)
    amount = draw.normal(10, 3, count)
    small = draw.integers(-3, 9, count)
    city = draw.choice(np.array(CITIES, dtype=object), count)
    shop = draw.choice([7, 3, 42], count)
    days = draw.integers(0, 2000, count)
    if not training:
        extremes = [1e300, -1e300, 1e-300, 1e39, -1e39, 1e15, 0.0]
        odd = draw.random(count) < 0.1
        amount[odd] = draw.choice(extremes + ([np.inf, -np.inf] if infinite else []), odd.sum())
        city[odd] = draw.choice(np.array(NEAR, dtype=object), odd.sum())
        shop = np.where(draw.random(count) < 0.1, draw.integers(-9, 99, count), shop)
        days = np.where(odd, draw.integers(-20_000, 40_000, count), days)
    signal = amount + small + np.array([len(each) for each in city])
    instants = [dt.datetime(2020, 1, 1) + dt.timedelta(minutes=int(n)) for n in days * 713]
    share = 0.03 if training else 0.1

    def column(values: object, kind: pa.DataType) -> pa.Array:
        return pa.array(values, kind, mask=draw.random(count) < share)

    return pa.table(
        {
            "id": pa.array(range(count), pa.int64()),
            "amount": column(amount, pa.float64()),
            "small": column(small, pa.int32()),
            "price": column(
                [Decimal(int(n)) / 100 for n in draw.integers(0, 9999, count)], pa.decimal128(9, 2)
            ),
            "city": column(city, pa.string()),
            "shop": column(shop, pa.int64()),
            "day": column([FIRST + dt.timedelta(days=int(n)) for n in days], pa.date32()),
            "seen": column(instants, pa.timestamp("us")),
            "is_new": column(draw.random(count) < 0.5, pa.bool_()),
            "bonus": _one_number_or_null(count, seed, signal, training=training),
            **(_labels(signal, draw) if training else {}),
        }
    )


def _one_number_or_null(count: int, seed: int, signal: np.ndarray, *, training: bool) -> pa.Array:
    draw = np.random.default_rng((seed, 1))
    values = np.full(count, 5.0) if training else draw.choice([5.0, 0.0, -1e300], count)
    return pa.array(values, mask=(signal > 12) if training else draw.random(count) < 0.5)


def _labels(signal: np.ndarray, draw: np.random.Generator) -> dict[str, pa.Array]:
    return {
        "kind": pa.array(np.array(["it's", "b\\", "ü"], dtype=object)[np.digitize(signal, [14, 20])]),
        "is_large": pa.array(signal > 16),
        "cost": pa.array(signal * 2 + draw.normal(size=len(signal))),
        "arrived": pa.array(
            1_700_000_000 + np.round(signal * 10).astype(np.int64)
        ),  # float32 steps by 128 there
    }


STATEMENTS = Path(__file__).parent / "fixtures" / "trained"


def statements() -> dict[str, str]:
    return {path.stem: path.read_text(encoding="utf-8") for path in sorted(STATEMENTS.glob("*.sql"))}


class Models(dict[str, Trained]):
    """Models by the name of their statement, each trained when it is first asked for."""

    def __init__(self, session: Session, folder: Path) -> None:
        super().__init__()
        self.session = session
        self.folder = folder
        self._filled: set[str] = set()

    def fresh(self, count: int) -> str:
        """A table of rows to predict, as `rows` draws them."""
        name = f"fresh_{count}"
        if name not in self._filled:
            fill(self.session, name, rows(count, 2, infinite=True))
            self._filled.add(name)
        return name

    def __missing__(self, name: str) -> Trained:
        if not self.session.registry.has(name):  # else another process with this store has trained it
            with short(trials=2):
                for _ in self.session.run(statements()[name]):
                    pass
        file = self.folder / f"{name}.zip"
        self.session.registry.load(name, file)
        self[name] = Trained(file, f"{name}@1")
        return self[name]


@contextlib.contextmanager
def models(folder: Path, store: Path | None = None) -> Iterator[Models]:
    """The models of the statements, in a model store beside the database, which servers can read at the same time.

    store: another folder of the store, which several processes may share.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(folder))
        with Session(
            f"duckdb:///{folder}/models.duckdb", create=True, model_store=str(store or folder / "store")
        ) as session:
            fill(session, "sales", rows(600, 1, training=True))
            yield Models(session, folder)


def fed(batch: pa.RecordBatch, names: Sequence[str]) -> dict[str, np.ndarray]:
    """The columns as the inputs of the ONNX model."""
    found = {}
    for name in names:
        values = batch.column(name)
        if pa.types.is_string(values.type):
            texts = (
                "unseen" if text == "" else text or "" for text in values.to_pylist()
            )  # the empty one is NULL
            found[name] = np.array(list(texts), dtype=object)
            continue
        if pa.types.is_temporal(values.type):
            seconds = values.cast(pa.timestamp("us")).cast(pa.int64())
            found[name] = seconds.cast(pa.float64()).to_numpy(zero_copy_only=False) / 1e6
            continue
        found[name] = values.cast(pa.float64()).to_numpy(zero_copy_only=False)
    return found


def forest_of(archive: Archive) -> Forest:
    """The trees, as the commands read them; the commands read XGBoost in another process."""
    if archive.spec.framework == "lightgbm":
        return of_lightgbm(archive.weights()["booster"].tobytes().decode())
    import xgboost

    booster = xgboost.Booster()
    booster.load_model(bytearray(archive.weights()["booster"].tobytes()))
    kind = XGBOOST[objective(archive.spec)["objective"]]
    return of_xgboost(bytes(booster.save_raw("json")), kind.start or kind.link, archive.spec.label.outputs)
