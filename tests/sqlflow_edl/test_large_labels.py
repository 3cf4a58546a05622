"""Labels of large numbers, such as seconds since 1970, of which float32 holds only every 128th."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest

from edl.errors import SQLFlowError
from sqlflow_edl.session.session import Session
from tests.databases import fill

START = 1_700_000_000
STOPS = [number % 7 for number in range(700)]
ZONES = [number % 5 for number in range(700)]
ARRIVED = [START + 10 * stop + zone for stop, zone in zip(STOPS, ZONES, strict=True)]
EVENTS = pa.table(
    {
        "stops": STOPS,
        "zone": ZONES,
        "arrived": ARRIVED,
        "at": pa.array([second * 1_000_000 for second in ARRIVED], pa.timestamp("us")),
    }
)
ROWS = "SELECT stops, zone, arrived FROM events"


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    folder = tmp_path_factory.mktemp("large")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(folder))
        with Session(f"duckdb:///{folder}/large.duckdb", create=True) as opened:
            fill(opened, "events", EVENTS)
            yield opened


def last(session: Session, text: str) -> pa.Table:
    return list(session.run(text))[-1].to_arrow()


def measured(session: Session, model: str, rows: str = ROWS) -> tuple[float, float]:
    """Return the error that EVALUATE reports, and the error of the predictions in SQL."""
    [figures] = last(session, f"{rows} TO EVALUATE {model}").to_pylist()
    [found] = last(
        session,
        f"SELECT sqrt(avg((p.arrived - (10 * p.stops + p.zone + {START})) ^ 2)) AS error "
        f"FROM PREDICT({model}, (SELECT stops, zone FROM events)) AS p",
    ).to_pylist()
    return figures["rmse"], found["error"]


@pytest.mark.parametrize(
    "model",
    [
        "BoostedTreesRegressor WITH train.num_boost_round = 60, learning_rate = 0.3",
        pytest.param(
            "BoostedTreesRegressor WITH train.num_boost_round = 60, loss = huber", marks=pytest.mark.soak
        ),
        pytest.param("xgboost.gbtree WITH train.num_boost_round = 60", marks=pytest.mark.soak),
        pytest.param("DNNRegressor WITH model.framework = torch, epochs = 40", marks=pytest.mark.soak),
        pytest.param("DNNRegressor WITH model.framework = keras, epochs = 40", marks=pytest.mark.soak),
    ],
)
def test_the_seconds_of_a_minute_are_learned_and_the_error_equals_the_predictions_error(
    session: Session, model: str
) -> None:
    last(session, f"{ROWS} TO TRAIN {model} LABEL arrived INTO exact")
    reported, true = measured(session, "exact")
    assert reported == pytest.approx(true, rel=1e-6)
    assert true < 2


def test_a_loss_without_a_centre_warns_and_reports_the_error_of_its_predictions(session: Session) -> None:
    [result] = session.run(
        f"{ROWS} TO TRAIN BoostedTreesRegressor WITH train.num_boost_round = 2, loss = poisson LABEL arrived INTO rough"
    )
    assert any("numbers near 1700000064 are 128 apart" in str(each) for each in result.warnings)
    reported, true = measured(session, "rough")
    assert reported == pytest.approx(true, rel=1e-6)
    assert true > 10


@pytest.mark.soak
def test_a_model_with_a_centre_is_not_trained_further_by_a_loss_of_logarithms(session: Session) -> None:
    trees = f"{ROWS} TO TRAIN BoostedTreesRegressor WITH train.num_boost_round = 1"
    last(session, f"{trees} LABEL arrived INTO started")
    with pytest.raises(
        SQLFlowError, match="needs labels from 0, and the model learned arrived less 17000000"
    ):
        last(session, f"{trees}, loss = poisson LABEL arrived USING started INTO started")


def test_large_predictions_are_doubles_in_the_table(session: Session) -> None:
    last(
        session,
        f"{ROWS} TO TRAIN BoostedTreesRegressor WITH train.num_boost_round = 1 LABEL arrived INTO one",
    )
    last(session, "SELECT stops, zone FROM events LIMIT 9 TO PREDICT guesses.arrived USING one")
    assert session.source.schema("SELECT arrived FROM guesses").field("arrived").type == pa.float64()


@pytest.mark.soak
def test_the_seconds_that_the_error_for_a_timestamp_advises_are_learned(session: Session) -> None:
    wrong = 'SELECT stops, zone, "at" FROM events TO TRAIN BoostedTreesRegressor LABEL "at" INTO timed'
    with pytest.raises(SQLFlowError) as caught:
        last(session, wrong)
    advice = caught.value.hint.rpartition(": ")[2]  # type: ignore[union-attr]
    rows = f"SELECT stops, zone, {advice} AS arrived FROM events"
    last(
        session,
        f"{rows} TO TRAIN BoostedTreesRegressor WITH train.num_boost_round = 60, learning_rate = 0.3 "
        "LABEL arrived INTO timed",
    )
    reported, true = measured(session, "timed", rows)
    assert reported == pytest.approx(true, rel=1e-6)
    assert true < 2
    [row] = last(
        session, "SELECT stops, zone FROM events LIMIT 1 TO EXPLAIN timed WITH explain.level = rows"
    ).to_pylist()
    assert row["arrived_base"] + row["stops_shap"] + row["zone_shap"] == pytest.approx(
        row["arrived"], abs=1e-3
    )
