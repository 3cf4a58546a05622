"""Columns of a query beside the columns of the training."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sqlflow_edl.reports.result import Result
from sqlflow_edl.session.session import Session
from tests.sql_cases import FIXTURES

PROGRAM = (FIXTURES / "reported" / "time_zones.sql").read_text("utf-8")
SAID = (
    "t has a time zone here and had none in training: with a zone it counts in UTC, without one as it is written, so "
    "hours and days may differ; select t AT TIME ZONE 'UTC' AS t, for UTC the zone in which the rows of the "
    "training are written"
)


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        with Session("duckdb:") as opened:
            list(opened.run(PROGRAM))
            yield opened


def run(session: Session, text: str) -> Result:
    [result] = session.run(text)
    return result


@pytest.mark.parametrize("use", ["TO EVALUATE hours", "TO PREDICT USING hours", "TO EXPLAIN hours"])
def test_a_time_with_a_zone_in_place_of_one_without_is_said(session: Session, use: str) -> None:
    assert SAID in run(session, f"SELECT t::TIMESTAMPTZ AS T, y FROM visits {use}").notes
    assert not any("zone" in note for note in run(session, f"SELECT t, y FROM visits {use}").notes)


def test_a_date_in_place_of_a_timestamp_is_said(session: Session) -> None:
    result = run(session, "SELECT t::DATE AS T FROM visits TO PREDICT USING hours")
    assert "t is a date here and was a timestamp in training: each row counts as midnight" in result.notes
    assert not any(
        "midnight" in note for note in run(session, "SELECT t FROM visits TO PREDICT USING hours").notes
    )


def test_features_of_a_time_with_a_zone_say_so(session: Session) -> None:
    assert SAID in run(session, "SHOW FEATURES FOR hours (SELECT t::TIMESTAMPTZ AS t FROM visits)").notes


def test_the_advice_on_zones_gives_the_figures_of_the_training(session: Session) -> None:
    zoned = run(session, "SELECT t::TIMESTAMPTZ AS t, y FROM visits TO EVALUATE hours")
    assert zoned.to_arrow()["accuracy"][0].as_py() < 0.7
    assert [
        each
        for each in zoned.notes
        if "hours@1 is not known: the query lacks columns of its training" in each
    ]
    advised = SAID.partition("select ")[2].partition(",")[0].replace("'UTC'", "'America/New_York'")
    rows = "(SELECT t::TIMESTAMPTZ AS t, y FROM visits)"
    followed = run(session, f"SELECT {advised}, y FROM {rows} TO EVALUATE hours")
    assert followed.to_arrow()["accuracy"][0].as_py() == 1
    assert not [each for each in followed.notes if "time zone" in each]


def test_a_training_that_goes_on_over_other_times_says_so(session: Session) -> None:
    [compiled] = session.compile(
        "SELECT t::TIMESTAMPTZ AS t, y FROM visits TO TRAIN BoostedTreesClassifier LABEL y USING hours INTO later"
    )
    assert SAID in compiled.notes
