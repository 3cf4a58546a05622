"""EXPLAIN of one row and of few rows: by the rows that a model keeps of its training."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from edl.errors import SemanticError
from edl.models import background
from edl.models.archive import FORMAT, read_archive
from edl.models.registry.records import ModelRecord
from sqlflow_edl.reports.result import Result
from sqlflow_edl.session.session import Session
from tests.databases import fill

ROWS = 2400
draw = np.random.default_rng(7)
TENURE, CALLS = draw.integers(0, 60, ROWS), draw.poisson(1.5, ROWS)
PLAN = np.array(["basic", "plus"])[draw.integers(0, 2, ROWS)]
CHURNED = draw.random(ROWS) < 1 / (1 + np.exp(0.1 * TENURE - CALLS - 2.0 * (PLAN == "basic")))
CUSTOMERS = pa.table(
    {
        "id": range(ROWS),
        "tenure": TENURE,
        "calls": CALLS,
        "plan": PLAN,
        "noise": draw.random(ROWS),
        "churned": CHURNED,
    }
)
COLUMNS = ("tenure", "calls", "plan")
ONE = "SELECT * FROM customers WHERE id = 7"
LINEAR = "TO TRAIN LinearClassifier WITH model.framework = torch, train.epochs = 20, train.batch_size = 64"


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    folder = tmp_path_factory.mktemp("explain")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(folder))
        with Session(f"duckdb:///{folder}/customers.duckdb", create=True) as opened:
            fill(opened, "customers", CUSTOMERS)
            list(
                opened.run(
                    f"SELECT tenure, calls, plan, churned FROM customers {LINEAR} LABEL churned INTO churn"
                )
            )
            trees = "TO TRAIN BoostedTreesClassifier WITH train.num_boost_round = 5"
            list(
                opened.run(
                    f"SELECT tenure, calls, plan, churned FROM customers {trees} LABEL churned INTO trees"
                )
            )
            yield opened


def last(session: Session, text: str) -> Result:
    return list(session.run(text))[-1]


def row_of(session: Session, text: str) -> dict[str, float]:
    [row] = last(session, text).to_arrow().to_pylist()
    return dict(row)


def stored(session: Session, model: str, folder: Path) -> Path:
    session.registry.load(model, folder / "model.zip")
    return folder / "model.zip"


def shares(row: dict[str, float]) -> list[float]:
    return [row[f"{name}_shap"] for name in COLUMNS]


def test_the_values_of_one_row_add_up_and_are_not_zero(session: Session) -> None:
    row = row_of(session, f"{ONE} TO EXPLAIN churn WITH explain.level = rows")
    assert row["churned_base"] + sum(shares(row)) == pytest.approx(row["churned_prob_true"])
    assert all(abs(each) > 0.001 for each in shares(row))


@pytest.mark.soak
def test_a_row_has_the_same_values_alone_and_among_others(session: Session) -> None:
    few = "SELECT * FROM customers WHERE id < 40 ORDER BY id"
    among = last(session, f"{few} TO EXPLAIN churn WITH explain.level = rows").to_arrow().to_pylist()
    alone = row_of(session, f"{ONE} TO EXPLAIN churn WITH explain.level = rows")
    assert shares(alone) == pytest.approx(shares(among[7]))


def test_explain_predict_of_one_row_adds_up(session: Session) -> None:
    row = last(session, f"SELECT * FROM ML.EXPLAIN_PREDICT(MODEL churn, ({ONE}))").to_arrow().to_pylist()[0]
    values = [each["attribution"] for each in row["top_feature_attributions"]]
    assert row["baseline_prediction_value"] + sum(values) == pytest.approx(row["prediction_value"])
    assert row["prediction_value"] == pytest.approx(row["probability"])
    assert all(values)


@pytest.mark.soak
def test_rows_may_be_compared_with_the_querys_rows(session: Session) -> None:
    text = "SELECT * FROM customers WHERE plan = 'plus' AND id < 200"
    written = "WITH explain.background = query, explain.level = model"
    found = last(session, f"{text} TO EXPLAIN churn {written}").figures
    assert found is not None
    assert found["plan"] == pytest.approx(0, abs=1e-9), "all rows of the query have the same plan"
    assert (last(session, f"{text} TO EXPLAIN churn").figures or {})["plan"]


def test_without_kept_rows_a_single_row_is_an_error(session: Session, tmp_path: Path) -> None:
    _store_as_earlier_version(session, tmp_path)
    with pytest.raises(SemanticError, match="this query has only one, so nothing can be explained") as caught:
        last(session, f"{ONE} TO EXPLAIN earlier")
    assert "train the model again" in str(caught.value.hint)
    few = last(session, "SELECT * FROM customers WHERE id < 5 TO EXPLAIN earlier")
    assert "these 5 rows are compared with each other alone: earlier@1 keeps no rows" in few.notes[0]
    with pytest.raises(SemanticError) as caught:
        last(session, f"{ONE} TO EXPLAIN churn WITH explain.background = query")
    assert "leave explain.background out" in str(caught.value.hint)


def _store_as_earlier_version(session: Session, folder: Path) -> None:
    """Store the model as if it had been trained before models kept rows."""
    path = stored(session, "churn", folder)
    with zipfile.ZipFile(path) as full, zipfile.ZipFile(folder / "earlier.zip", "w") as bare:
        bare.comment = FORMAT
        for entry in full.infolist():
            if entry.filename != background.FILE:
                bare.writestr(entry, full.read(entry.filename))
    archive = read_archive(folder / "earlier.zip")
    assert not archive.has_background
    record = ModelRecord("LinearClassifier", "torch", ROWS, {}, archive.spec.statement)
    session.registry.save("earlier", folder / "earlier.zip", record)


@pytest.mark.soak
def test_a_model_may_keep_quantiles_in_place_of_rows(session: Session, tmp_path: Path) -> None:
    text = f"SELECT tenure, calls, plan, churned FROM customers {LINEAR}, model.keep_rows = none"
    last(session, f"{text} LABEL churned INTO discreet")
    kept = read_archive(stored(session, "discreet", tmp_path)).background()
    assert kept is not None
    assert set(kept["plan"].to_pylist()) == {"basic", "plus"}
    row = row_of(session, f"{ONE} TO EXPLAIN discreet WITH explain.level = rows")
    assert row["churned_base"] + sum(shares(row)) == pytest.approx(row["churned_prob_true"])
    assert all(shares(row))


def test_a_model_keeps_at_most_200_rows_of_the_columns_that_it_reads(
    session: Session, tmp_path: Path
) -> None:
    kept = read_archive(stored(session, "churn", tmp_path)).background()
    assert kept is not None
    assert (kept.num_rows, set(kept.schema.names)) == (200, set(COLUMNS))


def test_trees_explain_one_row_without_kept_rows(session: Session, tmp_path: Path) -> None:
    assert not read_archive(stored(session, "trees", tmp_path)).has_background
    row = row_of(session, f"{ONE} TO EXPLAIN trees WITH explain.level = rows")
    logit = np.log(row["churned_prob_true"] / row["churned_prob_false"])
    assert row["churned_base"] + sum(shares(row)) == pytest.approx(logit, rel=1e-5)


@pytest.mark.soak
def test_the_importance_for_a_model_is_over_a_thousand_rows_and_says_so(session: Session) -> None:
    result = last(session, "SELECT * FROM customers TO EXPLAIN churn")
    assert result.notes == (
        "importances over 1,000 of the 2,400 rows, drawn at random; WITH explain.rows = 0 takes all",
    )
    every = last(session, "SELECT * FROM customers TO EXPLAIN churn WITH explain.rows = 0")
    assert not every.notes
    assert result.figures is not None
    assert every.figures == pytest.approx(result.figures, rel=0.1)
    assert every.figures != result.figures


@pytest.mark.soak
def test_a_sample_is_the_same_every_time_and_in_any_order(session: Session) -> None:
    text = "SELECT * FROM customers TO EXPLAIN churn WITH explain.rows = 300, explain.samples = 4"
    once = last(session, text).figures
    assert last(session, text).figures == once
    assert last(
        session,
        "SELECT * FROM customers ORDER BY id DESC TO EXPLAIN churn WITH explain.rows = 300, "
        "explain.samples = 4",
    ).figures == pytest.approx(once)


@pytest.mark.soak
def test_workers_explain_the_sample_of_one_process(session: Session) -> None:
    text = "SELECT * FROM customers TO EXPLAIN churn WITH explain.rows = 300, explain.samples = 4"
    found = last(session, f"{text}, explain.num_workers = 2").figures
    assert found == pytest.approx(last(session, text).figures)


def test_the_plan_says_which_rows_are_explained_and_compared(session: Session) -> None:
    plan = last(session, "EXPLAIN SELECT * FROM customers TO EXPLAIN churn").to_arrow().to_pylist()
    found = {row["name"]: row["value"] for row in plan if row["section"] == "explanation"}
    assert found["rows"] == "up to 1,000"
    assert found["background"] == "rows that the model keeps of its training"


def test_one_row_is_explained_by_a_row_for_each_column_with_its_reason(session: Session) -> None:
    result = last(session, f"{ONE} TO EXPLAIN churn")
    found = result.to_arrow().to_pylist()
    row = row_of(session, f"{ONE} TO EXPLAIN churn WITH explain.level = rows")
    assert [each["feature"] for each in found] == sorted(COLUMNS, key=lambda name: -abs(row[f"{name}_shap"]))
    assert {each["feature"]: each["contribution"] for each in found} == pytest.approx(
        {name: row[f"{name}_shap"] for name in COLUMNS}
    )
    tenure = next(each for each in found if each["feature"] == "tenure")
    assert tenure["value"] == str(TENURE[7])
    assert abs(int(tenure["usual"]) - np.median(TENURE)) <= 3
    assert tenure["reason"] == f"tenure {TENURE[7]}, usually {tenure['usual']}: {tenure['contribution']:+.2g}"
    total, base = row["churned_prob_true"], row["churned_base"]
    assert result.message.startswith(
        f"churned is {str(total > 0.5).upper()}; the probability of TRUE is {total:.4g}, on average {base:.4g}: "
    )
    assert found[0]["reason"] in result.message


@pytest.mark.parametrize(
    ("model", "unit"), [("churn", "the probability of TRUE"), ("trees", "log-odds of TRUE")]
)
def test_the_unit_of_contributions_is_named(session: Session, model: str, unit: str) -> None:
    text = f"SELECT * FROM customers WHERE id < 30 TO EXPLAIN {model}"
    assert last(session, text).message == f"importance in {unit}"
    assert last(session, f"{text} INTO why").message.endswith(f"; contributions in {unit}")


@pytest.mark.soak
def test_global_explain_of_one_training_row_has_the_columns_of_its_reference(session: Session) -> None:
    found = last(session, f"SELECT * FROM ML.GLOBAL_EXPLAIN(MODEL churn, ({ONE}))").to_arrow()
    assert found.column_names == ["feature", "attribution"]


GRADIENTS = "TO EXPLAIN churn WITH explain.method = expected_gradients"


def test_expected_gradients_of_one_row_are_near_to_its_shapley_values(session: Session) -> None:
    [gradients] = last(session, f"{ONE} {GRADIENTS} INTO why; SELECT * FROM why").to_arrow().to_pylist()
    walked = row_of(session, f"{ONE} TO EXPLAIN churn INTO why; SELECT * FROM why")
    np.testing.assert_allclose(shares(gradients), shares(walked), atol=0.06)
    [whole] = (
        last(session, f"EXPLAIN {ONE} {GRADIENTS} INTO why")
        .to_arrow()
        .filter(pa.compute.field("name") == "samples")
        .to_pylist()
    )
    assert whole["why"] == "200 gradients for each row"


def test_expected_gradients_of_a_table_rank_its_columns_as_shapley_values_do(session: Session) -> None:
    found = [
        last(session, f"SELECT * FROM customers {way}").figures for way in ("TO EXPLAIN churn", GRADIENTS)
    ]
    assert [sorted(figures, key=figures.get, reverse=True) for figures in found] == [
        ["tenure", "plan", "calls"]
    ] * 2


def test_expected_gradients_of_trees_are_refused_with_the_remedy(session: Session) -> None:
    with pytest.raises(
        SemanticError, match="explain a single network, and trees@1 is a model of trees"
    ) as raised:
        last(session, f"{ONE} TO EXPLAIN trees WITH explain.method = expected_gradients")
    assert (
        raised.value.hint
        == "leave explain.method out: any model is explained by Shapley values, trees by exact ones"
    )
