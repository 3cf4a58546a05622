"""Trees as ONNX, run by onnxruntime: the outputs are those of the library."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from edl import features as fc
from edl import frameworks
from edl.errors import JobError
from edl.frameworks import Minibatches
from edl.frameworks.trees.adapter import TreeAdapter
from edl.frameworks.trees.forest import of_lightgbm, of_xgboost
from edl.spec import ALL_ROWS, ClassLabel, Codes, Label, Raw, RegressionLabel, Rows, Vocabulary
from tests.edl.programs import CONTRACT, TREES, job_spec, loaded, write

onnxruntime = pytest.importorskip("onnxruntime")
pytest.importorskip("onnx")

DRAWN = 100_000
CITIES = tuple(f"c{i}" for i in range(40))
rng = np.random.default_rng(3)


def drawn(rows: int, seed: int) -> np.ndarray:
    """A number, one with gaps, a category with gaps, and one of few values."""
    draw = np.random.default_rng(seed)
    matrix = np.column_stack(
        [draw.normal(size=rows), draw.exponential(size=rows), draw.integers(0, 40, rows), draw.integers(0, 3, rows)]
    ).astype(np.float64)  # fmt: skip
    matrix[draw.random(rows) < 0.1, 1] = np.nan
    matrix[draw.random(rows) < 0.1, 2] = np.nan
    matrix[draw.random(rows) < 0.02, 0] = np.nan  # which training does not have
    return matrix


MATRIX = drawn(1500, 1)
MATRIX[:, 0] = np.nan_to_num(MATRIX[:, 0])
SIGNAL = MATRIX[:, 0] + np.nan_to_num(MATRIX[:, 1]) * (MATRIX[:, 3] - 1) + (np.nan_to_num(MATRIX[:, 2]) % 5)
NUMBER = np.abs(SIGNAL) + 0.1
KINDS: dict[str, tuple[Label, np.ndarray]] = {
    "number": (RegressionLabel("y"), NUMBER.astype(np.float32)[:, np.newaxis]),
    "two": (ClassLabel("y", (0, 1)), (SIGNAL > 2).astype(np.float32)[:, np.newaxis]),
    "three": (ClassLabel("y", (0, 1, 2)), np.digitize(SIGNAL, [1, 3]).astype(np.int64)),
}
MODELS = [
    ("lightgbm", "regression", "number", {}),
    pytest.param("lightgbm", "poisson", "number", {}, marks=pytest.mark.soak),
    ("lightgbm", "binary", "two", {"boosting": "dart"}),
    pytest.param("lightgbm", "multiclass", "three", {"num_class": 3}, marks=pytest.mark.soak),
    ("lightgbm", "regression", "number", {"min_gain_to_split": 1e9}),  # trees of a single leaf
    pytest.param("xgboost", "reg:squarederror", "number", {}, marks=pytest.mark.soak),
    ("xgboost", "count:poisson", "number", {"max_cat_to_onehot": 50}),
    ("xgboost", "binary:logistic", "two", {"booster": "dart", "rate_drop": 0.3}),
    ("xgboost", "multi:softprob", "three", {"num_class": 3}),
    ("xgboost", "reg:squarederror", "number", {"gamma": 1e9}),
]


def grown(
    folder: Path, library: str, objective: str, kind: str, params: dict[str, Any], rounds: int = 20
) -> TreeAdapter:
    label, labels = KINDS[kind]
    made = (Raw("a"), Raw("b"), Codes(Vocabulary("city", CITIES)), Raw("d"))
    written = f"fc.raw('a'), fc.raw('b'), fc.codes(fc.vocabulary('city', {list(CITIES)!r})), fc.raw('d')"
    target = (
        f"fc.class_label('y', {list(label.classes)!r})" if isinstance(label, ClassLabel) else "fc.label('y')"
    )
    more = "".join(f", {name}={value!r}" for name, value in params.items())
    text = (TREES + CONTRACT).format(
        library={"lightgbm": "LightGBM", "xgboost": "XGBoost"}[library],
        objective=objective,
        features=written,
        label=target,
        metrics="{}",
    )
    path = write(
        folder,
        text.replace("seed=0)", f"seed=0{more})"),
        job_spec(library, made, label, Rows(False, 9, 9), batch_size=ALL_ROWS, shuffle=False),
    )
    subject = frameworks.create(loaded(path), {"dense": MATRIX[:2]}, labels[:2], seed=0)
    assert isinstance(subject, TreeAdapter)
    for _ in range(rounds):
        subject.train(Minibatches({"dense": MATRIX}, labels, ALL_ROWS))
    return subject


@pytest.mark.parametrize(("library", "objective", "kind", "params"), MODELS)
def test_outputs_and_scores_are_those_of_predict(
    tmp_path: Path, library: str, objective: str, kind: str, params: dict[str, Any]
) -> None:
    subject = grown(tmp_path, library, objective, kind, params)
    rows = drawn(DRAWN, 2)
    session = onnxruntime.InferenceSession(subject.standalone()(".onnx"))
    outputs, *scores = session.run(None, {"dense": rows})
    wanted = subject.predict({"dense": rows})
    exact = 1e-12 if library == "lightgbm" else 1e-6
    np.testing.assert_allclose(outputs, wanted, rtol=exact, atol=exact)
    label = KINDS[kind][0]
    if isinstance(label, ClassLabel):
        target = fc.class_label("y", label.classes)
        np.testing.assert_allclose(scores[0], target.scores(wanted), rtol=1e-6, atol=1e-6)
    else:
        assert not scores


def test_a_linear_booster_has_no_trees() -> None:
    linear = b'{"learner": {"gradient_booster": {"name": "gblinear", "model": {"weights": [1, 2]}}}}'
    with pytest.raises(JobError, match="a model of gblinear has no trees"):
        of_xgboost(linear, "identity", 1)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("tree", "average_output"),
        ("is_linear=0", "is_linear=1"),
        ("decision_type=", "decision_type=4 "),  # zero as missing
    ],
)
def test_trees_that_only_lightgbm_evaluates_are_refused(tmp_path: Path, line: str, message: str) -> None:
    subject = grown(tmp_path, "lightgbm", "regression", "number", {}, rounds=1)
    text = subject.engine.dump(1).decode()
    with pytest.raises(JobError, match="only evaluated by LightGBM itself"):
        of_lightgbm(text.replace(line, message, 1))
