"""The dictionary of attributes: types, ranges, aliases."""

from __future__ import annotations

import pytest

from edl.errors import SemanticError, SQLFlowError
from sqlflow_edl.analysis.settings.attribute_dictionary import AttributeRow, Dictionary, check, nearest_dotted
from sqlflow_edl.analysis.settings.attributes import TRAIN
from sqlflow_edl.analysis.settings.kubernetes import KUBERNETES
from sqlflow_edl.analysis.settings.values import Setting
from sqlflow_edl.syntax import parse
from sqlflow_edl.syntax.ast import Attribute as Written


def written(text: str) -> tuple[Written, ...]:
    return parse(f"SELECT 1 TO TRAIN m WITH {text} LABEL y INTO x")[0].attributes


@pytest.mark.parametrize(
    ("type_", "text", "value"),
    [
        ("integer", "3", 3),
        ("integer", "3.0", 3),
        ("integer", "-3", -3),
        ("number", "3", 3.0),
        ("number", ".5", 0.5),
        ("number", "1e-3", 0.001),
        ("boolean", "TRUE", True),
        ("boolean", "'false'", False),
        ("boolean", "1", True),
        ("text", "adam", "adam"),
        ("text", "'adam'", "adam"),
        ("integers", "[1, 2]", (1, 2)),
        ("integers", "7", (7,)),
        ("texts", "'a, b'", ("a", "b")),
        ("texts", "[a, 'b']", ("a", "b")),
        ("texts", "a", ("a",)),
        ("pairs", "{'a': 1, b: TRUE, c: 'x,y'}", ("a=1", "b=true", "c=x,y")),
        ("pairs", "'a=1, b='", ("a=1", "b=")),
        ("processors", ".5", "0.5"),
        ("processors", "'500m'", "500m"),
        ("processors or none", "None", "none"),
        ("memory", "'4Gi'", "4Gi"),
        ("taints", "['a', 'b=c:NoExecute', 'd:NoSchedule']", ("a", "b=c:NoExecute", "d:NoSchedule")),
    ],
)
def test_a_value_is_read_as_the_type_of_its_attribute(type_: str, text: str, value: Setting) -> None:
    row = AttributeRow("x", type_, "")  # type: ignore[arg-type]
    found = check(row, written(f"x = {text}")[0].value)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("type_", "text"),
    [
        ("integer", "3.5"),
        ("integer", "'3'"),
        ("integer", "TRUE"),
        ("integer", "[1]"),
        ("integer", "NULL"),
        ("number", "TRUE"),
        ("boolean", "2"),
        ("boolean", "'maybe'"),
        ("text", "3"),
        ("text", "''"),
        ("integers", "[1, 2.5]"),
        ("integers", "[]"),
        ("texts", "[1]"),
        ("texts", "''"),
        ("text", "f(x)"),
        ("pairs", "'a'"),
        ("pairs", "{'a': [1]}"),
        ("pairs", "{'a': NULL}"),
        ("processors", "0"),
        ("processors", "'a lot'"),
        ("processors", "none"),
        ("memory", "4"),
        ("memory", "'4GB'"),
        ("taints", "'a=b:Sometimes'"),
    ],
)
def test_a_value_of_another_type_is_refused(type_: str, text: str) -> None:
    with pytest.raises(SemanticError, match="x must be"):
        check(AttributeRow("x", type_, ""), written(f"x = {text}")[0].value)  # type: ignore[arg-type]


def test_names_are_read_without_case_and_by_their_aliases() -> None:
    errors: list[SQLFlowError] = []
    found = Dictionary(TRAIN).resolve(written("EPOCHS = 3, Train.Batch_Size = 8"), errors, [])
    assert not errors
    assert {name: each.value for name, each in found.items()} == {"train.epoch": 3, "train.batch_size": 8}


def test_parameters_of_a_model_are_read_by_the_prefix_of_an_estimator() -> None:
    rows = [AttributeRow("model.hidden_units", "integers", "")]
    errors: list[SQLFlowError] = []
    found = Dictionary(rows).resolve(written("Estimator.hidden_units = [8, 4]"), errors, [])
    assert not errors
    assert [*found] == ["model.hidden_units"]


def test_no_two_attributes_of_the_dictionary_share_a_name() -> None:
    names = [name.casefold() for row in (*TRAIN, *KUBERNETES) for name in (row.name, *row.aliases)]
    assert len(names) == len(set(names))


@pytest.mark.parametrize(
    ("key", "near"),
    [
        ("train.framework", "model.framework"),
        ("train.wall_clock", None),
        ("hiden_units", None),  # of a model, which is not among these
        ("optimizer.batchsize", "train.batch_size"),
        ("validation.metric", "validation.metrics"),
        ("trian.epoch", "train.epoch"),
        ("max_depth", None),
    ],
)
def test_the_nearest_attribute_is_found_by_its_last_segment(key: str, near: str | None) -> None:
    spellings = {spelling.casefold(): row.name for row in TRAIN for spelling in (row.name, *row.aliases)}
    assert nearest_dotted(key, spellings) == near
