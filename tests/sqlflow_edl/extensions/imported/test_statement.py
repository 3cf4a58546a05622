"""CREATE MODEL of a file, without its file."""

from __future__ import annotations

import pytest

from edl.errors import SQLFlowError
from sqlflow_edl.extensions.imported.options import read_options
from sqlflow_edl.syntax.parse import parse

FILE = "model_type = 'onnx', model_path = 'm.onnx'"


def test_the_options_of_an_import_are_read() -> None:
    [statement] = parse(
        "CREATE OR REPLACE MODEL team.m OPTIONS(MODEL_TYPE = 'ONNX', model_path = 'm.onnx', input_columns = ['a', 'b'],"
        " input_label_cols = ['y'], classes = ['no', 'yes'], output = 'p', output_kind = 'LOGITS', kms_key_name = 'k')"
    )
    options = read_options(statement)
    assert (statement.kind, str(statement.into[0])) == ("import_model", "team.m")
    assert (options.path, options.format, options.columns, options.label) == (
        "m.onnx",
        "onnx",
        ("a", "b"),
        "y",
    )
    assert (options.classes, options.output, options.kind) == (("no", "yes"), "p", "logits")


def test_one_value_stands_for_a_list() -> None:
    [statement] = parse(f"CREATE MODEL m OPTIONS({FILE}, input_columns = 'a', input_label_cols = 'y')")
    assert read_options(statement).columns == ("a",)


@pytest.mark.parametrize(
    ("options", "message", "hint"),
    [
        ("model_path = 'm.onnx'", "the options name no model_type", "'onnx', 'lightgbm' or 'xgboost'"),
        ("model_type = 'onnx'", "the options name no file", "model_path"),
        ("model_type = 'onx', model_path = 'm'", "files of the model_type onx are not imported", "onnx"),
        (
            "model_type = 'TENSORFLOW', model_path = 'm'",
            "TENSORFLOW are not imported",
            "a SavedModel is a program",
        ),
        (f"{FILE}, input_colums = ['a']", "unknown option input_colums", "did you mean input_columns?"),
        (f"{FILE}, input_columns = [1]", "input_columns is a list of texts", "['age', 'city']"),
        (f"{FILE}, rounds = 'x'", "rounds is a whole number", "rounds = 100"),
        (f"{FILE}, input_label_cols = ['a', 'b']", "input_label_cols is a list of one text", "['species']"),
        ("model_type = 'onnx', model_path = 3", "model_path is a text", "'m.onnx'"),
    ],
)
def test_a_wrong_option_is_an_error_with_its_remedy(options: str, message: str, hint: str) -> None:
    with pytest.raises(SQLFlowError) as raised:
        parse(f"CREATE MODEL m OPTIONS({options})")
    assert message in raised.value.message
    assert hint in str(raised.value.hint)
    assert raised.value.span is not None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("input_columns = ['a', 'A']", "input_columns names A twice"),
        (
            "input_columns = ['a', 'b'], input_label_cols = ['B']",
            "B is a column that the model reads, and its label",
        ),
        ("classes = ['a']", "classes names one class"),
        ("classes = ['a', 'a']", "classes names a class twice"),
        ("classes = ['a', 1]", "classes are all texts, all whole numbers"),
        ("output_kind = 'logit'", "there is no output_kind logit"),
    ],
)
def test_values_that_contradict_each_other_are_errors_at_their_place(options: str, message: str) -> None:
    [statement] = parse(text := f"CREATE MODEL m OPTIONS({FILE}, {options})")
    with pytest.raises(SQLFlowError, match=message) as raised:
        read_options(statement)
    assert raised.value.span is not None
    assert text[raised.value.span.start : raised.value.span.end] in options


def test_a_query_behind_the_options_is_an_error() -> None:
    with pytest.raises(SQLFlowError, match="learns from no query"):
        parse(f"CREATE MODEL m OPTIONS({FILE}) AS SELECT 1")


def test_columns_are_not_transformed() -> None:
    with pytest.raises(SQLFlowError, match="TRANSFORM is not available with the model of a file"):
        parse(f"CREATE MODEL m TRANSFORM(a) OPTIONS({FILE})")


def test_other_models_are_trained_as_before() -> None:
    [statement] = parse("CREATE MODEL m OPTIONS(model_type = 'LINEAR_REG') AS SELECT 1 AS label, 2 AS x")
    assert statement.kind == "train"
