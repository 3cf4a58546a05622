"""Searches from the short form to PREDICT: ensembles of boosted trees over small tables of numbers and of classes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from edl.errors import SQLFlowError
from edl.frameworks.device import is_own_process
from edl.jobs.cores import available_cores
from edl.jobs.events import JobEvent, TrialEnd
from edl.models.archive import Archive, read_archive
from edl.spec import ENSEMBLE
from sqlflow_edl.analysis.search import portfolio
from sqlflow_edl.cli.main import main
from sqlflow_edl.display.final_report import facts
from sqlflow_edl.extensions.serving.model import load_model
from sqlflow_edl.reports.result import Result
from sqlflow_edl.session.observer import Silent
from sqlflow_edl.session.session import Session
from tests.databases import fill
from tests.searches import short

ROWS = 160
draw = np.random.default_rng(11)
X, Y = draw.uniform(0, 10, ROWS).round(2), draw.uniform(0, 10, ROWS).round(2)
CITY = np.array(["oslo", "rome", "lima"])[draw.integers(0, 3, ROWS)]
PRICE = (3 * X + 5 * np.sin(Y) + 4 * (CITY == "oslo") + draw.normal(0, 2, ROWS)).round(3)
HOUSES = pa.table(
    {
        "id": range(ROWS),
        "x": X,
        "y": Y,
        "city": CITY,
        "often": draw.integers(1, 4, ROWS),
        "price": PRICE,
        "size": np.array(["s", "m", "l"])[np.digitize(X * Y + draw.normal(0, 4, ROWS), [15, 40])],
        "big": X * Y + draw.normal(0, 4, ROWS) > 25,
    }
)
INPUTS = "SELECT x, y, city FROM houses ORDER BY id"
TWO = "auto.models = lightgbm, auto.trials = 2"
PRICES = f"""SELECT x, y, city, price FROM houses LABEL price
WITH {TWO}, auto.folds = 2, validation.test_fraction = 0.25 INTO prices"""
SIZES = f"SELECT x, y, city, size FROM houses LABEL size WITH {TWO}, train.seed = 3 VALIDATE 0.25 INTO sizes"
WEIGHED = f"""SELECT x, y, city, often, big FROM houses WHERE id % 4 > 0 LABEL big
WITH {TWO}, auto.metric = auc, train.weight_column = often
VALIDATE ON (SELECT x, y, city, often, big FROM houses WHERE id % 4 = 0) INTO weighed"""


class Searched:
    """A session in which three searches have ended."""

    def __init__(self, session: Session, folder: Path) -> None:
        self.session = session
        self.results: dict[str, Result] = {}
        self._folder = folder
        for text in (PRICES, SIZES, WEIGHED):
            [result] = session.run(text)
            self.results[result.model.partition("@")[0]] = result

    def table(self, text: str) -> pa.Table:
        return list(self.session.run(text))[-1].to_arrow()

    def rows(self, text: str) -> list[dict[str, object]]:
        found: list[dict[str, object]] = self.table(text).to_pylist()
        return found

    def archive(self, model: str) -> Archive:
        self.session.registry.load(model, self._folder / "model.zip")
        return read_archive(self._folder / "model.zip")


@pytest.fixture(scope="module")
def searched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Searched]:
    folder = tmp_path_factory.mktemp("search")
    with short(), pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(folder))
        url = f"duckdb:///{folder}/houses.duckdb"
        with Session(url, create=True, share=available_cores()) as session:  # so trials follow one another
            fill(session, "houses", HOUSES)
            yield Searched(session, folder)


def described(searched: Searched, model: str) -> dict[tuple[str, str], str]:
    return {
        (str(row["section"]), str(row["name"])): str(row["value"])
        for row in searched.rows(f"DESCRIBE MODEL {model}")
    }


def test_a_search_says_what_it_did_and_on_which_rows(searched: Searched) -> None:
    result = searched.results["prices"]
    assert result.message == (
        "tried 2 candidates for prices@1 on 60 rows in each of 2 folds, chosen on 120 rows"
    )
    assert result.measured_on == "40 test rows, used for neither training nor selection"
    sizes = searched.results["sizes"]
    assert sizes.message == "tried 2 candidates for sizes@1 on 120 rows, chosen on 40 rows stratified by size"
    assert sizes.measured_on.startswith("40 validation rows")
    assert sum(trial.weight for trial in sizes.trials) == pytest.approx(1)


@pytest.mark.soak
def test_an_ensemble_learns_numbers_and_classes(searched: Searched) -> None:
    assert searched.results["prices"].figures["r2"] > 0.7
    assert searched.results["sizes"].figures["accuracy"] > 0.6
    assert searched.results["weighed"].figures["auc"] > 0.9
    predicted = np.asarray(searched.table(f"{INPUTS} TO PREDICT USING prices")["price"])
    assert np.corrcoef(predicted, PRICE)[0, 1] > 0.9
    classes = searched.table(f"{INPUTS} TO PREDICT USING sizes")["size"].to_pylist()
    assert set(classes) <= {"s", "m", "l"}


@pytest.mark.soak
def test_the_reported_figures_equal_evaluate_on_the_same_rows(searched: Searched) -> None:
    """The validation rows of this model have a query of their own."""
    [found] = searched.rows("SELECT x, y, city, often, big FROM houses WHERE id % 4 = 0 TO EVALUATE weighed")
    reported = searched.results["weighed"].figures
    assert {name: found[name] for name in reported} == pytest.approx(reported, rel=1e-6)


@pytest.mark.soak
def test_the_statements_of_the_trials_train_the_same_models_and_their_mean_is_the_ensemble(
    searched: Searched,
) -> None:
    trials = searched.rows("SHOW TRIALS sizes")
    assert [str(row["statement"]).rpartition(" ")[2] for row in trials] == [
        f"sizes_{row['trial']}" for row in trials
    ]
    shares = "SELECT x, y, city FROM houses ORDER BY id TO PREDICT USING {}"
    mean = 0.0
    for row in trials:
        [result] = searched.session.run(str(row["statement"]))
        names = ("accuracy", "log_loss", "f1")
        assert [result.figures[name] for name in names] == pytest.approx([row[name] for name in names])
        mean = mean + row["weight"] * probabilities(searched.table(shares.format(result.model)))
    ensemble = probabilities(searched.table(shares.format("sizes")))
    np.testing.assert_allclose(ensemble, mean, rtol=1e-6)


def probabilities(table: pa.Table) -> np.ndarray:
    names = [name for name in table.column_names if name.startswith("size_prob_")]
    assert len(names) == 3
    return np.stack([table[name].to_numpy() for name in names], axis=1)


def test_the_trials_are_listed_by_their_weight(searched: Searched) -> None:
    rows = searched.rows("SHOW TRIALS prices")
    assert {row["trial"] for row in rows} == {1, 2}
    weights = [row["weight"] for row in rows]
    assert weights == sorted(weights, reverse=True)
    assert sum(weights) == pytest.approx(1)
    best = searched.results["prices"].trials[int(str(rows[0]["trial"])) - 1]
    assert (rows[0]["model"], rows[0]["rmse"], rows[0]["error"]) == (best.name, best.figures["rmse"], None)


def test_a_statement_of_a_trial_has_the_clauses_of_the_search(searched: Searched) -> None:
    for row in searched.rows("SHOW TRIALS weighed"):
        statement = str(row["statement"])
        assert "train.weight_column = often" in statement
        assert "VALIDATE ON (SELECT x, y, city, often, big FROM houses WHERE id % 4 = 0)" in statement
        assert "auto." not in statement
        [compiled] = searched.session.compile(statement)
        assert compiled.spec.rows.validation == 40
        assert compiled.spec.weights is not None


@pytest.mark.soak
def test_a_model_that_no_search_found_has_no_trials(searched: Searched) -> None:
    statement = (
        "SELECT x, price FROM houses TO TRAIN LGBMRegressor WITH n_estimators = 1 LABEL price INTO plain"
    )
    list(searched.session.run(statement))
    [result] = searched.session.run("SHOW TRIALS plain")
    assert result.message == "plain was not found by a search: it has no trials"


def test_columns_may_stand_in_another_order_and_case(searched: Searched) -> None:
    wanted = searched.table(f"{INPUTS} TO PREDICT USING prices")["price"].to_pylist()
    given = 'SELECT city, 1 AS more, y AS "Y", x AS "X" FROM houses ORDER BY id TO PREDICT USING prices'
    assert searched.table(given)["price"].to_pylist() == wanted


def test_the_intervals_of_an_ensemble_come_from_rows_that_chose_nothing(searched: Searched) -> None:
    archive = searched.archive("prices")
    assert archive.residuals is not None
    assert archive.residuals.rows == 40
    found = searched.table(f"{INPUTS} TO PREDICT USING prices WITH predict.interval = 0.9")
    low, high = (np.asarray(found[name]) for name in ("price_low", "price_high"))
    assert np.mean((low <= PRICE) & (high >= PRICE)) > 0.85
    assert searched.archive("sizes").residuals is None


@pytest.mark.soak
def test_the_importance_of_a_column_is_that_for_the_whole_ensemble(searched: Searched) -> None:
    rows = searched.rows("SELECT x, y, city, price FROM houses TO EXPLAIN prices")
    assert {row["feature"] for row in rows} == {"x", "y", "city"}
    assert rows[0]["feature"] == "x"


def test_a_search_ends_with_the_importances_of_the_columns(searched: Searched) -> None:
    result = searched.results["prices"]
    assert result.importances is not None
    assert set(result.importances) == {"x", "y", "city"}
    assert next(iter(result.importances)) == "x"
    [line] = [value for name, value in facts(result) if name == "important"]
    assert line.startswith("x ")
    assert line.count(" %") == 3
    rows = [row for row in searched.rows("DESCRIBE MODEL prices") if row["section"] == "importance"]
    assert [row["name"] for row in rows] == ["measured by", *result.importances]
    assert rows[0]["value"] == "mean size of the Shapley values in 40 test rows, in the unit of price"
    assert (
        "in the probability of true" in described(searched, "weighed")["importance", "measured by"].casefold()
    )


def test_a_report_shows_the_importances_of_an_ensemble(searched: Searched, tmp_path: Path) -> None:
    file = tmp_path / "prices.html"
    assert main(["report", "prices", "--source", searched.session.source.url, "-o", str(file)]) == 0
    text = file.read_text(encoding="utf-8")
    assert 'aria-label="Importances: x' in text
    assert "mean size of the Shapley values in 40 test rows" in text


def test_an_ensemble_is_described_with_its_members(searched: Searched) -> None:
    found = described(searched, "prices")
    assert found["model", "model"] == "Ensemble"
    assert found["model", "framework"] == "ensemble"
    assert found["test", "rows"] == "40"
    assert found["training", "rows"] == "60 rows in each of 2 folds, and 120 that chose the members"
    assert ("features", "city") in found
    assert "lightgbm" in found["lineage", "versions"]
    members = [value for (section, _), value in found.items() if section == "members"]
    assert members
    assert all(value.startswith("trial ") and "BoostedTreesRegressor" in value for value in members)
    weighed = described(searched, "weighed")
    assert weighed["validation", "rows"] == "40"
    assert weighed["validation", "query"].endswith("WHERE id % 4 = 0")


def test_an_ensemble_in_memory_leaves_the_libraries_of_a_users_process_as_they_are(
    searched: Searched, tmp_path: Path
) -> None:
    searched.session.registry.load("prices", tmp_path / "prices.zip")
    predictor = load_model(tmp_path / "prices.zip").predictor
    [rows] = HOUSES.select(predictor.schema.names).to_batches()
    assert predictor.predict(rows).num_rows == ROWS
    assert not is_own_process()


def test_an_ensemble_is_listed_like_any_model(searched: Searched) -> None:
    [row] = searched.rows("SHOW MODELS LIKE 'prices'")
    assert (row["model"], row["framework"], row["state"]) == ("Ensemble", "ensemble", "ready")
    assert "rmse" in str(row["metrics"])


def test_an_archive_of_an_ensemble_has_the_programs_and_the_specs_of_its_members(searched: Searched) -> None:
    archive = searched.archive("prices")
    assert archive.spec.framework == ENSEMBLE
    assert "SELECT" in archive.spec.statement
    assert archive.spec.search is None
    assert {member.spec.framework for member in archive.spec.members} == {"lightgbm"}
    assert len(archive.trials) == 2


@pytest.mark.parametrize("verb", ["TO TRAIN BoostedTreesRegressor", "TO TRAIN DNN", ""])
def test_an_ensemble_is_not_trained_further_as_a_whole(searched: Searched, verb: str) -> None:
    with pytest.raises(SQLFlowError, match="prices@1 is an ensemble") as caught:
        list(
            searched.session.run(
                f"SELECT x, y, city, price FROM houses {verb} LABEL price USING prices INTO m"
            )
        )
    assert "SHOW TRIALS prices@1" in str(caught.value.hint)
    assert caught.value.span is not None


def test_test_rows_of_a_training_are_neither_trained_nor_validated_on(searched: Searched) -> None:
    train = "SELECT x, price FROM houses TO TRAIN LinearRegressor WITH {} LABEL price INTO m"
    [compiled] = searched.session.compile(train.format("validation.test_fraction = 0.25"))
    rows = compiled.spec.rows
    assert (rows.total, rows.training, rows.validation) == (160, 104, 16)
    [compiled] = searched.session.compile(
        train.format("validation.test_fraction = 0.5, validation.fraction = 0.25")
    )
    assert (compiled.spec.rows.training, compiled.spec.rows.validation) == (40, 40)


def test_models_of_several_libraries_make_one_ensemble(
    searched: Searched, monkeypatch: pytest.MonkeyPatch
) -> None:
    trees, *_ = portfolio.PORTFOLIO
    linear = next(each for each in portfolio.PORTFOLIO if each.family == "Linear")
    monkeypatch.setattr(portfolio, "PORTFOLIO", (trees, linear))
    [result] = searched.session.run(
        """SELECT x, y + 0.0 AS y, 3 * x + 4 * CAST(y > 5 AS INTEGER) AS z FROM houses LABEL z
        WITH auto.models = [lightgbm, linear], auto.folds = 1 VALIDATE 0.25 INTO mixed"""
    )
    assert {trial.name.partition("(")[2].partition(")")[0] for trial in result.trials} == {
        "lightgbm",
        "torch",
    }
    assert not [trial.error for trial in result.trials if trial.error]
    assert searched.table("SELECT x, y FROM houses TO PREDICT USING mixed").num_rows == ROWS


class Interrupted(Silent):
    """An observer that is interrupted at the end of the first trial."""

    def progress(self, event: JobEvent) -> None:
        if isinstance(event, TrialEnd):
            raise KeyboardInterrupt


@pytest.mark.soak
def test_an_interrupt_stores_the_ensemble_of_the_trials_that_have_ended(
    searched: Searched, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = portfolio.PORTFOLIO[0]
    endless = replace(
        first, attributes={**first.attributes, "train.num_boost_round": 10**6, "train.early_stopping": 0}
    )
    monkeypatch.setattr(portfolio, "PORTFOLIO", (first, *[endless] * 4))
    monkeypatch.setattr(searched.session, "observer", Interrupted())
    [result] = searched.session.run(
        "SELECT x, y, price FROM houses LABEL price WITH auto.folds = 1 INTO early"
    )
    assert result.ending == "stopped after 1 trial: interrupted"
    assert [trial.weight for trial in result.trials] == [1.0]
    assert searched.table("SHOW TRIALS early").num_rows == 1
    assert searched.table("SELECT x, y FROM houses TO PREDICT USING early").num_rows == ROWS


@pytest.mark.soak
def test_a_single_model_is_stored_as_one_of_its_kind(searched: Searched) -> None:
    [result] = searched.session.run(
        f"SELECT x, y, price FROM houses LABEL price WITH {TWO}, auto.folds = 1, auto.max_members = 1, "
        "test_fraction = 0.25 INTO alone"
    )
    found = described(searched, "alone")
    assert found["model", "model"] == "BoostedTreesRegressor"
    assert found["model", "framework"] == "lightgbm"
    assert found["test", "rows"] == "40"
    assert float(found["test", "rmse"]) == pytest.approx(result.figures["rmse"], rel=1e-3)
    assert found["lineage", "statement"].endswith("test_fraction = 0.25 INTO alone")
    assert searched.table("SHOW TRIALS alone").num_rows == 2
    [again] = searched.session.run(
        "SELECT x, y, price FROM houses TO TRAIN BoostedTreesRegressor WITH epochs = 2 "
        "LABEL price USING alone INTO more"
    )
    assert again.model == "more@1"


def test_a_model_is_cross_validated_in_folds_and_trained_on_all_rows(searched: Searched) -> None:
    [result] = searched.session.run(
        "SELECT x, y, price FROM houses TO TRAIN BoostedTreesRegressor "
        "WITH num_boost_round = 20, validation.folds = 2 LABEL price INTO validated"
    )
    assert result.message.startswith(
        "trained BoostedTreesRegressor validated@1 on 80 rows in each of 2 folds"
    )
    assert result.message.endswith("validated on 160 rows")
    [trial] = result.trials
    assert trial.weight == 1.0
    assert trial.refit == trial.epochs <= 20
    assert isinstance(trial.fold_values, tuple)
    assert len(trial.fold_values) == 2
    found = described(searched, "validated")
    assert found["model", "framework"] == "lightgbm"
    [row] = searched.rows("SHOW MODELS LIKE 'validated'")
    assert row["rows"] == ROWS
    assert found["training", "rows"] == f"80; then all {ROWS}, after measuring"
    assert found["lineage", "rows"].endswith(f"of the model that was measured; {ROWS} of the stored one")
    assert found["search", "100.0 %"].endswith(f"; {trial.refit} rounds on all rows")


@pytest.mark.soak
def test_attributes_with_several_values_are_searched(searched: Searched) -> None:
    [result] = searched.session.run(
        """SELECT x, y, city, price FROM houses TO TRAIN LGBMRegressor
        WITH num_leaves = CANDIDATES(4, 16), n_estimators = 20, learning_rate = 0.2 LABEL price INTO tuned"""
    )
    assert [trial.name for trial in result.trials] == [
        "LGBMRegressor, num_leaves 4",
        "LGBMRegressor, num_leaves 16",
    ]
    assert sorted(trial.weight for trial in result.trials) == [0.0, 1.0]
    [best] = (trial for trial in result.trials if trial.weight)
    assert result.figures["rmse"] == best.value == min(trial.value or 0.0 for trial in result.trials)
    assert described(searched, "tuned")["model", "num_leaves"] == best.name.rpartition(" ")[2]


@pytest.mark.soak
def test_the_statement_of_a_trial_has_a_name_that_needs_quotes(searched: Searched) -> None:
    list(searched.session.run(f'SELECT x, y, price FROM houses LABEL price WITH {TWO} INTO "odd name"'))
    statements = [str(row["statement"]) for row in searched.rows('SHOW TRIALS "odd name"')]
    assert sorted(text.rpartition(" INTO ")[2] for text in statements) == ['"odd name_1"', '"odd name_2"']
