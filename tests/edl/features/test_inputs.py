"""The features of a model with several inputs."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from edl import features as fc
from edl.errors import SemanticError

CITY = fc.vocabulary("city", ["oslo", "rome"])
FEATURES = fc.Inputs(
    wide=fc.Features(fc.one_hot(CITY), fc.one_hot(fc.cross(["city", "team"], 10))),
    deep=fc.Features(fc.numeric("age"), fc.embedding(CITY, dim=3)),
)
BATCH = pa.record_batch({"age": [20.0, 30.0], "city": ["rome", None], "team": ["a", "b"], "unused": [1, 2]})


def test_the_arrays_of_all_inputs_are_one_dict_with_names_that_never_meet() -> None:
    arrays = FEATURES.transform(BATCH)
    assert list(arrays) == ["wide_f0", "wide_f1", "deep_dense", "deep_f1"]
    assert list(arrays) == [entry.name for entry in FEATURES.entries]
    assert arrays["deep_dense"].tolist() == [[20.0], [30.0]]
    assert arrays["wide_f0"].tolist() == [1, 2]


def test_inputs_over_one_category_share_its_ids() -> None:
    arrays = FEATURES.transform(BATCH)
    assert arrays["wide_f0"] is arrays["deep_f1"]


def test_an_input_alone_gives_its_own_arrays() -> None:
    arrays = FEATURES["deep"].transform(BATCH)
    assert list(arrays) == ["deep_dense", "deep_f1"]
    assert all(np.array_equal(array, FEATURES.transform(BATCH)[name]) for name, array in arrays.items())
    assert list(FEATURES) == ["wide", "deep"]
    assert FEATURES.source_columns == ("city", "team", "age")


def test_an_unknown_input_is_named_with_the_nearest() -> None:
    with pytest.raises(SemanticError, match="the model has no input deeep") as raised:
        FEATURES["deeep"]
    assert raised.value.hint == "did you mean deep?"
    with pytest.raises(SemanticError, match="at least one input"):
        fc.Inputs()
