"""The columns of a prediction."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pytest

from edl.errors import JobError
from edl.evaluation.prediction import results
from edl.program import load
from edl.spec import ClassLabel, Interval, Label, Output, RegressionLabel, Rows, SeveralLabels
from tests.edl.programs import simple

BATCH = pa.RecordBatch.from_pydict({"x": [1.0, 2.0], "id": [7, 8], "Class": ["p", "q"]})


def predicted(folder: Path, label: Label, scores: Any, **output: Any) -> pa.RecordBatch:
    program = load(simple(folder, "torch", rows=Rows(False, 2, 2), label=label))
    program = load(folder, msgspec.structs.replace(program.spec, kind="predict", output=Output(**output)))
    return results(program).batch(BATCH, np.array(scores))


def test_a_number_is_a_column_beside_the_kept_ones(tmp_path: Path) -> None:
    found = predicted(tmp_path, RegressionLabel("y"), [[1.5], [np.nan]], column="price", keep=("id", "x"))
    assert found.to_pydict() == {"id": [7, 8], "x": [1.0, 2.0], "price": [1.5, None]}


def test_a_class_comes_in_its_own_type_with_its_probability_and_all_of_them(tmp_path: Path) -> None:
    scores = [[0.2, 0.8], [0.9, 0.1]]
    found = predicted(tmp_path, ClassLabel("y", (10, 20)), scores, column="c", keep=("id",))
    assert found.to_pydict() == {
        "id": [7, 8], "c": [20, 10], "c_confidence": [0.8, 0.9], "c_prob_10": [0.2, 0.9], "c_prob_20": [0.8, 0.1]
    }  # fmt: skip
    assert found.schema.field("c").type == pa.int64()


def test_booleans_are_written_as_sql_does(tmp_path: Path) -> None:
    found = predicted(tmp_path, ClassLabel("y", (False, True)), [[0.2, 0.8], [0.9, 0.1]], column="c")
    assert found.schema.names == ["c", "c_confidence", "c_prob_false", "c_prob_true"]
    assert found.column("c").to_pylist() == [True, False]


def test_the_probability_of_one_of_two_classes_is_enough(tmp_path: Path) -> None:
    found = predicted(tmp_path, ClassLabel("y", ("no", "yes")), [[0.8], [0.1]], column="c")
    assert found.column("c").to_pylist() == ["yes", "no"]
    assert found.column("c_confidence").to_pylist() == [0.8, 0.9]


def test_of_many_classes_only_the_predicted_probability_is_given(tmp_path: Path) -> None:
    label = ClassLabel("y", tuple(range(21)))
    found = predicted(tmp_path, label, np.eye(21)[[3, 20]], column="c")
    assert found.to_pydict() == {"c": [3, 20], "c_confidence": [1.0, 1.0]}


def test_the_probabilities_of_many_classes_are_given_where_they_are_asked_for(tmp_path: Path) -> None:
    label = ClassLabel("y", tuple(range(21)))
    found = predicted(tmp_path, label, np.eye(21)[[3, 20]], column="c", probabilities=True)
    assert found.schema.names == ["c", "c_confidence", *(f"c_prob_{number}" for number in range(21))]
    assert found.column("c_prob_3").to_pylist() == [1.0, 0.0]


def test_the_probabilities_of_few_classes_can_be_left_out(tmp_path: Path) -> None:
    found = predicted(
        tmp_path, ClassLabel("y", (1, 2)), [[0.2, 0.8], [0.9, 0.1]], column="c", probabilities=False
    )
    assert found.to_pydict() == {"c": [2, 1], "c_confidence": [0.8, 0.9]}


def test_the_predicted_column_takes_the_place_of_a_kept_one_of_its_name(tmp_path: Path) -> None:
    found = predicted(tmp_path, RegressionLabel("y"), [[1.0], [2.0]], column="class", keep=("id", "Class"))
    assert found.schema.names == ["id", "class"]


def test_added_names_never_hide_a_kept_column(tmp_path: Path) -> None:
    taken = pa.RecordBatch.from_pydict({"C_CONFIDENCE": [1, 2]})
    program = load(simple(tmp_path, "torch", rows=Rows(False, 2, 2), label=ClassLabel("y", ("a", "A", "_a"))))
    output = Output(column="c", keep=("C_CONFIDENCE",))
    wanted = results(load(tmp_path, msgspec.structs.replace(program.spec, kind="predict", output=output)))
    found = wanted.batch(taken, np.eye(3)[:2])
    assert found.schema.names == [
        "C_CONFIDENCE",
        "c",
        "c_confidence_2",
        "c_prob_a",
        "c_prob_A_2",
        "c_prob__a",
    ]


def test_a_label_keeps_its_name_where_another_has_such_columns(tmp_path: Path) -> None:
    labels = SeveralLabels((ClassLabel("a", (False, True)), RegressionLabel("a_confidence")))
    program = load(simple(tmp_path, "torch", rows=Rows(False, 2, 2)))
    module = ModuleType("edited")
    spec = msgspec.structs.replace(program.spec, label=labels, output=Output(keep=("id",)))
    wanted = results(replace(program, spec=spec, module=module))
    found = wanted.batch(BATCH, np.array([[0.25, 0.75, 7.0], [0.75, 0.25, 8.0]]))
    assert found.schema.names == ["id", "a", "a_confidence_2", "a_prob_false", "a_prob_true", "a_confidence"]
    assert found.column("a_confidence").to_pylist() == [7.0, 8.0]


@pytest.mark.parametrize("scores", [[[0.5], [0.5]], [[0.1] * 4, [0.1] * 4], [0.5, 0.5]])
def test_scores_of_another_shape_are_refused(tmp_path: Path, scores: Any) -> None:
    with pytest.raises(JobError, match="the program's scores have the shape"):
        predicted(tmp_path, ClassLabel("y", ("a", "b", "c")), scores, column="c")


def test_no_rows_give_the_columns(tmp_path: Path) -> None:
    program = load(simple(tmp_path, "torch", rows=Rows(False, 2, 2), label=ClassLabel("y", ("a", "b"))))
    found = results(program).batch(BATCH.slice(0, 0), np.empty((0, 2)))
    assert found.num_rows == 0
    assert found.schema.field("y").type == pa.string()


def test_an_interval_is_two_columns_beside_the_number(tmp_path: Path) -> None:
    program = load(simple(tmp_path, "torch", rows=Rows(False, 2, 2), label=RegressionLabel("y")))
    job = msgspec.structs.replace(
        program.spec,
        kind="predict",
        output=Output(column="price", keep=("Price_Low",)),
        interval=Interval(0.9, 0.5),
    )
    rows = pa.RecordBatch.from_pydict({"Price_Low": [1, 2]})
    found = results(load(tmp_path, job)).batch(rows, np.array([[1.5], [np.nan]]))
    assert found.to_pydict() == {
        "Price_Low": [1, 2], "price": [1.5, None], "price_low_2": [1.0, None], "price_high": [2.0, None]
    }  # fmt: skip


def test_a_threshold_decides_on_the_second_class_and_leaves_the_probabilities(tmp_path: Path) -> None:
    program = load(simple(tmp_path, "torch", rows=Rows(False, 2, 2), label=ClassLabel("y", ("no", "yes"))))
    job = msgspec.structs.replace(program.spec, kind="predict", output=Output(column="c"), threshold=0.3)
    rows = pa.RecordBatch.from_pydict({"x": range(4)})
    scores = np.array([[0.7, 0.3], [0.71, 0.29], [0.1, 0.9], [np.nan, np.nan]])
    found = results(load(tmp_path, job)).batch(rows, scores)
    assert found.column("c").to_pylist() == ["yes", "no", "yes", None]
    assert found.column("c_confidence").to_pylist() == [0.3, 0.71, 0.9, None]
    assert found.column("c_prob_yes").to_pylist() == [0.3, 0.29, 0.9, None]
