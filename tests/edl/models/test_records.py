"""How a statement refers to a model."""

from __future__ import annotations

import pytest

from edl.errors import SemanticError
from edl.models.registry.records import MAX_NAME, Selector, check_name, split_reference


@pytest.mark.parametrize(
    ("reference", "parts"),
    [
        ("m", ("m", None)),
        ("a.b@3", ("a.b", 3)),
        ("host/user/image:v0.2/My@Model", ("host/user/image:v0.2/My", "Model")),
        ("user@host/model", ("user@host/model", None)),
        ("m@1@2", ("m@1", 2)),
        ("@3", ("@3", None)),
        ("m@", ("m@", None)),
        ("m@x", ("m", "x")),
        ("m@größe_2", ("m", "größe_2")),
        ("m@2nd", ("m@2nd", None)),
        ("m@a-b", ("m@a-b", None)),
        ("m@-1", ("m@-1", None)),
        ("m@" + "9" * 30, ("m@" + "9" * 30, None)),
    ],
)
def test_a_reference_is_a_name_with_or_without_a_version_or_a_tag(
    reference: str, parts: tuple[str, Selector]
) -> None:
    assert split_reference(reference) == parts


@pytest.mark.parametrize(
    "name", ["m", "sqlflow_models.my_dnn", "größe.表", "x; drop table t", "n" * MAX_NAME, "a b"]
)
def test_a_name_may_have_any_printable_characters(name: str) -> None:
    check_name(name)


@pytest.mark.parametrize("name", ["", " ", "a\nb", "a\0b", "n" * (MAX_NAME + 1), "m@1", "m@x"])
def test_a_name_that_cannot_be_told_from_something_else_is_refused(name: str) -> None:
    with pytest.raises(SemanticError):
        check_name(name)
