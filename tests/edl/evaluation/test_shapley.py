"""EXPLAIN: what columns are worth, by their Shapley values."""

from __future__ import annotations

import itertools
import math
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest

from edl import frameworks
from edl.data import Reader
from edl.data.readers import BatchReader
from edl.data.results import ResultFolder
from edl.errors import JobError
from edl.evaluation.scoring import trained_adapter
from edl.evaluation.shapley import Explainer, draw
from edl.input.blocks import Block, Blocks
from edl.jobs.outcome import JobCancelledError
from edl.program import Program, load
from edl.spec import ClassLabel, Explanation, Label, Output, Rows
from edl.tasks.job_state import plan
from edl.worker.inference import evaluate, predict
from tests.edl.programs import Events, rows_of, simple

COLUMNS = ("a", "b", "c")
MODEL = """

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = Concatenated(FEATURES)
        self.one = nn.Parameter(torch.ones(1))

    def forward(self, features):
        {split} = self.features(features).split(1, dim=1)
        return self.one * ({formula})
"""
NUMBER = "a * b + 3 * c"
LOGITS = "torch.cat([a, b, a * c], dim=1)"

Floats = npt.NDArray[np.float64]


def table(rows: int, seed: int = 3) -> pa.Table:
    rng = np.random.default_rng(seed)
    return pa.table({"id": np.arange(rows), **{name: rng.normal(size=rows) for name in COLUMNS}})


def program(
    folder: Path, formula: str, label: Label | None = None, columns: tuple[str, ...] = COLUMNS, **changes: Any
) -> Program:
    """Program with a formula of the columns as its model."""
    model = MODEL.format(
        formula=formula, split=", ".join(columns) if len(columns) > 1 else f"({columns[0]},)"
    )
    made = simple(
        folder, rows=Rows(True, 9, 9), features=columns, label=label, units=1, append=model, batch_size=9
    )
    frameworks.prepare("torch", 1)
    spec = msgspec.structs.replace(load(made).spec, kind="explain", **changes)
    return load(made, spec)


def explained(
    found: Program,
    reader: Reader,
    folder: Path,
    cancelled: threading.Event | None = None,
    background: pa.RecordBatch | None = None,
) -> Any:
    do: Callable[..., Any] = predict if found.spec.work == "predict" else evaluate
    outcome = do(
        found,
        reader,
        {"one": np.ones(1, np.float32)},
        ResultFolder(folder / "results"),
        background,
        observer=Events(),
        cancelled=cancelled or threading.Event(),
    )
    return outcome, ResultFolder(folder / "results").read(outcome.tasks).read_all()


def of_rows(
    folder: Path, formula: str, rows: pa.Table, label: Label | None = None, **changes: Any
) -> pa.Table:
    given = {"output": Output(column="y", keep=("id",)), "explanation": Explanation("rows", rows.num_rows)}
    found = program(folder / "program", formula, label, **{**given, **changes})
    return explained(found, rows_of(folder / "rows", rows), folder)[1]


def values(found: pa.Table) -> Floats:
    return np.column_stack([found[f"{name}_shap"].to_numpy() for name in COLUMNS])


def shapley(score: Callable[[Floats], Floats], rows: Floats) -> Floats:
    """By the definition: over all orders, and all rows to compare with."""
    total = np.zeros_like(rows)
    orders = list(itertools.permutations(range(rows.shape[1])))
    for other in rows:
        for order in orders:
            mixed = np.tile(other, (len(rows), 1))
            before = score(mixed)
            for column in order:
                mixed[:, column] = rows[:, column]
                after = score(mixed)
                total[:, column] += after - before
                before = after
    return total / (len(orders) * len(rows))


def matrix(rows: pa.Table) -> Floats:
    return np.column_stack([rows[name].to_numpy() for name in COLUMNS])


def softmax(logits: Floats) -> Floats:
    powers = np.exp(logits)
    found: Floats = powers / powers.sum(axis=1, keepdims=True)
    return found


