"""Models as objects: shown, described and dropped."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pytest

from edl.errors import SemanticError, SQLFlowError
from sqlflow_edl.session.session import Session
from tests.databases import DIALECTS, Databases
from tests.edl.models.conftest import SPEC, write
from tests.sqlflow_edl.reports.conftest import FITTING, RECORD


def table(session: Session, text: str) -> pa.Table:
    [result] = session.run(text)
    return result.to_arrow()


def rows(session: Session, text: str) -> list[dict[str, Any]]:
    return list(table(session, text).to_pylist())


def test_every_version_is_shown_and_a_failed_one_with_its_reason(models: Session) -> None:
    found = rows(models, "SHOW MODELS")
    assert [(row["name"], row["version"], row["state"], row["current"]) for row in found] == [
        ("a.m", 1, "ready", True),
        ("a.m", 2, "failed", False),
        ("b", 1, "ready", True),
    ]
    assert [row["reason"] for row in found] == [None, "the loss became nan at step 3", None]
    assert found[0]["metrics"] == "rmse 0.25, r2 not defined"
    assert found[0]["size"] > 1000
    assert found[1]["size"] is None
    assert (found[0]["model"], found[0]["framework"], found[0]["rows"]) == ("DNNRegressor", "keras", 8)


@pytest.mark.soak
def test_a_pattern_chooses_among_the_names(models: Session) -> None:
    assert [row["name"] for row in rows(models, "SHOW MODELS LIKE 'b%'")] == ["b"]
    assert rows(models, "SHOW MODELS LIKE '%''; DROP TABLE x; --'") == []


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_source_without_models_shows_the_columns_and_gets_no_table(
    databases: Databases, dialect: str
) -> None:
    with Session(databases.url(dialect), create=True) as empty:
        assert table(empty, "SHOW MODELS").num_rows == 0
        assert table(empty, "SHOW MODELS").column_names[:2] == ["name", "version"]
        assert empty.source.tables() == []


def test_the_statement_of_a_model_is_shown_as_it_was_written(models: Session) -> None:
    assert rows(models, "SHOW TRAIN a.m") == [{"model": "a.m@1", "statement": SPEC.statement}]
    assert rows(models, "SHOW TRAIN a.m@2")[0]["model"] == "a.m@2"


def test_a_version_is_described_with_all_that_is_known(models: Session) -> None:
    found = [tuple(row.values()) for row in rows(models, "DESCRIBE MODEL a.m")]
    for wanted in [
        ("model", "version", "1, current"),
        ("model", "weights", "7 numbers"),
        ("label", "y", "a number, mean 0, std 1"),
        ("features", "x", "standardize, mean 1, std 2 (by type: a number, standardised)"),
        ("left out", "z", "it is NULL in every training row"),
        ("data", "x", "8 rows, 25.0 % NULL, -1 to 3, mean 1, std 2, most often é (5), b (1)"),
        ("data", "y", "8 rows, no NULL, more than 5 different"),
        ("training", "optimizer", "adam"),
        ("validation", "rmse", "0.25"),
        ("learning curve", "loss", "█▂▁ 0.9 to 0.4"),
        ("learning curve", "first", "epoch 1: loss 0.9, validation_loss 0.7, rmse 0.8"),
        ("learning curve", "lowest validation_loss", "epoch 2: loss 0.5, validation_loss 0.3, rmse 0.5"),
        ("learning curve", "last", "epoch 3: loss 0.4, validation_loss 0.4, rmse not defined"),
        ("lineage", "statement", SPEC.statement),
        ("lineage", "seed", "7"),
        ("lineage", "duration", "1.50 s"),
        ("lineage", "versions", "sqlflow-edl 0.1.0"),
    ]:
        assert wanted in found


def test_a_learning_curve_is_a_row_for_each_epoch(models: Session) -> None:
    [result] = models.run("SHOW CURVE a.m")
    table = result.to_arrow()
    assert table.column_names == ["epoch", "step", "seconds", "loss", "validation_loss", "rmse"]
    assert [str(field.type) for field in table.schema][:3] == ["int64", "int64", "double"]
    assert [tuple(row.values()) for row in table.to_pylist()] == [
        (1, 2, 0.1, 0.9, 0.7, 0.8),
        (2, 4, 0.2, 0.5, 0.3, 0.5),
        (3, 6, 0.3, 0.4, 0.4, None),
    ]


def test_a_version_that_failed_has_no_learning_curve(models: Session) -> None:
    with pytest.raises(SQLFlowError, match="the loss became nan at step 3"):
        list(models.run("SHOW CURVE a.m@2"))


def test_a_model_of_no_compiler_is_described_without_statistics(models: Session) -> None:
    sections = {row["section"] for row in rows(models, "DESCRIBE MODEL b")}
    assert "features" in sections
    assert not sections & {"data", "left out"}


@pytest.mark.parametrize("own_models", ["duckdb"], indirect=True)
def test_a_precision_that_is_not_float32_is_told(own_models: Session, tmp_path: Path) -> None:
    spec = msgspec.structs.replace(SPEC, precision="bfloat16")
    own_models.registry.save("c", write(tmp_path / "c.zip", spec=spec), RECORD)
    of_models = {name: rows(own_models, f"DESCRIBE MODEL {name}") for name in ("b", "c")}
    told = {
        name: [r["value"] for r in found if r["name"] == "precision"] for name, found in of_models.items()
    }
    assert told == {"b": [], "c": ["bfloat16"]}


@pytest.mark.soak
@pytest.mark.parametrize("own_models", ["duckdb"], indirect=True)
def test_a_feature_of_two_inputs_is_described_in_both(own_models: Session, tmp_path: Path) -> None:
    feature = SPEC.inputs["features"][0]
    spec = msgspec.structs.replace(SPEC, inputs={"linear": (feature,), "deep": (feature,)})
    own_models.registry.save("c", write(tmp_path / "c.zip", spec=spec, fitting=FITTING), RECORD)
    found = [row["value"] for row in rows(own_models, "DESCRIBE MODEL c") if row["section"] == "features"]
    assert [value.partition("(by type: a number, standardised; ")[2] for value in found] == [
        "in linear)",
        "in deep)",
    ]


def test_a_failed_version_is_described_with_its_reason(models: Session) -> None:
    found = {row["name"]: row["value"] for row in rows(models, "DESC MODEL a.m@2")}
    assert found["state"] == "failed: the loss became nan at step 3"
    assert found["statement"] == SPEC.statement


def test_a_version_is_dropped_and_the_rest_stays(own_models: Session) -> None:
    [result] = own_models.run("DROP MODEL `a.m@1`")
    assert result.message == "dropped a.m@1"
    assert [row["version"] for row in rows(own_models, "SHOW MODELS LIKE 'a%'")] == [2]


@pytest.mark.soak
def test_dropping_the_current_version_says_which_one_is_current_then(
    own_models: Session, tmp_path: Path
) -> None:
    archive = tmp_path / "again.zip"
    own_models.registry.load("a.m@1", archive)
    own_models.registry.save("a.m", archive, own_models.registry.find("a.m").record)
    [result] = own_models.run("DROP MODEL a.m@3")
    assert result.message == "dropped a.m@3; a.m@1 is current"


def test_a_model_is_dropped_with_all_its_versions(own_models: Session) -> None:
    [result] = own_models.run("DROP MODEL a.m")
    assert result.message == "dropped a.m, 2 versions"
    assert [row["name"] for row in rows(own_models, "SHOW MODELS")] == ["b"]


def test_a_model_that_is_not_there_is_an_error_unless_the_statement_says_so(models: Session) -> None:
    [result] = models.run("DROP MODEL IF EXISTS b@7")
    assert "nothing is dropped" in result.message
    with pytest.raises(SemanticError, match="model b has no version 7"):
        list(models.run("DROP MODEL b@7"))


@pytest.mark.parametrize(
    "text",
    [
        "SHOW TRAIN a.n",
        "SHOW CURVE a.n",
        "DESCRIBE MODEL a.n",
        "DROP MODEL a.n",
        "SELECT 1 TO PREDICT USING a.n",
    ],
)
def test_a_misspelt_model_is_pointed_at_with_the_nearest_name(models: Session, text: str) -> None:
    with pytest.raises(SemanticError) as raised:
        list(models.run(text))
    assert raised.value.hint == "did you mean a.m?"
    span = raised.value.span
    assert span is not None
    assert text[span.start : span.end] == "a.n"


def test_another_version_becomes_current(own_models: Session, tmp_path: Path) -> None:
    own_models.registry.save("b", write(tmp_path / "second.zip"), RECORD)
    assert rows(own_models, "SHOW TRAIN b")[0]["model"] == "b@2"
    [plan] = [own_models.plan(each) for each in own_models.parse("SET MODEL b ACTIVE 1")]
    assert plan.to_arrow().to_pylist() == [
        {"section": "statement", "name": "SET MODEL b ACTIVE 1", "value": "b@1 would be current", "why": ""}
    ]
    for expected in ("b@1 is current, b@2 no longer", "b@1 is current already"):
        [done] = own_models.run("set model b active 1")
        assert done.message == expected
    assert rows(own_models, "SHOW TRAIN b")[0]["model"] == "b@1"
    assert [row["current"] for row in rows(own_models, "SHOW MODELS LIKE 'b'")] == [True, False]


def test_a_tag_is_set_moved_and_dropped(own_models: Session, tmp_path: Path) -> None:
    own_models.registry.save("b", write(tmp_path / "second.zip"), RECORD)
    for text, expected in (
        ("SET MODEL b TAG best 1", "b@best is b@1"),
        ("SET MODEL b TAG best 1", "b@best is b@1"),
        ("SET MODEL b TAG best 2", "b@best is b@2, no longer b@1"),
        ("SET MODEL b TAG safe best", "b@safe is b@2"),
        ("SET MODEL b ACTIVE safe", "b@2 is current already"),
        ("DROP MODEL b TAG safe", "dropped the tag safe of b@2, which stays"),
    ):
        [done] = own_models.run(text)
        assert done.message == expected
    assert [row["tags"] for row in rows(own_models, "SHOW MODELS LIKE 'b'")] == [None, "best"]
    assert {"section": "model", "name": "tags", "value": "best"} in rows(own_models, "DESCRIBE MODEL b@best")
    plans = [own_models.plan(each) for each in own_models.parse("SET MODEL b TAG x 1; DROP MODEL b TAG best")]
    assert [tuple(plan.to_arrow().to_pylist()[0].values())[1:3] for plan in plans] == [
        ("SET MODEL b TAG x 1", "b@x would be b@1"),
        ("DROP MODEL b TAG best", "b@2 would lose the tag best"),
    ]
    [dropped] = own_models.run("DROP MODEL b@best")
    assert dropped.message == "dropped b@2; b@1 is current"
    with pytest.raises(SemanticError, match="model b has no tag best") as raised:
        list(own_models.run("DROP MODEL b TAG best"))
    assert raised.value.span is not None


def test_a_version_that_does_not_exist_cannot_become_current(own_models: Session) -> None:
    text = "SET MODEL b ACTIVE 7"
    with pytest.raises(SemanticError, match="model b has no version 7") as raised:
        list(own_models.run(text))
    assert raised.value.span is not None
    assert text[raised.value.span.start : raised.value.span.end] == "b ACTIVE 7"
