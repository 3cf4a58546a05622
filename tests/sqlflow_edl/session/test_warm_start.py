"""TRAIN … USING: going on from the weights of a model, in both frameworks and on each database."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from edl import spec
from edl.errors import ErrorList, SQLFlowError
from tests.databases import fill, spelt, tables
from tests.workshops import Workshop

OLD = "SELECT age, city, member, team FROM people WHERE age < 50 AND city <> 'oslo'"
NEW = "SELECT city AS City, 1 AS more, member, age, team AS side FROM people WHERE age >= 50"
SHARED = "embedding([hash(city, 9), hash(member, 9)], 2)"


@pytest.fixture(scope="session")
def workshop(workshop: Workshop) -> Workshop:
    """With a model to go on from."""
    fill(workshop.session, "people", tables()["people"])
    workshop.run(
        f"{OLD} TO TRAIN DNNClassifier WITH epochs = 2, hidden_units = [8], model.framework = {workshop.framework} "
        f"COLUMN age, hash(city, 20), vocabularize(city), {SHARED} VALIDATE 0 LABEL team INTO teams"
    )
    return workshop


@pytest.mark.soak
def test_a_step_of_no_size_leaves_the_weights_of_the_model(workshop: Workshop, tmp_path: Path) -> None:
    [result] = workshop.run(f"{NEW} TO TRAIN DNN WITH epochs = 1, lr = 0 LABEL side USING teams@1 INTO still")
    parent, child = workshop.archive("teams@1", tmp_path), workshop.archive("still", tmp_path)
    weights, same = parent.weights(), child.weights()
    assert weights.keys() == same.keys()
    assert all(np.array_equal(weights[name], same[name]) for name in weights)
    assert child.lineage.parent == "teams@1"
    assert child.spec.label == spec.ClassLabel("side", ("blue", "green", "red"))
    assert [type(each) for each in child.spec.features] == [type(each) for each in parent.spec.features]
    assert list(spec.source_columns(child.spec.features[1])) == [spelt("City", workshop.session)]
    assert result.notes[0] == "features, vocabularies and statistics are those of teams@1"


def test_training_goes_on_and_makes_a_version_of_its_own(workshop: Workshop, tmp_path: Path) -> None:
    [result] = workshop.run(
        f"{NEW} TO TRAIN DNNClassifier WITH epochs = 3, model.dropout = 0.1 LABEL side USING teams@1 INTO teams",
    )
    assert result.model == "teams@2"
    child = workshop.archive("teams@2", tmp_path)
    assert child.spec.framework == workshop.archive("teams@1", tmp_path).spec.framework
    assert child.spec.model.params["hidden_units"] == (8,)
    assert child.spec.model.params["dropout"] == 0.1
    assert len(child.curve) == 3
    [measured] = workshop.run("SELECT * FROM people TO EVALUATE teams@2 LABEL team")
    assert measured.figures is not None
    [described] = workshop.run("DESCRIBE MODEL teams@2")
    assert "teams@1" in described.to_arrow()["value"].to_pylist()


def test_rows_far_from_the_models_rows_are_noted(workshop: Workshop) -> None:
    [compiled] = workshop.session.compile(f"{NEW} TO TRAIN DNNClassifier LABEL side USING teams@1 INTO m")
    assert compiled.notes[1:] == (
        "age is 59.5 on average, and was 34.67 for teams@1",
        f"{spelt('City', workshop.session)} holds values that teams@1 does not know in 25% of the rows",
    )


def test_written_columns_are_the_models(workshop: Workshop) -> None:
    [compiled] = workshop.session.compile(
        f"{OLD} TO TRAIN DNNClassifier COLUMN hash(city, 20), {SHARED} LABEL team USING teams@1 INTO m"
    )
    assert len(compiled.spec.features) == len(compiled.spec.inputs["features"]) == 5


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("LinearClassifier LABEL team", "teams@1 is a DNNClassifier, not a LinearClassifier", "TRAIN DNNClassifier"),
        ("DNNRegressor LABEL age", "teams@1 is a DNNClassifier, not a DNNRegressor", "TRAIN DNNClassifier"),
        ("DNN WITH hidden_units = 9 LABEL team", r"hidden_units is \[8\] in teams@1", "leave model.hidden_units out"),
        ("DNN COLUMN hash(city, 21) LABEL team", r"no feature hash_bucket\(city, 21\)", "hash_bucket(city, 20)"),
        ("DNN COLUMN embedding(hash(city, 20), 3) LABEL team", "teams@1 has no feature embedding", "standardize(age)"),
        ("DNN COLUMN embedding(hash(city, 9), 2) LABEL team", "teams@1 has no feature embedding", "leave COLUMN out"),
        ("DNN LABEL city", "city has classes that teams@1 does not know: 'bonn'", "known: blue"),
    ],
)  # fmt: skip
def test_what_would_change_the_meaning_of_a_weight_is_named(
    workshop: Workshop, text: str, message: str, hint: str
) -> None:
    with pytest.raises(SQLFlowError, match=message) as raised:
        workshop.session.compile(f"SELECT * FROM people TO TRAIN {text} USING teams@1 INTO m")
    assert not isinstance(raised.value, ErrorList)
    assert hint in (raised.value.hint or "")
    assert raised.value.span is not None


@pytest.mark.parametrize(("name", "hint"), [("temas", "did you mean teams?"), ("teams@7", "")])
def test_a_model_that_is_not_there_is_named(workshop: Workshop, name: str, hint: str) -> None:
    text = f"{OLD} TO TRAIN DNN LABEL team USING {name} INTO m"
    with pytest.raises(SQLFlowError) as raised:
        workshop.session.compile(text)
    assert hint in (raised.value.hint or "")
    span = raised.value.span
    assert span is not None
    assert text[span.start : span.end] == name


def test_another_framework_has_other_weights(workshop: Workshop, tmp_path: Path) -> None:
    own = workshop.archive("teams@1", tmp_path).spec.framework
    other = {"keras": "torch", "torch": "keras"}[own]
    with pytest.raises(SQLFlowError, match=f"model.framework is {own} in teams@1"):
        workshop.session.compile(
            f"{OLD} TO TRAIN DNN WITH model.framework = {other} LABEL team USING teams@1 INTO m"
        )


def test_a_query_without_a_column_of_the_model_says_so(workshop: Workshop) -> None:
    with pytest.raises(SQLFlowError, match="the query lacks the column age that the model reads"):
        workshop.session.compile(
            "SELECT city, member, team FROM people TO TRAIN DNN LABEL team USING teams@1 INTO m"
        )
