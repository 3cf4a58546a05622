"""Models in a store of their own: every statement finds them there, and the data source keeps none."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlflow_edl.cli.main import main

PROGRAM = """
CREATE TABLE t AS SELECT i * 0.5::DOUBLE AS a, i * 2.0::DOUBLE AS y FROM range(60) AS n(i);
SELECT * FROM t TO TRAIN DNNRegressor WITH hidden_units = [4], epochs = 2, model.framework = torch LABEL y INTO a.m;
SELECT * FROM t TO PREDICT guessed.y USING a.m;
SELECT * FROM t TO TRAIN DNNRegressor WITH epochs = 1 LABEL y USING a.m INTO a.m;
"""
SHOWN = """
SELECT count(*) AS n FROM guessed;
SHOW MODELS;
SELECT count(*) AS tables FROM duckdb_tables() WHERE table_name LIKE 'sqlflow_edl_models%'
"""


def test_statements_keep_and_find_models_in_the_store_and_the_source_has_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    source, store = f"duckdb:{tmp_path / 'db.duckdb'}", tmp_path / "models"
    run = ["run", "--source", source, "--format", "csv"]
    assert main([*run, "--create", "--model-store", str(store), "-e", PROGRAM]) == 0
    assert f"a.m@1 in file://{store}" in capsys.readouterr().err
    monkeypatch.setenv("SQLFLOW_MODEL_STORE", str(store))
    assert main([*run, "-e", SHOWN]) == 0
    n, rows, _, first, last, tables, none = capsys.readouterr().out.splitlines()
    assert (n, rows, tables, none) == ("n", "60", "tables", "0")
    assert first.startswith("a.m,1,ready,false,DNNRegressor,torch,60,")
    assert last.startswith("a.m,2,ready,true,")
    assert main([*run, "--model-store", "", "-e", "DESCRIBE MODEL a.m"]) == 1
    assert "there is no model a.m" in capsys.readouterr().err
    exported = tmp_path / "m.pt2"
    assert main(["export", "--source", source, "a.m", "-o", str(exported)]) == 0
    assert exported.exists()


def test_a_store_that_cannot_be_opened_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--source", "duckdb:", "--model-store", "nowhere://models", "-e", "SELECT 1"]) == 1
    assert "the model store nowhere://models cannot be opened" in capsys.readouterr().err
