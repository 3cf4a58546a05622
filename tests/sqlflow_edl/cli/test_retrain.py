"""`sqlflow retrain`: the stored statement again, and the condition on the rows of its query."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from edl.models.registry.records import ModelRecord
from edl.spec import OneHot, Vocabulary
from sqlflow_edl.cli import exit_codes
from sqlflow_edl.cli.main import main
from sqlflow_edl.session.session import Session
from tests.edl.models.conftest import SPEC, write

ROWS = 10  # that the model of `tests.edl.models.conftest` was trained on
STATEMENT = (
    "SELECT x, y FROM t TO TRAIN DNNRegressor WITH model.framework = torch, train.epoch = 1 LABEL y INTO m"
)


@pytest.fixture
def url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A source with 15 rows and a model `m` of 10 of them."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    url = f"duckdb:///{tmp_path}/t.duckdb"
    with Session(url, create=True) as session:
        list(session.run("CREATE TABLE t AS SELECT i AS x, 2.0 * i AS y FROM range(15) r(i)"))
        store(session, "m", STATEMENT, tmp_path)
    return url


def store(session: Session, name: str, statement: str, folder: Path) -> None:
    record = ModelRecord("DNNRegressor", "torch", ROWS, {}, statement)
    session.registry.save(name, write(folder / "m.zip", spec=SPEC), record)


def versions(url: str) -> list[int]:
    with Session(url) as session:
        return [found.version for found in session.registry.list("m")]


def test_a_model_is_trained_again_as_a_new_version(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["retrain", "m", "--if-rows", "5", "--source", url]) == exit_codes.OK
    told = capsys.readouterr().err
    assert "the query of m@1 has 15 rows, and had 10 when it was trained: training again" in told
    with Session(url) as session:
        assert session.registry.find("m").reference == "m@2"
        assert session.registry.find("m").record.statement == STATEMENT


@pytest.mark.soak
def test_the_figures_of_both_versions_on_the_same_rows_stand_side_by_side(
    url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    trains = "TO TRAIN BoostedTreesRegressor WITH train.num_boost_round = 3 LABEL y VALIDATE 0.2 INTO trees"
    with Session(url) as session:
        list(session.run(f"SELECT * FROM t {trains}"))
        [before] = session.run("SELECT * FROM t TO EVALUATE trees WITH validation.unseen_only = true")
    assert main(["retrain", "trees", "--source", url, "--json"]) == exit_codes.OK
    [told] = map(json.loads, capsys.readouterr().out.splitlines())
    assert "trees@2 is current: its rmse is " in told["message"]
    assert told["message"].endswith(" on the same 3 rows")
    assert told["compared_with"] == "trees@1"
    assert before.figures is not None
    for name, figure in told["figures_of_compared"].items():
        assert figure == pytest.approx(told["figures"][name]) == pytest.approx(before.figures[name])


@pytest.mark.soak
def test_a_model_without_validation_rows_is_trained_again_without_a_comparison(
    url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["retrain", "m", "--source", url]) == exit_codes.OK
    told = " ".join(capsys.readouterr().err.split())
    assert (
        "the new version is not compared with the current one: a comparison of versions needs validation rows"
        in told
    )
    assert versions(url) == [1, 2]


@pytest.mark.soak
def test_a_forecast_is_trained_again_without_a_comparison(
    url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    series = "SELECT DATE '2024-01-01' + i::INT AS day, 10 + i % 7 AS sold FROM range(80) r(i)"
    with Session(url) as session:
        list(
            session.run(
                f"{series} TO TRAIN Forecast WITH forecast.time = day, forecast.horizon = 7 LABEL sold INTO sales"
            )
        )
    assert main(["retrain", "sales", "--source", url]) == exit_codes.OK
    told = " ".join(capsys.readouterr().err.split())
    assert "not compared with the current one: versions are compared on the same rows" in told


def test_too_few_new_rows_train_nothing(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["retrain", "m", "--if-rows", "6", "--source", url]) == exit_codes.NOT_NEEDED
    assert "so that fewer than 6 are new: not trained again" in capsys.readouterr().err
    assert versions(url) == [1]


@pytest.mark.soak
def test_a_dry_run_shows_the_plan(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["retrain", "m", "--dry-run", "--source", url]) == exit_codes.OK
    shown = capsys.readouterr()
    assert "TRAIN DNNRegressor INTO m" in shown.err
    assert "adamw" in shown.out
    assert versions(url) == [1]


def test_the_attribute_of_a_better_version_is_added(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[str] = []
    monkeypatch.setattr(
        "sqlflow_edl.cli.models.retrain.run", lambda options: ran.extend(options.execute) or 0
    )
    added = {
        "WITH train.epoch = 1": "WITH train.activate = better, train.epoch = 1",
        "WITH train.activate = always": "WITH train.activate = always",
        "": "LABEL y INTO m\nWITH train.activate = better",
    }
    with Session(url) as session:
        for name, written in zip("abc", added, strict=True):
            text = f"SELECT x, y FROM t TO TRAIN DNNRegressor {written} LABEL y INTO {name}"
            store(session, name, text, tmp_path)
    for name, expected in zip("abc", added.values(), strict=True):
        assert main(["retrain", name, "--if-better", "--source", url]) == exit_codes.OK
        assert expected.replace("INTO m", f"INTO {name}") in ran.pop()


@pytest.mark.soak
def test_a_statement_of_another_language_cannot_take_the_attribute(
    url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "CREATE MODEL m OPTIONS(model_type='linear_reg', input_label_cols=['y']) AS SELECT x, y FROM t"
    with Session(url) as session:
        store(session, "m", text, tmp_path)
    assert main(["retrain", "m", "--if-better", "--source", url]) == exit_codes.FAILED
    assert "the stored statement cannot take train.activate" in capsys.readouterr().err


def test_an_unknown_model_is_named_with_the_nearest(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["retrain", "mm", "--source", url]) == exit_codes.FAILED
    told = capsys.readouterr().err
    assert "there is no model mm" in told
    assert "did you mean m?" in told


@pytest.mark.soak
def test_a_copy_under_another_name_is_trained_under_that_name(
    url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with Session(url) as session:
        store(session, "team.copied", STATEMENT, tmp_path)
    assert main(["retrain", "team.copied", "--dry-run", "--source", url]) == exit_codes.OK
    assert "TRAIN DNNRegressor INTO team.copied" in capsys.readouterr().err


def test_a_statement_that_trains_no_model_is_refused(
    url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with Session(url) as session:
        store(session, "copied", "SELECT 1", tmp_path)
    assert main(["retrain", "copied", "--source", url]) == exit_codes.FAILED
    assert "the stored statement of copied trains no model copied" in capsys.readouterr().err


def test_a_model_that_takes_unseen_values_as_null_says_that_the_new_one_does_not(
    url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    inputs = {"features": (OneHot(Vocabulary("city", ("oslo", "rome"))),)}
    with Session(url) as session:
        file = write(tmp_path / "old.zip", spec=msgspec.structs.replace(SPEC, inputs=inputs))
        session.registry.save("m", file, ModelRecord("DNNRegressor", "torch", ROWS, {}, STATEMENT))
    assert main(["retrain", "m", "--dry-run", "--source", url]) == exit_codes.OK
    told = capsys.readouterr().err
    assert "note: m@2 takes a value of city that its training did not have as NULL; the new version" in told
