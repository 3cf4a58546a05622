"""Small program folders, as the compiler would write them, and pinned rows for them."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pytest

from edl import data, frameworks
from edl.data import Pinned, Reader
from edl.data.pinned import pin_rows
from edl.jobs.events import EpochEnd, Progress
from edl.jobs.outcome import Outcome
from edl.program import Program, digest_line, load
from edl.spec import (
    ALL_ROWS,
    ClassLabel,
    Component,
    Feature,
    Field,
    JobSpec,
    Label,
    Numeric,
    Query,
    RankingLabel,
    Raw,
    RegressionLabel,
    Rows,
    Training,
    to_json,
)
from edl.worker.trainer import split, train

# As parameters of tests that either framework passes; `make test` has the one that is ready in a second.
FRAMEWORKS = ["torch", pytest.param("keras", marks=pytest.mark.soak)]

KERAS = """\
import keras

from edl import features as fc
from edl import metrics
from edl.keras import concatenated, feature_inputs

FEATURES = fc.Features({features})
LABEL = {label}


def custom_model():
    inputs = feature_inputs(FEATURES)
    hidden = keras.layers.Dense({units}, activation="relu")(concatenated(FEATURES, inputs))
    return keras.Model(inputs, keras.layers.Dense({outputs})(hidden))


def loss(labels, predictions):
    return {keras_loss}


def optimizer(lr={rate}):
    return keras.optimizers.Adam(lr)
"""

TORCH = """\
import torch
from torch import nn
from torch.nn import functional as F

from edl import features as fc
from edl import metrics
from edl.torch import Concatenated

FEATURES = fc.Features({features})
LABEL = {label}


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = Concatenated(FEATURES)
        self.hidden = nn.Linear(FEATURES.width, {units})
        self.output = nn.Linear({units}, {outputs})

    def forward(self, features):
        return self.output(torch.relu(self.hidden(self.features(features))))


def custom_model():
    return Model()


def loss(labels, predictions):
    return {torch_loss}


def optimizer(parameters, lr={rate}):
    return torch.optim.Adam(parameters, lr, fused=True)
"""

TREES = """\
from edl import features as fc
from edl import metrics
from edl.trees import {library}

FEATURES = fc.Features({features})
LABEL = {label}


def custom_model():
    return {library}(FEATURES, objective="{objective}", learning_rate=0.1, seed=0)
"""

CONTRACT = """

def feed(batch, mode):
    return FEATURES.transform(batch), LABEL.transform(batch, mode)


def scores(outputs):
    return LABEL.scores(outputs)


def eval_metrics_fn():
    return {metrics}
