"""What an ONNX file says of itself, before a library loads it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper

from edl.extensions.imported.onnx_file import read_onnx
from tests.onnx_files import identity, make_file, softmax


def test_the_producer_and_the_metadata_are_read() -> None:
    file = read_onnx(identity(metadata={"feature_names": '["a"]'}))
    assert file.producer == "test"
    assert file.metadata == {"feature_names": '["a"]'}
    assert not file.external


def test_the_operator_behind_an_output_is_the_one_that_computes_it() -> None:
    nodes = [helper.make_node("Softmax", ["x"], ["p"]), helper.make_node("Identity", ["p"], ["y"])]
    file = read_onnx(make_file(nodes, {"x": ("float", [None, 2])}, {"y": ("float", [None, 2])}))
    assert file.operator_behind("y") == "Softmax"
    assert read_onnx(softmax(2)).operator_behind("elsewhere") == ""


def test_the_classes_of_skl2onnx_are_read(repository: Path) -> None:
    data = (repository / "tests/fixtures/imported/iris_tensor.onnx").read_bytes()
    assert read_onnx(data).classes == ("setosa", "versicolor", "virginica")


@pytest.mark.parametrize("labels", [[-1, 1], [0, 300, 70_000]])
def test_classes_may_be_any_whole_numbers(labels: list[int]) -> None:
    node = helper.make_node(
        "LinearClassifier",
        ["x"],
        ["label", "scores"],
        domain="ai.onnx.ml",
        classlabels_ints=labels,
        coefficients=[1.0] * len(labels),
    )
    file = make_file(
        [node],
        {"x": ("float", [None, 1])},
        {"label": ("int64", [None]), "scores": ("float", [None, len(labels)])},
    )
    assert read_onnx(file).classes == tuple(labels)


@pytest.mark.parametrize(
    "labels", [np.array([1, 2, 3]), np.array([4, 5], dtype=np.int32), np.array(["a", "b"], object)]
)
def test_classes_may_be_a_constant_of_which_one_is_taken(labels: np.ndarray) -> None:
    """As of nearest neighbours, bagging and one-vs-rest of skl2onnx, which have other classifiers inside."""
    nodes = [
        helper.make_node(
            "LinearClassifier",
            ["x"],
            ["inner", "p"],
            domain="ai.onnx.ml",
            classlabels_ints=[0, 1],
            coefficients=[1.0, 2.0],
        ),
        helper.make_node("ArgMax", ["p"], ["place"], axis=1),
        helper.make_node("ArrayFeatureExtractor", ["classes", "place"], ["picked"], domain="ai.onnx.ml"),
        helper.make_node("Reshape", ["picked", "flat"], ["label"]),
    ]
    kind = "string" if labels.dtype == object else "int64"
    outputs = {"label": (kind, [None]), "p": ("float", [None, 2])}
    file = make_file(
        nodes, {"x": ("float", [None, 1])}, outputs, constants={"classes": labels, "flat": np.array([-1])}
    )
    assert read_onnx(file).outputs == ["label", "p"]
    assert read_onnx(without(file, "p")).classes == tuple(labels.tolist())


def without(file: bytes, output: str) -> bytes:
    """Return the file without an output."""
    model = onnx.load_from_string(file)
    [place] = [place for place, value in enumerate(model.graph.output) if value.name == output]
    del model.graph.output[place]
    return bytes(model.SerializeToString())


def test_external_data_is_found_also_in_a_constant_of_an_inner_graph(tmp_path: Path) -> None:
    tensor = onnx.numpy_helper.from_array(np.zeros(3, dtype=np.float32), "secret")
    onnx.external_data_helper.set_external_data(tensor, location="../../etc/passwd")
    tensor.ClearField("raw_data")
    inner = helper.make_graph(
        [helper.make_node("Constant", [], ["z"], value=tensor)],
        "inner",
        [],
        [helper.make_tensor_value_info("z", onnx.TensorProto.FLOAT, [3])],
    )
    node = helper.make_node("If", ["x"], ["y"], then_branch=inner, else_branch=inner)
    file = make_file([node], {"x": ("bool", [])}, {"y": ("float", [3])})
    assert read_onnx(file).external == ["secret", "secret"]


def test_operators_of_other_libraries_are_named() -> None:
    node = helper.make_node("BertTokenizer", ["x"], ["y"], domain="ai.onnx.contrib")
    file = make_file([node], {"x": ("string", [None])}, {"y": ("int64", [None])}, domains=["ai.onnx.contrib"])
    assert read_onnx(file).foreign_operators == ["ai.onnx.contrib.BertTokenizer"]


def test_no_beginning_of_a_file_is_a_file(repository: Path) -> None:
    data = (repository / "tests/fixtures/imported/iris_zipmap.onnx").read_bytes()
    for size in range(0, len(data) - 1, 7):
        try:
            read_onnx(data[:size])
        except ValueError:
            continue
        assert size > len(data) - 40  # behind the graph, where the versions of operators are


def test_graphs_too_deep_in_each_other_are_an_error() -> None:
    graph = helper.make_graph([], "g", [], [])
    for _ in range(20):
        graph = helper.make_graph([helper.make_node("If", ["x"], ["y"], then_branch=graph)], "g", [], [])
    with pytest.raises(ValueError, match="too deep"):
        read_onnx(helper.make_model(graph).SerializeToString())
