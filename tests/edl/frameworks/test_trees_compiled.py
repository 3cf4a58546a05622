"""Compiled evaluation of LightGBM's trees: the library's own numbers, to the last bit."""

from __future__ import annotations

from typing import Any

import lightgbm
import numpy as np
import pytest

from edl.frameworks.trees import compiled
from edl.frameworks.trees.compiled import CompiledForest
from edl.frameworks.trees.forest import of_lightgbm
from edl.frameworks.trees.lightgbm import LightGBMEngine
from edl.frameworks.trees.models import LightGBM
from edl.frameworks.trees.objectives import LIGHTGBM

pytest.importorskip("numba")
rng = np.random.default_rng(17)


def drawn(rows: int) -> np.ndarray:
    """A number, one with gaps, one of few values, and a category of many values with gaps."""
    matrix = np.column_stack(
        [rng.normal(size=rows), rng.exponential(size=rows), rng.integers(-2, 3, rows), rng.integers(0, 90, rows)]
    ).astype(np.float64)  # fmt: skip
    matrix[rng.random(rows) < 0.1, 1] = np.nan
    matrix[rng.random(rows) < 0.1, 3] = np.nan
    return matrix


MATRIX = drawn(2000)
NUMBER = (
    np.exp(0.4 * MATRIX[:, 0]) + np.nan_to_num(MATRIX[:, 3]) % 4 + np.nan_to_num(MATRIX[:, 1]) * MATRIX[:, 2]
)
UNSEEN = drawn(
    3000
)  # with what training does not have: NULLs, codes beyond the known ones, fractions of codes
UNSEEN[::7, 0], UNSEEN[::11, 3], UNSEEN[::13, 3], UNSEEN[::17, 3] = np.nan, 5000, -1, 3.7


def trained(categories: list[int], **params: Any) -> lightgbm.Booster:
    classes = params.get("num_class")
    labels = np.digitize(NUMBER, [1, 3]) if classes else NUMBER - NUMBER.min()
    data = lightgbm.Dataset(MATRIX, labels, categorical_feature=categories)
    booster = lightgbm.train({"verbosity": -1, "num_threads": 1, **params}, data, 15)
    return lightgbm.Booster(model_str=booster.model_to_string())


@pytest.mark.variants(1)
@pytest.mark.parametrize(
    ("categories", "params"),
    [
        ([], {}),
        ([3], {}),
        ([2, 3], {"objective": "multiclass", "num_class": 3, "boosting": "dart"}),
        ([3], {"objective": "poisson", "min_gain_to_split": 1e9}),  # trees of a single leaf
        ([], {"num_leaves": 200, "min_data_in_leaf": 1, "use_missing": False}),
    ],
)
@pytest.mark.parametrize("threads", [1, 2])
def test_margins_equal_the_library_to_the_last_bit(
    categories: list[int], params: dict[str, Any], threads: int
) -> None:
    booster = trained(categories, **params)
    subject = CompiledForest(of_lightgbm(booster.model_to_string()))
    wanted = booster.predict(UNSEEN, raw_score=True).reshape(len(UNSEEN), -1)
    np.testing.assert_array_equal(subject.margins(UNSEEN, threads), wanted)
    np.testing.assert_array_equal(subject.margins(np.asfortranarray(UNSEEN), threads), wanted)


class Engine(LightGBMEngine):
    """An engine that says which code it predicts by."""

    def by(self, rows: int, last: int) -> str:
        return "compiled code" if self._compile_when_worthwhile(rows, last) else "the library"


@pytest.fixture
def engine() -> Engine:
    from edl import features as fc

    model = LightGBM(fc.Features(*map(fc.raw, "abcd")), objective="regression")
    found = Engine(model, LIGHTGBM["regression"])
    found.load(trained([]).model_to_string().encode())
    return found


def test_few_rows_are_predicted_by_the_library_and_many_by_compiled_code(engine: Engine) -> None:
    enough = compiled.ENOUGH // 15
    assert [engine.by(enough - 1, 15), engine.by(1, 15), engine.by(1, 9)] == [
        "the library",
        "compiled code",
        "compiled code",
    ]


@pytest.mark.parametrize("last", [15, 9])
def test_both_ways_give_the_same_predictions(
    engine: Engine, last: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = engine.margins(UNSEEN, last)
    monkeypatch.setattr("edl.frameworks.trees.lightgbm.ENOUGH", 0)
    assert engine.by(1, last) == "compiled code"
    np.testing.assert_array_equal(engine.margins(UNSEEN, last), wanted)


def test_the_library_evaluates_what_nothing_else_does(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("edl.frameworks.trees.lightgbm.ENOUGH", 0)
    engine.load(trained([], linear_tree=True).model_to_string().encode())
    assert engine.by(1, 15) == "the library"
    monkeypatch.setattr("edl.frameworks.trees.lightgbm.is_available", lambda: False)
    engine.load(trained([]).model_to_string().encode())
    assert engine.by(1, 15) == "the library"
