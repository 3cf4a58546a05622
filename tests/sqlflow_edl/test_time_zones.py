"""A session's time zone: the same instants are shown, become features and are stored, whatever it is."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import sqlflow_edl
from sqlflow_edl.session.session import Session
from tests.databases import Databases

PROGRAMS = Path(__file__).parents[1] / "fixtures" / "time_zones"
INSTANT = dt.datetime(2024, 6, 1, 15, tzinfo=dt.UTC)
TRAIN = "SELECT * FROM z TO TRAIN BoostedTreesClassifier WITH train.num_boost_round = 5 LABEL y INTO m"
SECONDS = {
    "mysql": "UNIX_TIMESTAMP({0})",
    "postgres": "extract(epoch FROM {0})",
    "duckdb": "epoch({0})",
}


@pytest.fixture(params=SECONDS)
def session(
    request: pytest.FixtureRequest, databases: Databases, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Session]:
    """A session with a table of hours, a row of another table, and then another time zone."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    with sqlflow_edl.connect(databases.url(request.param), create=True) as opened:
        program = (PROGRAMS / f"{request.param}.sql").read_text(encoding="utf-8")
        *_, zone = [each for each in program.split(";\n") if each]
        for _ in opened.run(program.removesuffix(f"{zone};\n")):
            pass
        rows(opened, TRAIN)
        rows(opened, zone)
        yield opened


def rows(session: Session, text: str) -> list[dict[str, Any]]:
    [result] = session.run(text)
    return result.to_arrow().to_pylist()


def test_an_instant_is_shown_becomes_a_feature_and_is_stored_as_it_is_in_every_zone(session: Session) -> None:
    assert rows(session, "SELECT t FROM p") == [{"t": INSTANT}]
    [seen] = rows(session, "SHOW FEATURES FOR m (SELECT * FROM p)")
    assert seen["raw(t, hour)"] == INSTANT.hour
    assert seen["raw(t)"] == INSTANT.timestamp()
    rows(session, "SELECT * FROM p TO PREDICT scored.y USING m")
    dialect = session.source.dialect
    [stored] = rows(session, f"SELECT {SECONDS[dialect].format('t')} AS seconds, y FROM scored")
    assert float(stored["seconds"]) == INSTANT.timestamp()
    assert stored["y"] == 1
