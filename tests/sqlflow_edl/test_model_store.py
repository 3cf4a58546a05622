"""Models in a store of their own: every statement finds them there, and the data source keeps none."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from sqlflow_edl.cli.main import main
from sqlflow_edl.session.session import Session
from tests.databases import fill, on_each

ROWS = pa.table({"a": [i * 0.5 for i in range(60)], "y": [i * 2.0 for i in range(60)]})
PROGRAM = """
SELECT * FROM t TO TRAIN LGBMRegressor WITH train.num_boost_round = 2 LABEL y INTO a.m;
SELECT * FROM t TO PREDICT guessed.y USING a.m;
SELECT * FROM t TO TRAIN LGBMRegressor WITH train.num_boost_round = 1 LABEL y USING a.m INTO a.m;
"""
SHOWN = """
SELECT count(*) AS n FROM guessed;
SHOW MODELS
"""


@pytest.mark.soak
@on_each("url", always=("mysql",))
def test_statements_keep_and_find_models_in_the_store_and_the_source_has_none(
    url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    store = tmp_path / "models"
    with Session(url) as session:
        fill(session, "t", ROWS)
        before = session.source.tables()
    run = ["run", "--source", url, "--format", "csv"]
    assert main([*run, "--model-store", str(store), "-e", PROGRAM]) == 0
    assert f"a.m@1 in file://{store}" in capsys.readouterr().err
    monkeypatch.setenv("SQLFLOW_MODEL_STORE", str(store))
    assert main([*run, "-e", SHOWN]) == 0
    n, rows, _, first, last = capsys.readouterr().out.splitlines()
    assert (n, rows) == ("n", "60")
    assert first.startswith("a.m,1,ready,false,,BoostedTreesRegressor,lightgbm,60,")
    assert last.startswith("a.m,2,ready,true,")
    assert main([*run, "--model-store", "", "-e", "DESCRIBE MODEL a.m"]) == 1
    assert "there is no model a.m" in capsys.readouterr().err
    with Session(url) as session:
        assert sorted(session.source.tables()) == sorted([*before, "guessed"])
    exported = tmp_path / "m.txt"
    assert main(["export", "--source", url, "a.m", "-o", str(exported)]) == 0
    assert exported.exists()


def test_a_store_that_cannot_be_opened_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--source", "duckdb:", "--model-store", "nowhere://models", "-e", "SELECT 1"]) == 1
    assert "the model store nowhere://models cannot be opened" in capsys.readouterr().err