def counting(scores_of: Callable[[Explainer, Block], Floats], rows: list[int]) -> Callable[..., Floats]:
    """Return the method, which notes how many rows it is called with."""

    def counted(self: Explainer, block: Block) -> Floats:
        rows.append(block.rows)
        return scores_of(self, block)

    return counted


@pytest.mark.soak
def test_values_follow_the_definition(tmp_path: Path) -> None:
    """An order and its reverse are exact where at most two columns work together."""
    rows = table(40)
    found = of_rows(tmp_path, NUMBER, rows)
    expected = shapley(lambda x: x[:, 0] * x[:, 1] + 3 * x[:, 2], matrix(rows))
    np.testing.assert_allclose(values(found), expected, atol=1e-5)
    assert found.schema.names == ["id", "y", "y_base", "a_shap", "b_shap", "c_shap"]
    assert np.array_equal(found["id"].to_numpy(), np.arange(40))


def test_a_replacement_by_an_equal_value_takes_no_prediction(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    predicted: list[int] = []
    monkeypatch.setattr(Explainer, "_scores_of", counting(Explainer._scores_of, predicted))
    rows = pa.table({"id": range(12), "a": [1.0, 2.0] * 6, "b": [None, None, 4.0] * 4, "c": [5.0] * 12})
    found = of_rows(tmp_path, NUMBER, rows)

    filled = pa.table({**dict(zip(rows.column_names, rows.columns, strict=True)), "b": [0.0, 0.0, 4.0] * 4})
    expected = shapley(lambda x: x[:, 0] * x[:, 1] + 3 * x[:, 2], matrix(filled))
    np.testing.assert_allclose(values(found), expected, atol=1e-5)
    assert (
        sum(predicted) < 12 + 12 + 2 * 12 * 12
    )  # of 4 * 12 * 12 replacements between the starts and the ends


@pytest.mark.soak
def test_of_several_classes_the_probability_of_the_predicted_one_is_explained(tmp_path: Path) -> None:
    rows, label = table(30), ClassLabel("y", ("u", "v", "w"))
    found = of_rows(tmp_path, LOGITS, rows, label, explanation=Explanation("rows", 480))

    def probabilities(x: Floats) -> Floats:
        return softmax(np.column_stack([x[:, 0], x[:, 1], x[:, 0] * x[:, 2]]))

    best = probabilities(matrix(rows)).argmax(axis=1)
    by_class = [shapley(lambda x, k=k: probabilities(x)[:, k], matrix(rows)) for k in range(3)]  # type: ignore[misc]
    expected = np.stack(by_class)[best, np.arange(30)]
    np.testing.assert_allclose(values(found), expected, atol=0.02)
    np.testing.assert_allclose(
        found["y_base"].to_numpy() + values(found).sum(axis=1), found["y_confidence"].to_numpy()
    )


def test_of_two_classes_the_probability_of_the_second_is_explained(tmp_path: Path) -> None:
    found = of_rows(tmp_path, NUMBER, table(30), ClassLabel("y", ("down", "up")))
    total = found["y_base"].to_numpy() + values(found).sum(axis=1)
    np.testing.assert_allclose(total, found["y_prob_up"].to_numpy())


@pytest.mark.soak
@pytest.mark.parametrize("batch_size", [1, 7, 100_000])
def test_values_do_not_depend_on_how_rows_are_checkpoint(tmp_path: Path, batch_size: int) -> None:
    rows, few = table(50), Explanation("rows", 5)
    one = of_rows(tmp_path / "one", NUMBER, rows, explanation=few)
    other = of_rows(tmp_path / "other", NUMBER, rows, explanation=few, batch_size=batch_size)
    np.testing.assert_allclose(values(one), values(other), atol=1e-6)


@pytest.mark.soak
def test_more_samples_than_rows_are_drawn_again_and_again(tmp_path: Path) -> None:
    found = of_rows(tmp_path, NUMBER, table(3), explanation=Explanation("rows", 100))
    np.testing.assert_allclose(
        found["y_base"].to_numpy() + values(found).sum(axis=1), found["y"].to_numpy(), rtol=1e-5
    )


def test_all_rows_are_drawn_equally_often_where_they_are_few(tmp_path: Path) -> None:
    rows = table(8)
    found = of_rows(tmp_path, "2 * a + 0 * b * c", rows, explanation=Explanation("rows", 16))
    a = rows["a"].to_numpy()
    np.testing.assert_allclose(found["a_shap"].to_numpy(), 2 * (a - a.mean()), atol=1e-6)


def test_one_row_is_as_usual_as_can_be(tmp_path: Path) -> None:
    assert not values(of_rows(tmp_path, NUMBER, table(1))).any()


def test_one_row_is_compared_with_the_rows_that_the_model_keeps(tmp_path: Path) -> None:
    kept, row = table(40), table(1, seed=4)
    given = {"output": Output(column="y"), "explanation": Explanation("rows", 40)}
    found = program(tmp_path / "program", NUMBER, **given)
    [background] = kept.select(["a", "b", "c"]).rename_columns(["A", "B", "C"]).to_batches()
    _, one = explained(found, rows_of(tmp_path / "rows", row), tmp_path, background=background)

    def score(x: Floats) -> Floats:
        scored: Floats = x[:, 0] * x[:, 1] + 3 * x[:, 2]
        return scored

    together = np.vstack([matrix(row), matrix(kept)])
    # Over its own comparison with itself, which is 0, the mean of the definition has one more row.
    expected = shapley(score, together)[0] * 41 / 40
    np.testing.assert_allclose(values(one)[0], expected, atol=1e-5)
    assert one["y_base"][0].as_py() == pytest.approx(score(matrix(kept)).mean(), rel=1e-5)
    assert one["y_base"][0].as_py() + values(one).sum() == pytest.approx(one["y"][0].as_py(), rel=1e-5)


def test_whole_numbers_are_compared_with_kept_ones_that_have_a_fraction(tmp_path: Path) -> None:
    row = pa.table({"id": [0], "a": [2], "b": [0.0], "c": [0.0]})
    kept = pa.record_batch({"a": [0.5, 1.5], "b": [0.0, 0.0], "c": [0.0, 0.0]})
    found = program(
        tmp_path / "program",
        "2 * a + 0 * b * c",
        output=Output(column="y"),
        explanation=Explanation("rows", 2),
    )
    _, result = explained(found, rows_of(tmp_path / "rows", row), tmp_path, background=kept)
    assert result["a_shap"].to_pylist() == pytest.approx([2.0])


def explainer(folder: Path, rows: pa.Table) -> tuple[Explainer, pa.RecordBatch]:
    """One that compares the rows with each other."""
    found = program(folder / "program", NUMBER)
    [batch] = rows.select(list(COLUMNS)).combine_chunks().to_batches()
    blocks = Blocks(found, BatchReader(batch))
    adapter = trained_adapter(found, blocks.read(0, 2, "predict"), "predict", {"one": np.ones(1, np.float32)})
    walks = draw(found.spec, blocks, batch, batch.num_rows)
    return Explainer(found, adapter, 9, blocks, walks, threading.Event()), batch


def test_sizes_count_all_walks_or_the_walks_that_begin_in_time(tmp_path: Path) -> None:
    rows = table(16)
    made, batch = explainer(tmp_path, rows)
    each = shapley(lambda x: x[:, 0] * x[:, 1] + 3 * x[:, 2], matrix(rows))
    np.testing.assert_allclose(made.mean_sizes(batch, math.inf), np.abs(each).mean(axis=0), atol=1e-5)
    one = np.abs(next(made._walk(batch, *_scored(made, batch)))).mean(axis=0)
    np.testing.assert_allclose(made.mean_sizes(batch, 0.0), one, atol=1e-6)


def _scored(made: Explainer, batch: pa.RecordBatch) -> tuple[Floats, npt.NDArray[np.intp]]:
    scores = made._scores_of(made._block(batch))
    return scores[:, 0], made._explained_scores(scores)


class SetAfter(threading.Event):
    """Event that is set once it has been asked for so many times."""

    def __init__(self, times: int) -> None:
        super().__init__()
        self.times = times

    def is_set(self) -> bool:
        self.times -= 1
        return self.times < 0


def test_an_explanation_that_is_cancelled_ends_in_the_midst_of_its_rows(tmp_path: Path) -> None:
    found = program(
        tmp_path / "program", NUMBER, explanation=Explanation("rows", 100), output=Output(column="y")
    )
    cancelled = SetAfter(10)
    with pytest.raises(JobCancelledError):
        explained(found, rows_of(tmp_path / "rows", table(3)), tmp_path, cancelled)
    assert cancelled.times == -1


def test_one_column_is_worth_all_that_it_changes(tmp_path: Path) -> None:
    spec = {"output": Output(column="y"), "explanation": Explanation("rows", 20)}
    rows = table(20)
    found = program(tmp_path / "program", "2 * a", columns=("a",), **spec)
    _, result = explained(found, rows_of(tmp_path / "rows", rows), tmp_path)
    a = rows["a"].to_numpy()
    np.testing.assert_allclose(result["a_shap"].to_numpy(), 2 * (a - a.mean()), atol=1e-6)


def test_the_importance_of_a_column_is_the_mean_size_of_its_values(tmp_path: Path) -> None:
    rows, few = table(40), Explanation("rows", 3)
    each = values(of_rows(tmp_path / "rows", NUMBER, rows, explanation=few))
    found = program(tmp_path / "program", NUMBER, explanation=Explanation("model", 3), batch_size=9)
    assert plan(found.spec, Rows(True, 40, 0)).parts > 2
    outcome, result = explained(found, BatchReader(rows.combine_chunks().to_batches()[0]), tmp_path)
    expected = np.abs(each).mean(axis=0)
    assert outcome.figures == pytest.approx(dict(zip(COLUMNS, expected, strict=True)), rel=1e-5)
    assert (outcome.kind, outcome.rows, outcome.tasks) == ("explain", rows.num_rows, 1)
    assert result["feature"].to_pylist() == [COLUMNS[k] for k in np.argsort(-expected)]
    assert sum(result["share"].to_pylist()) == pytest.approx(1.0)


def test_no_rows_are_explained_by_an_empty_table_with_its_columns(tmp_path: Path) -> None:
    found = of_rows(tmp_path, NUMBER, table(0), explanation=Explanation("rows", 2))
    assert (found.num_rows, found.schema.names[-1]) == (0, "c_shap")


def test_a_model_is_not_explained_by_no_rows(tmp_path: Path) -> None:
    found = program(tmp_path / "program", NUMBER, explanation=Explanation())
    with pytest.raises(JobError, match="there are no rows to explain"):
        explained(found, rows_of(tmp_path / "rows", table(0)), tmp_path)


def test_names_that_are_taken_are_numbered(tmp_path: Path) -> None:
    rows = table(4).append_column("a_shap", pa.array([1, 2, 3, 4]))
    found = of_rows(tmp_path, NUMBER, rows, output=Output(column="y", keep=("a_shap",)))
    assert found.schema.names == ["a_shap", "y", "y_base", "a_shap_2", "b_shap", "c_shap"]


def test_importances_are_compared_with_more_rows_than_there_are_walks(tmp_path: Path) -> None:
    """A background row of its own for each row and walk: their mean is that over all background rows."""
    rows = pa.table({"a": [1.0] * 400, "b": [0.0] * 400, "c": [0.0] * 400})
    kept = pa.record_batch({"a": [None, *np.arange(39.0)], "b": [0.0] * 40, "c": [0.0] * 40})
    found = program(tmp_path / "program", "2 * a + 0 * b * c", explanation=Explanation("model", 2))
    reader = BatchReader(rows.combine_chunks().to_batches()[0])
    outcome, _ = explained(found, reader, tmp_path, background=kept)
    a = np.nan_to_num(kept["a"].to_numpy(zero_copy_only=False))
    assert outcome.figures["a"] > 0.8 * np.abs(2 * (1 - a)).mean()
    assert outcome.figures["b"] == outcome.figures["c"] == 0
