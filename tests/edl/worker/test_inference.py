"""PREDICT and EVALUATE in one process."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pytest
from sklearn.metrics import average_precision_score, roc_auc_score

from edl.data.results import ResultFolder
from edl.errors import JobError
from edl.jobs.outcome import JobCancelledError
from edl.program import Program, load
from edl.spec import ClassLabel, Output, RegressionLabel, Rows
from edl.tasks.ranges import STREAMED_ROWS
from edl.worker.inference import evaluate, predict
from tests.edl.programs import Events, loaded, rows_of, simple, trained

LABEL = ClassLabel("y", ("down", "up"))


def table(rows: int) -> pa.Table:
    rng = np.random.default_rng(3)
    x = rng.normal(size=rows)
    return pa.table(
        {"id": np.arange(rows), "x": x, "y": np.where(x + rng.normal(size=rows) > 0, "up", "down")}
    )


@pytest.fixture
def model(tmp_path: Path) -> tuple[Path, dict[str, Any]]:
    """A program folder and the weights that it was trained to."""
    folder = simple(tmp_path / "program", rows=Rows(True, 2000, 2000), label=LABEL, epochs=5, batch_size=50)
    _, adapter = trained(loaded(folder), rows_of(tmp_path / "training", table(2000)))
    return folder, adapter.get_weights()


def as_kind(folder: Path, kind: Any, **changes: Any) -> Program:
    return load(folder, msgspec.structs.replace(load(folder).spec, kind=kind, **changes))


def run(
    do: Any, program: Program, rows: pa.Table, folder: Path, weights: Any, cancelled: bool = False
) -> Any:
    event = threading.Event()
    if cancelled:
        event.set()
    reader = rows_of(folder / "rows", rows)
    return do(program, reader, weights, ResultFolder(folder / "results"), observer=Events(), cancelled=event)


def test_every_row_is_predicted_in_its_order(tmp_path: Path, model: tuple[Path, dict[str, Any]]) -> None:
    folder, weights = model
    rows = 2 * STREAMED_ROWS + 17
    program = as_kind(folder, "predict", output=Output(column="c", keep=("id",)))
    outcome = run(predict, program, table(rows).drop(["y"]), tmp_path, weights)
    assert (outcome.rows, outcome.tasks) == (rows, 3)
    found = ResultFolder(tmp_path / "results").read(3).read_all()
    assert found.schema.names == ["id", "c", "c_confidence", "c_prob_down", "c_prob_up"]
    assert np.array_equal(found["id"].to_numpy(), np.arange(rows))
    assert (
        np.mean(found["c"].to_numpy(zero_copy_only=False) == table(rows)["y"].to_numpy(zero_copy_only=False))
        > 0.7
    )


@pytest.mark.soak
@pytest.mark.parametrize("batch_size", [1, 7, 8192, 100_000])
def test_predictions_do_not_depend_on_the_size_of_a_forward_pass(
    tmp_path: Path, model: tuple[Path, dict[str, Any]], batch_size: int
) -> None:
    folder, weights = model
    probabilities = []
    for name, size in (("one", 8192), ("other", batch_size)):
        program = as_kind(folder, "predict", output=Output(column="c"), batch_size=size)
        run(predict, program, table(300), tmp_path / name, weights)
        probabilities.append(
            ResultFolder(tmp_path / name / "results").read(1).read_all()["c_confidence"].to_numpy()
        )
    np.testing.assert_allclose(*probabilities, rtol=1e-5)


def test_no_rows_predict_an_empty_table_with_its_columns(
    tmp_path: Path, model: tuple[Path, dict[str, Any]]
) -> None:
    folder, weights = model
    outcome = run(
        predict,
        as_kind(folder, "predict", output=Output(column="c", keep=("id",))),
        table(0),
        tmp_path,
        weights,
    )
    found = ResultFolder(tmp_path / "results").read(outcome.tasks).read_all()
    assert (outcome.rows, found.num_rows) == (0, 0)
    assert found.schema.names == ["id", "c", "c_confidence", "c_prob_down", "c_prob_up"]


@pytest.mark.soak
def test_figures_are_exact_and_stand_in_a_table_of_one_row(
    tmp_path: Path, model: tuple[Path, dict[str, Any]]
) -> None:
    folder, weights = model
    text = "\n\ndef eval_metrics_fn():\n    return {'auc': metrics.AUC(), 'ap': metrics.AveragePrecision(),"
    text += " 'accuracy': metrics.Accuracy()}\n"
    (folder / "model.py").write_text((folder / "model.py").read_text() + text)
    data = table(10_000)
    run(predict, as_kind(folder, "predict", output=Output(column="c")), data, tmp_path / "p", weights)
    predicted = ResultFolder(tmp_path / "p" / "results").read(1).read_all()
    outcome = run(evaluate, as_kind(folder, "evaluate"), data, tmp_path / "e", weights)
    truth = data["y"].to_numpy(zero_copy_only=False)
    expected = roc_auc_score(truth == "up", predicted["c_prob_up"].to_numpy())
    assert outcome.figures["auc"] == pytest.approx(expected, rel=1e-12)
    expected = average_precision_score(truth == "up", predicted["c_prob_up"].to_numpy())
    assert outcome.figures["ap"] == pytest.approx(expected, rel=1e-12)
    assert outcome.figures["accuracy"] == np.mean(predicted["c"].to_numpy(zero_copy_only=False) == truth)
    staged = ResultFolder(tmp_path / "e" / "results").read(outcome.tasks).read_all()
    assert staged.to_pylist() == [outcome.figures]
    assert list(outcome.figures) == ["loss", "auc", "ap", "accuracy"]


def test_evaluating_no_rows_is_an_error(tmp_path: Path, model: tuple[Path, dict[str, Any]]) -> None:
    folder, weights = model
    with pytest.raises(JobError, match="no rows to evaluate"):
        run(evaluate, as_kind(folder, "evaluate"), table(0), tmp_path, weights)


@pytest.mark.soak
def test_a_missing_class_gives_a_figure_of_none(tmp_path: Path, model: tuple[Path, dict[str, Any]]) -> None:
    folder, weights = model
    text = "\n\ndef eval_metrics_fn():\n    return {'auc': metrics.AUC()}\n"
    (folder / "model.py").write_text((folder / "model.py").read_text() + text)
    data = table(10).set_column(2, "y", pa.array(["up"] * 10))
    assert run(evaluate, as_kind(folder, "evaluate"), data, tmp_path, weights).figures["auc"] is None


@pytest.mark.soak
def test_weights_of_another_program_are_refused(tmp_path: Path, model: tuple[Path, dict[str, Any]]) -> None:
    folder, weights = model
    with pytest.raises(JobError, match="do not fit the model"):
        run(evaluate, as_kind(folder, "evaluate"), table(10), tmp_path, {**weights, "more": np.ones(1)})


@pytest.mark.soak
@pytest.mark.parametrize(("do", "kind"), [(predict, "predict"), (evaluate, "evaluate")])
def test_a_cancelled_job_stops(
    tmp_path: Path, model: tuple[Path, dict[str, Any]], do: Any, kind: str
) -> None:
    folder, weights = model
    with pytest.raises(JobCancelledError):
        run(do, as_kind(folder, kind), table(100), tmp_path, weights, cancelled=True)


def test_a_regression_is_predicted_as_numbers(tmp_path: Path) -> None:
    data = table(100).set_column(2, "y", pa.array(np.arange(100.0)))
    folder = simple(tmp_path / "p", rows=Rows(True, 100, 100), label=RegressionLabel("y"))
    _, adapter = trained(loaded(folder), rows_of(tmp_path / "t", data))
    program = as_kind(folder, "predict", output=Output(column="y"))
    run(predict, program, data, tmp_path, adapter.get_weights())
    found = ResultFolder(tmp_path / "results").read(1).read_all()
    assert found.schema.names == ["y"]
    assert found.schema.field("y").type == pa.float64()