"""

_LOSSES = {
    "regression": {
        "keras_loss": "keras.losses.mean_squared_error(labels, predictions)",
        "torch_loss": 'F.mse_loss(predictions, labels, reduction="none")',
    },
    "binary": {
        "keras_loss": "keras.losses.binary_crossentropy(labels, predictions, from_logits=True)",
        "torch_loss": 'F.binary_cross_entropy_with_logits(predictions, labels, reduction="none")',
    },
    "multiclass": {
        "keras_loss": "keras.losses.sparse_categorical_crossentropy(labels, predictions, from_logits=True)",
        "torch_loss": 'F.cross_entropy(predictions, labels, reduction="none")',
    },
}


_TREES = {
    "lightgbm": {
        "library": "LightGBM",
        "regression": "regression",
        "binary": "binary",
        "multiclass": 'multiclass", num_class=3, boosting="gbdt',
        "ranking": "OBJECTIVE",
    },
    "xgboost": {
        "library": "XGBoost",
        "regression": "reg:squarederror",
        "binary": "binary:logistic",
        "multiclass": 'multi:softprob", num_class=3, device="cpu',
        "ranking": "OBJECTIVE",
    },
}
_PAGES = {"keras": KERAS, "torch": TORCH, "lightgbm": TREES, "xgboost": TREES}


def kind_of(label: Label) -> str:
    if isinstance(label, RankingLabel):
        return "ranking"
    return (
        "regression" if isinstance(label, RegressionLabel) else "binary" if label.is_binary else "multiclass"
    )


def source(
    framework: str,
    features: str,
    label: Label,
    *,
    units: int = 16,
    rate: float = 0.01,
    metrics: str | None = None,
) -> str:
    """The text of a model.py; features: the arguments of fc.Features."""
    if isinstance(label, ClassLabel):
        target, default = (
            f"fc.class_label({label.column!r}, {list(label.classes)!r})",
            '{"accuracy": metrics.Accuracy()}',
        )
    elif isinstance(label, RankingLabel):
        target, default = f"fc.ranking({label.column!r}, {label.group!r})", '{"ndcg": metrics.NDCG()}'
    else:
        target, default = f"fc.label({label.column!r})", '{"rmse": metrics.RMSE()}'
    library = _TREES.get(framework, {})
    return (_PAGES[framework] + CONTRACT).format(
        library=library.get("library"),
        objective=library.get(kind_of(label)),
        features=features,
        label=target,
        units=units,
        outputs=label.outputs,
        rate=rate,
        metrics=metrics or default,
        **_LOSSES.get(kind_of(label), {}),
    )


def job_spec(
    framework: str, features: tuple[Feature, ...], label: Label, rows: Rows, **training: Any
) -> JobSpec:
    return JobSpec(
        kind="train",
        statement="SELECT * FROM t TO TRAIN DNNRegressor LABEL y INTO m",
        query=Query("SELECT * FROM t", "duckdb", "duckdb:", (Field("x", "double"),)),
        rows=rows,
        framework=framework,  # type: ignore[arg-type]
        model=Component("DNNRegressor"),
        inputs={"features": features},
        label=label,
        optimizer=Component("adam"),
        loss=Component("mean_squared_error"),
        metrics=("rmse",),
        training=Training(**training),
    )


def write(folder: Path, text: str, spec: JobSpec, *, noted: bool = True) -> Path:
    """A program folder; noted: with the digest that says it is not edited."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.py").write_text(text)
    (folder / "job.json").write_bytes(to_json(spec))
    if noted:
        (folder / "model.py.sha256").write_text(digest_line(text))
    return folder


def pin(folder: Path, table: pa.Table) -> Pinned:
    """The table's rows, in their order."""
    return pin_rows(
        folder, table.to_reader(), source="duckdb:", select="SELECT * FROM t", seed=0, shuffled=False
    )


def rows_of(folder: Path, table: pa.Table) -> Reader:
    return data.open_reader(pin(folder, table), folder)


def simple(
    folder: Path,
    framework: str = "torch",
    *,
    rows: Rows,
    label: Label | None = None,
    features: tuple[str, ...] = ("x",),
    units: int = 16,
    replace: dict[str, str] | None = None,
    append: str = "",
    **training: Any,
) -> Path:
    """A program over plain numbers; `replace` and `append` edit its text."""
    label = label or RegressionLabel("y")
    trees = framework in _TREES
    made: tuple[Feature, ...] = tuple((Raw if trees else Numeric)(name) for name in features)
    written = (f"fc.{'raw' if trees else 'numeric'}({name!r})" for name in features)
    text = source(framework, ", ".join(written), label, units=units)
    if trees:
        training = {"batch_size": ALL_ROWS, "shuffle": False, **training}
    for old, new in (replace or {}).items():
        assert old in text
        text = text.replace(old, new)
    return write(folder, text + append, job_spec(framework, made, label, rows, **training))


def loaded(folder: Path, **changes: Any) -> Program:
    """The program, its framework prepared; changes: of its JobSpec."""
    program = load(folder)
    frameworks.prepare(program.spec.framework, 1)
    if not changes:
        return program
    return load(folder, msgspec.structs.replace(program.spec, **changes))


class Events(list[Progress | EpochEnd]):
    """An observer that keeps what it is told."""

    def __call__(self, event: Progress | EpochEnd) -> None:
        self.append(event)


def trained(
    program: Program, reader: Reader, observer: Events | None = None
) -> tuple[Outcome, frameworks.Adapter]:
    rows = split(program.spec.rows, reader.rows, program.spec.training.validation_fraction)
    return train(
        program,
        reader,
        rows,
        observer=Events() if observer is None else observer,
        cancelled=threading.Event(),
    )
