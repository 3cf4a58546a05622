"""Drift from TRAIN, which keeps the statistics, to the report of PREDICT and the condition of `sqlflow retrain`."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from sqlflow_edl.cli import exit_codes
from sqlflow_edl.cli.main import main
from sqlflow_edl.reports.result import Result
from sqlflow_edl.session.session import Session
from tests.databases import Databases, fill
from tests.sql_cases import FIXTURES

REPORT = "WITH predict.report = drift USING m"


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("drift")
    url = f"duckdb:///{folder}/visits.duckdb"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(folder))
        with Session(url, create=True) as session:
            list(session.run((FIXTURES / "session" / "drift.sql").read_text("utf-8")))
        yield url


@pytest.fixture
def session(url: str) -> Iterator[Session]:
    with Session(url) as opened:
        yield opened


def verdicts(result: Result) -> dict[str, tuple[str, str]]:
    return {row["column"]: (row["verdict"], row["why"]) for row in result.to_arrow().to_pylist()}


def test_the_training_rows_themselves_have_not_drifted(session: Session) -> None:
    [result] = session.run(f"SELECT * FROM visits TO PREDICT {REPORT}")
    stable = dict.fromkeys(("spent", "items", "city"), ("stable", ""))
    assert verdicts(result) == stable | {"day": ("unknown", "a date or time")}
    assert result.message == "no column drifted from the training rows of m@1; there are no statistics of day"


@pytest.mark.soak
def test_a_report_beside_predictions_names_the_columns_that_changed(session: Session) -> None:
    [result] = session.run(f"SELECT * FROM changed TO PREDICT guesses.y {REPORT}")
    assert verdicts(result) == {
        "City": ("drifted", "distribution, unseen values"),
        "spent": ("drifted", "distribution, outside of the range"),
        "items": ("drifted", "NULLs"),
        "day": ("unknown", "a date or time"),
    }
    assert "wrote 1,000 rows to guesses with m@1; 3 of 4 columns drifted" in result.message
    assert result.rows == 1000
    [counted] = session.run("SELECT count(y) AS n FROM guesses")
    assert counted.to_arrow()["n"].to_pylist() == [1000]


@pytest.mark.soak
def test_a_model_is_trained_again_only_after_drift(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    retrain = ["retrain", "m", "--if-drift", "--dry-run", "--source", url]
    assert main(retrain) == exit_codes.NOT_NEEDED
    unknown = "; there are no statistics of day"
    told = capsys.readouterr().err
    assert f"no column drifted from the training rows of m@1{unknown}: not trained again" in told

    with Session(url) as session:
        list(session.run("UPDATE visits SET city = 'bonn' WHERE id < 300"))
    assert main([*retrain, "--drift-limit", "1000"]) == exit_codes.OK  # by unseen values
    told = capsys.readouterr().err
    assert (
        f"1 of 5 columns drifted from the training rows of m@1: city (unseen values){unknown}: training again"
        in told
    )


@pytest.mark.soak
@pytest.mark.parametrize("dialect", ["sqlite", "mysql", "postgres", "maxcompute"])
def test_every_database_reports_the_same_drift(
    dialect: str, databases: Databases, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    count = range(600)
    rows = pa.table(
        {
            "x": [float(i % 50) for i in count],
            "z": [Decimal(i % 7) / 2 if i % 10 else None for i in count],
            "c": ["abc"[i % 3] for i in count],
            "day": [date(2024, 1, 1) + timedelta(i % 30) for i in count],
            "y": [float(i % 50) for i in count],
        }
    )
    train = "SELECT x, z, c, day, y FROM points TO TRAIN BoostedTreesRegressor WITH train.num_boost_round = 1"
    with Session(databases.url(dialect), create=True) as session:
        fill(session, "points", rows)
        list(session.run(f"{train} LABEL y INTO m"))
        [same] = session.run(f"SELECT * FROM points TO PREDICT {REPORT}")
        [changed] = session.run(f"SELECT x * 2 AS x, z, 'q' AS c, day FROM points TO PREDICT {REPORT}")
    stable = dict.fromkeys(("x", "z", "c"), ("stable", ""))
    assert verdicts(same) == stable | {"day": ("unknown", "a date or time")}
    assert verdicts(changed) == {
        "c": ("drifted", "distribution, unseen values"),
        "x": ("drifted", "distribution, outside of the range"),
        "z": ("stable", ""),
        "day": ("unknown", "a date or time"),
    }
