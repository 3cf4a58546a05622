"""Trees as ONNX, run by onnxruntime: the outputs equal PREDICT's, from the columns of the table or the matrix."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from edl import features as fc
from edl import frameworks
from edl.errors import JobError
from edl.frameworks import Minibatches
from edl.frameworks.trees.adapter import TreeAdapter
from edl.frameworks.trees.forest import of_lightgbm, of_xgboost
from edl.metrics.calibration import apply_temperature
from edl.spec import (
    ALL_ROWS,
    Bucket,
    CategoryId,
    ClassLabel,
    Codes,
    DatePart,
    Feature,
    GroupMean,
    HashBucket,
    Label,
    LogCount,
    Raw,
    RegressionLabel,
    Rows,
    Vocabulary,
)
from tests.edl.programs import CONTRACT, TREES, job_spec, loaded, write

onnxruntime = pytest.importorskip("onnxruntime")
pytest.importorskip("onnx")

CITIES = tuple(f"c{i}" for i in range(40))
PLAIN: tuple[Feature, ...] = (Raw("a"), Raw("b"), Codes(Vocabulary("city", CITIES)), Raw("d"))
PARTS = ("year", "month", "day", "weekday", "hour", "minute")
RICH: tuple[Feature, ...] = (
    *PLAIN,
    Codes(Bucket("b", (0.1, 0.5, 2.0))),
    Codes(CategoryId("d", 2)),
    Codes(Vocabulary("shop", (7, 3, -1))),
    Raw("new"),
    Codes(DatePart("seen", "month")),
    Raw("seen"),
    *(Raw("seen", part) for part in PARTS),
    *(Raw("born", part) for part in PARTS[:4]),
    Raw("woke", "hour"),
    LogCount(Vocabulary("city", CITIES), tuple(map(float, range(1, 42)))),
    *(
        GroupMean(
            Vocabulary("city", CITIES),
            "b",
            difference,
            (1.0,) * 41,
            tuple(map(float, range(41))),
            scaled=False,
        )
        for difference in (False, True)
    ),
)


def drawn(rows: int, seed: int) -> pa.RecordBatch:
    """Numbers, texts, dates and times, with NULLs, and with values that training does not have."""
    draw = np.random.default_rng(seed)

    def column(values: Sequence[Any] | np.ndarray, kind: pa.DataType, share: float = 0.1) -> pa.Array:
        return pa.array(values, kind, mask=draw.random(rows) < share, from_pandas=True)

    seconds = draw.integers(-(10**10), 10**10, rows)
    return pa.record_batch(
        {
            "a": column(draw.normal(size=rows), pa.float64(), 0.02 * seed),
            "b": column(draw.exponential(size=rows), pa.float64()),
            "city": column([f"c{i}" for i in draw.integers(0, 40 + 5 * seed, rows)], pa.string()),
            "d": column(draw.integers(0, 3, rows), pa.int64(), 0.0),
            "shop": column(draw.choice([7, 3, -1, 8], rows), pa.int32()),
            "new": column(draw.random(rows) < 0.5, pa.bool_()),
            "seen": column(seconds, pa.timestamp("s")),
            "born": pa.array(draw.integers(-200_000, 80_000, rows), pa.int32()).cast(pa.date32()),
            "woke": pa.array(draw.integers(0, 86_400, rows), pa.int32()).cast(pa.time32("s")),
        }
    )


def fed(batch: pa.RecordBatch, names: Sequence[str]) -> dict[str, np.ndarray]:
    """The columns as the inputs of the ONNX model."""
    found = {}
    for name in names:
        values = batch.column(name)
        if pa.types.is_string(values.type):
            found[name] = np.array(values.fill_null("").to_pylist(), dtype=object)
            continue
        if pa.types.is_date(values.type):
            values = pa.compute.multiply(values.cast(pa.int32()).cast(pa.int64()), 86_400)
        if pa.types.is_temporal(values.type):
            values = values.cast(pa.int32() if pa.types.is_time(values.type) else pa.int64())
        found[name] = values.cast(pa.float64()).to_numpy(zero_copy_only=False)
    return found


TRAINING = drawn(1500, 0)
SIGNAL = (
    np.asarray(TRAINING["a"])
    + np.nan_to_num(TRAINING["b"].to_numpy(zero_copy_only=False)) * (np.asarray(TRAINING["d"]) - 1)
    + np.array([int((city or "c0")[1:]) % 5 for city in TRAINING["city"].to_pylist()])
    + np.array([date.month % 3 for date in TRAINING["born"].to_pylist()])
)
NUMBER = np.abs(SIGNAL) + 0.1
KINDS: dict[str, tuple[Label, np.ndarray]] = {
    "number": (RegressionLabel("y"), NUMBER.astype(np.float32)[:, np.newaxis]),
    "two": (ClassLabel("y", (0, 1)), (SIGNAL > 2).astype(np.float32)[:, np.newaxis]),
    "three": (ClassLabel("y", (0, 1, 2)), np.digitize(SIGNAL, [1, 3]).astype(np.int64)),
}
MODELS = [
    ("lightgbm", "regression", "number", {}, RICH),
    pytest.param("lightgbm", "poisson", "number", {}, PLAIN, marks=pytest.mark.soak),
    ("lightgbm", "binary", "two", {"boosting": "dart"}, PLAIN),
    pytest.param("lightgbm", "multiclass", "three", {"num_class": 3}, PLAIN, marks=pytest.mark.soak),
    ("lightgbm", "regression", "number", {"min_gain_to_split": 1e9}, PLAIN),  # trees of a single leaf
    pytest.param("xgboost", "reg:squarederror", "number", {}, RICH, marks=pytest.mark.soak),
    ("xgboost", "count:poisson", "number", {"max_cat_to_onehot": 50}, PLAIN),
    ("xgboost", "binary:logistic", "two", {"booster": "dart", "rate_drop": 0.3}, PLAIN),
    ("xgboost", "binary:hinge", "two", {}, PLAIN),
    ("xgboost", "multi:softprob", "three", {"num_class": 3}, PLAIN),
    ("xgboost", "reg:squarederror", "number", {"gamma": 1e9}, PLAIN),
]


def grown(
    folder: Path,
    library: str,
    objective: str = "regression",
    kind: str = "number",
    params: dict[str, Any] | None = None,
    features: tuple[Feature, ...] = PLAIN,
    rounds: int = 20,
    *,
    noted: bool = True,
) -> tuple[TreeAdapter, fc.Features]:
    """The adapter after some rounds, and the transform of its features."""
    label, labels = KINDS[kind]
    target = (
        f"fc.class_label('y', {list(label.classes)!r})" if isinstance(label, ClassLabel) else "fc.label('y')"
    )
    more = "".join(f", {name}={value!r}" for name, value in (params or {}).items())
    text = (TREES + CONTRACT).format(
        library={"lightgbm": "LightGBM", "xgboost": "XGBoost"}[library],
        objective=objective,
        features=", ".join(map(repr, features)),
        label=target,
        metrics="{}",
    )
    imports = (
        "from msgspec import UNSET\n"
        "from edl.spec import Bucket, CategoryId, Codes, DatePart, GroupMean, HashBucket, LogCount, Raw, Vocabulary\n"
    )
    text = imports + text.replace("seed=0)", f"seed=0{more})")
    spec = job_spec(library, features, label, Rows(False, 9, 9), batch_size=ALL_ROWS, shuffle=False)
    program = loaded(write(folder, text, spec, noted=noted))
    made = fc.Features(*features)
    matrix = made.transform(TRAINING)
    subject = frameworks.create(program, {"dense": matrix["dense"][:2]}, labels[:2], seed=0)
    assert isinstance(subject, TreeAdapter)
    for _ in range(rounds):
        subject.train(Minibatches(matrix, labels, ALL_ROWS))
    return subject, made


@pytest.mark.variants(2)
@pytest.mark.parametrize(("library", "objective", "kind", "params", "features"), MODELS)
def test_outputs_and_scores_of_raw_columns_equal_predict(
    tmp_path: Path,
    library: str,
    objective: str,
    kind: str,
    params: dict[str, Any],
    features: tuple[Feature, ...],
) -> None:
    subject, made = grown(tmp_path, library, objective, kind, params, features)
    rows = drawn(100_000 if features is RICH else 5_000, 1)
    session = onnxruntime.InferenceSession(subject.standalone().of_onnx())
    names = [each.name for each in session.get_inputs()]
    assert names == list(made.source_columns)
    assert subject.standalone().onnx_inputs == f"the columns {', '.join(names)}"
    outputs, *scores = session.run(None, fed(rows, names))
    wanted = subject.predict(made.transform(rows))
    exact = 1e-12 if library == "lightgbm" else 1e-6
    np.testing.assert_allclose(outputs, wanted, rtol=exact, atol=exact)
    label = KINDS[kind][0]
    if isinstance(label, ClassLabel):
        target = fc.class_label("y", label.classes)
        np.testing.assert_allclose(scores[0], target.scores(wanted), rtol=1e-6, atol=1e-6)
    else:
        assert not scores


@pytest.mark.parametrize(("objective", "kind"), [("binary", "two"), ("multiclass", "three")])
def test_scores_have_the_temperature_of_a_calibration(tmp_path: Path, objective: str, kind: str) -> None:
    classes = {"num_class": 3} if kind == "three" else {}
    subject, made = grown(tmp_path, "lightgbm", objective, kind, classes, rounds=3)
    subject.program = loaded(tmp_path, temperature=2.5)
    rows = drawn(200, 1)
    session = onnxruntime.InferenceSession(subject.standalone().of_onnx())
    outputs, scores = session.run(None, fed(rows, made.source_columns))
    label = KINDS[kind][0]
    assert isinstance(label, ClassLabel)
    plain = fc.class_label("y", label.classes).scores(outputs)
    both = np.stack([1 - plain, plain], axis=1) if plain.ndim == 1 else plain
    np.testing.assert_allclose(scores, apply_temperature(both, 2.5), rtol=1e-9)


@pytest.mark.soak
@pytest.mark.parametrize(
    ("features", "noted"),
    [
        ((*PLAIN, Codes(HashBucket("city", 10))), True),
        ((*PLAIN, Codes(DatePart("city", "month"))), True),  # a text, and a time
        (PLAIN, False),  # an edited program may compute anything
    ],
)
def test_the_input_is_the_matrix_where_columns_have_no_operator(
    tmp_path: Path, features: tuple[Feature, ...], noted: bool
) -> None:
    usual = (
        features
        if isinstance(features[-1], Codes) and isinstance(features[-1].category, HashBucket)
        else PLAIN
    )
    subject, made = grown(tmp_path, "lightgbm", features=usual, noted=noted)
    subject.program = loaded(tmp_path, inputs={"features": features})
    session = onnxruntime.InferenceSession(subject.standalone().of_onnx())
    assert [each.name for each in session.get_inputs()] == ["dense"]
    assert subject.standalone().onnx_inputs == "the matrix dense"
    rows = made.transform(drawn(500, 1))
    np.testing.assert_allclose(session.run(None, rows)[0], subject.predict(rows), rtol=1e-12)


def test_a_column_may_have_the_name_of_an_output(tmp_path: Path) -> None:
    subject, _ = grown(tmp_path, "lightgbm", "binary", "two", rounds=2)
    features = (Raw("outputs"), Raw("/1"), Codes(Vocabulary("scores", ("x",))), Raw("dense"))
    subject.program = loaded(tmp_path, inputs={"features": features})
    session = onnxruntime.InferenceSession(subject.standalone().of_onnx())
    assert [each.name for each in session.get_outputs()] == ["outputs_", "scores_"]


def test_dates_of_centuries_have_the_parts_of_the_calendar(tmp_path: Path) -> None:
    days = [
        dt.date(1600, 2, 29),
        dt.date(1899, 12, 31),
        dt.date(1970, 1, 1),
        dt.date(2000, 2, 29),
        dt.date(2100, 3, 1),
    ]
    batch = pa.record_batch({"born": pa.array(days)})
    from edl.frameworks.onnx.columns import matrix
    from edl.frameworks.onnx.graph import Graph

    features = tuple(Raw("born", part) for part in PARTS[:4])
    graph = Graph(["born"])
    graph.output("matrix", matrix(graph, features), 4)
    [found] = onnxruntime.InferenceSession(graph.encode()).run(None, fed(batch, ["born"]))
    assert found.tolist() == [[day.year, day.month, day.day, day.isoweekday()] for day in days]
    np.testing.assert_array_equal(found, fc.Features(*features).transform(batch)["dense"])


def test_a_linear_booster_has_no_trees() -> None:
    linear = b'{"learner": {"gradient_booster": {"name": "gblinear", "model": {"weights": [1, 2]}}}}'
    with pytest.raises(JobError, match="a model of gblinear has no trees"):
        of_xgboost(linear, "identity", 1)


@pytest.mark.parametrize(
    ("line", "changed"),
    [
        ("tree", "average_output"),
        ("is_linear=0", "is_linear=1"),
        ("decision_type=", "decision_type=4 "),  # zero as missing
    ],
)
def test_trees_that_only_lightgbm_evaluates_are_refused(tmp_path: Path, line: str, changed: str) -> None:
    subject, _ = grown(tmp_path, "lightgbm", rounds=1)
    text = subject.engine.dump(1).decode()
    with pytest.raises(JobError, match="only evaluated by LightGBM itself"):
        of_lightgbm(text.replace(line, changed, 1))
