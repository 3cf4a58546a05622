"""Descriptions of ONNX files, as the process that reads them makes them."""

from __future__ import annotations

from pathlib import Path

import pytest
from onnx import helper

from edl.errors import JobError
from edl.extensions.imported.reading_onnx import describe
from tests.onnx_files import identity, make_file, softmax, with_external_data


def test_a_classifier_of_skl2onnx_tells_its_classes(repository: Path) -> None:
    for name in ("iris_zipmap", "iris_tensor"):
        description = describe((repository / f"tests/fixtures/imported/{name}.onnx").read_bytes())
        assert description.classes == ("setosa", "versicolor", "virginica")
        assert description.producer.startswith("skl2onnx")
        assert [(given.type, given.shape) for given in description.inputs] == [("tensor(float)", (None, 4))]


def test_the_widths_of_outputs_are_found_by_a_run() -> None:
    node = helper.make_node("Concat", ["x", "x"], ["y"], axis=1)
    description = describe(make_file([node], {"x": ("float", [None, 2])}, {"y": ("float", [None, None])}))
    assert description.outputs[0].shape == (None, 4)


def test_the_operator_of_an_output_is_told() -> None:
    assert describe(softmax(3)).outputs[0].operator == "Softmax"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "it has no graph"),
        (b"hello", "is damaged, or is none of ONNX"),
        (softmax(2)[:60], "is damaged, or is none of ONNX"),
        (softmax(2, "NoSuchOperator"), "NoSuchOperator"),
    ],
)
def test_a_damaged_file_is_refused(data: bytes, message: str) -> None:
    with pytest.raises(JobError, match=message):
        describe(data)


@pytest.mark.parametrize("location", ["w.bin", "../../secret.bin", "/etc/passwd"])
def test_external_data_is_refused_wherever_it_is(location: str) -> None:
    data = with_external_data(location)
    with pytest.raises(JobError, match=r"keeps the data of 1 tensors \(w, …\) in other files"):
        describe(data)


def test_operators_of_other_libraries_are_refused_by_name() -> None:
    node = helper.make_node("StringUpper", ["x"], ["y"], domain="ai.onnx.contrib")
    data = make_file(
        [node], {"x": ("string", [None])}, {"y": ("string", [None])}, domains=["ai.onnx.contrib"]
    )
    with pytest.raises(JobError, match=r"only another library has: ai\.onnx\.contrib\.StringUpper"):
        describe(data)


def test_an_output_without_rows_is_refused() -> None:
    node = helper.make_node("ReduceMean", ["x"], ["y"], keepdims=0)
    with pytest.raises(JobError, match="no output of the file has a value for each row: y"):
        describe(make_file([node], {"x": ("float", [None, 2])}, {"y": ("float", [7])}))


def test_texts_and_whole_numbers_are_tried_too() -> None:
    for kind in ("string", "int64", "bool"):
        assert describe(identity(kind)).outputs[0].shape == (None, 1)
