"""EXPLAIN of a network by expected gradients."""

from __future__ import annotations

import re
import threading
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
import torch

from edl import frameworks
from edl.data.results import ResultFolder
from edl.errors import JobError
from edl.frameworks import create
from edl.input.blocks import Blocks
from edl.jobs.outcome import JobCancelledError
from edl.program import Program, load
from edl.spec import Explanation, Numeric, Output, RegressionLabel, Rows
from edl.worker.inference import predict
from tests.edl.programs import Events, job_spec, rows_of, source, write

FRAMEWORKS = ("keras", "torch")
KINDS = ("north", "south", "west")

Floats = npt.NDArray[np.float64]


def table(rows: int, seed: int = 3) -> pa.Table:
    rng = np.random.default_rng(seed)
    numbers = {name: rng.normal(size=rows) for name in ("a", "b")}
    kinds = {"kind": np.array(KINDS)[rng.integers(0, 3, rows)], "shop": rng.integers(0, 40, rows)}
    return pa.table({"id": np.arange(rows), **numbers, **kinds})


def program(
    folder: Path, framework: str, features: str, size: int = 64, name: str = "FEATURES", **changes: Any
) -> Program:
    """Program of a small network over the features. name: of their variable."""
    frameworks.prepare(framework, 1)
    label, columns = RegressionLabel("y"), tuple(map(Numeric, re.findall(r'"(a|b|kind|shop)"', features)))
    spec = msgspec.structs.replace(
        job_spec(framework, columns, label, Rows(True, 9, 9), batch_size=size),
        kind="explain",
        batch_size=size,
        output=Output(column="y", keep=("id",)),
        explanation=changes.get("explanation", Explanation("rows", 400, method="expected_gradients")),
    )
    text = source(framework, features, label, units=8).replace("FEATURES", name)
    return load(write(folder / "program", text, spec))


def explain(
    found: Program, rows: pa.Table, folder: Path, cancelled: threading.Event | None = None
) -> pa.Table:
    reader = rows_of(folder / "rows", rows)
    example = Blocks(found, reader).read(0, 2, "predict").arrays.features
    weights = create(found, example, None, seed=0).get_weights()
    rng = np.random.default_rng(1)
    weights = {name: 0.7 * rng.normal(size=array.shape).astype("f4") for name, array in weights.items()}
    outcome = predict(
        found,
        reader,
        weights,
        ResultFolder(folder / "results"),
        None,
        observer=Events(),
        cancelled=cancelled or threading.Event(),
    )
    return ResultFolder(folder / "results").read(outcome.tasks).read_all()


def values(found: pa.Table, columns: tuple[str, ...]) -> Floats:
    return np.column_stack([found[f"{name}_shap"].to_numpy() for name in columns])


NUMBERS = 'fc.numeric("a"), fc.numeric("b")'
LINEAR = torch.tensor([[2.0], [-3.0]])
IDS = f'{NUMBERS}, fc.one_hot(fc.vocabulary("kind", {list(KINDS)})), fc.embedding(fc.hash_bucket("shop", 16), 4)'


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_contributions_add_up_to_the_score_and_are_near_to_shapley_values(
    tmp_path: Path, framework: str
) -> None:
    rows, columns = table(60), ("a", "b", "kind", "shop")
    found = explain(program(tmp_path / "one", framework, IDS), rows, tmp_path / "one")
    shapley = Explanation("rows", 60)
    walked = explain(program(tmp_path / "two", framework, IDS, explanation=shapley), rows, tmp_path / "two")
    predicted = found["y"].to_numpy()
    np.testing.assert_allclose(predicted, walked["y"].to_numpy(), rtol=1e-5)
    gap = found["y_base"].to_numpy() + values(found, columns).sum(axis=1) - predicted
    assert np.abs(gap).max() < 0.1 * predicted.std()
    assert np.abs(gap).max() > 0, "rescaled values would add up"
    difference = np.abs(values(found, columns) - values(walked, columns))
    assert difference.mean() < 0.1 * predicted.std()


def test_a_linear_model_has_its_exact_contributions(tmp_path: Path) -> None:
    rows = table(50)
    found_program = program(
        tmp_path, "torch", NUMBERS, explanation=Explanation("rows", 50, method="expected_gradients")
    )
    model = found_program.module.Model
    model.forward = lambda self, features: self.features(features) @ LINEAR + 0 * self.output.bias
    found = explain(found_program, rows, tmp_path)
    for name, slope in zip(("a", "b"), LINEAR.flatten().tolist(), strict=True):
        numbers = rows[name].to_numpy()
        np.testing.assert_allclose(
            found[f"{name}_shap"].to_numpy(), slope * (numbers - numbers.mean()), atol=1e-4
        )


def test_the_same_rows_have_the_same_contributions_in_any_blocks(tmp_path: Path) -> None:
    rows = table(40)
    one, two = (
        explain(program(tmp_path / str(size), "torch", IDS, size), rows, tmp_path / str(size))
        for size in (32, 4096)
    )
    columns = ("a", "b", "kind", "shop")
    np.testing.assert_allclose(values(one, columns), values(two, columns), atol=1e-5)


def test_a_program_without_features_is_refused(tmp_path: Path) -> None:
    found = program(tmp_path, "torch", NUMBERS, name="INPUTS")
    with pytest.raises(JobError, match="expected gradients explain the features of FEATURES"):
        explain(found, table(9), tmp_path)


def test_an_explanation_that_is_cancelled_ends(tmp_path: Path) -> None:
    cancelled = threading.Event()
    cancelled.set()
    with pytest.raises(JobCancelledError):
        explain(program(tmp_path, "torch", IDS), table(9), tmp_path, cancelled)
