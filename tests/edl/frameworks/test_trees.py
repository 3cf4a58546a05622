"""Adapters of trees, against the libraries called by hand on the same rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
import pytest
import xgboost

from edl import frameworks
from edl.errors import JobError
from edl.frameworks import Minibatches
from edl.frameworks.trees.adapter import TreeAdapter
from edl.frameworks.trees.engine import first_line
from edl.spec import ALL_ROWS, ClassLabel, Label, RegressionLabel, Rows
from tests.edl.programs import loaded, simple

LIBRARIES = ("lightgbm", "xgboost")
COLUMNS = ("a", "b", "c")
ROUNDS = 12
rng = np.random.default_rng(7)
MATRIX = rng.normal(size=(900, 3))
MATRIX[::17, 1] = np.nan
NUMBER = np.exp(0.3 * MATRIX[:, 0] + np.nan_to_num(MATRIX[:, 1] * MATRIX[:, 2]) / 2)
WEIGHTS = rng.uniform(0.5, 1.5, 900).astype(np.float32)
WEIGHTS /= WEIGHTS.mean()
LABELS: Mapping[str, tuple[Label, np.ndarray]] = {
    "number": (RegressionLabel("y"), NUMBER.astype(np.float32)[:, np.newaxis]),
    "two": (ClassLabel("y", (0, 1)), (NUMBER > 1).astype(np.float32)[:, np.newaxis]),
    "three": (ClassLabel("y", (0, 1, 2)), np.digitize(NUMBER, [0.7, 1.3]).astype(np.int64)),
}
OBJECTIVES = [  # library, objective, kind of label, parameters, the library's name of the loss
    ("lightgbm", "regression", "number", {}, "l2"),
    ("lightgbm", "regression_l1", "number", {}, "l1"),
    ("lightgbm", "huber", "number", {"alpha": 0.4}, "huber"),
    ("lightgbm", "quantile", "number", {"alpha": 0.8}, "quantile"),
    ("lightgbm", "poisson", "number", {}, "poisson"),
    ("lightgbm", "gamma", "number", {}, "gamma"),
    ("lightgbm", "tweedie", "number", {"tweedie_variance_power": 1.3}, "tweedie"),
    ("lightgbm", "binary", "two", {}, "binary_logloss"),
    ("lightgbm", "multiclass", "three", {"num_class": 3}, "multi_logloss"),
    ("xgboost", "reg:squarederror", "number", {}, "rmse"),
    ("xgboost", "reg:absoluteerror", "number", {}, "mae"),
    ("xgboost", "reg:pseudohubererror", "number", {"huber_slope": 0.4}, "mphe"),
    ("xgboost", "reg:quantileerror", "number", {"quantile_alpha": 0.8}, "quantile"),
    ("xgboost", "count:poisson", "number", {}, None),  # its metric adds the logarithm of a factorial
    ("xgboost", "reg:gamma", "number", {}, "gamma-nloglik"),
    ("xgboost", "reg:tweedie", "number", {"tweedie_variance_power": 1.3}, "tweedie-nloglik@1.3"),
    ("xgboost", "binary:logistic", "two", {}, "logloss"),
    ("xgboost", "binary:hinge", "two", {}, None),
    ("xgboost", "multi:softprob", "three", {"num_class": 3}, "mlogloss"),
]


def adapter(
    folder: Path, library: str, objective: str = "", kind: str = "number", more: str = "", **params: Any
) -> TreeAdapter:
    label, labels = LABELS[kind]
    written = "".join(f", {name}={value!r}" for name, value in params.items())
    path = simple(
        folder, library, rows=Rows(False, 900, 900), label=label, features=COLUMNS,
        replace={"seed=0)": f"seed=0{written}{more})"},
    )  # fmt: skip
    if objective:
        text = (path / "model.py").read_text()
        before = text.partition('objective="')[2].partition(", learning_rate")[0]
        (path / "model.py").write_text(text.replace(before, f'{objective}"'))
    made = frameworks.create(loaded(path), {"dense": MATRIX[:2]}, labels[:2], seed=0)
    assert isinstance(made, TreeAdapter)
    return made


def rows(kind: str = "number", weights: np.ndarray | None = None) -> Minibatches:
    return Minibatches({"dense": MATRIX}, LABELS[kind][1], ALL_ROWS, weights)


def grown(subject: TreeAdapter, kind: str = "number", rounds: int = ROUNDS, **how: Any) -> list[float]:
    given = rows(kind, **how)
    return [float(subject.train(given)[0]) for _ in range(rounds)]


def by_hand(
    library: str,
    objective: str,
    kind: str,
    params: dict[str, Any],
    metric: str | None,
    weights: np.ndarray | None,
) -> tuple[np.ndarray, float]:
    """Predictions and the mean loss of the last round."""
    labels = LABELS[kind][1].reshape(-1)
    params = {**params, "objective": objective, "learning_rate": 0.1, "seed": 0}
    if library == "lightgbm":
        data = lightgbm.Dataset(MATRIX, labels, weight=weights)
        fixed = {
            "deterministic": True,
            "force_row_wise": True,
            "verbosity": -1,
            "metric": metric,
            "num_threads": 1,
        }
        booster = lightgbm.train({**params, **fixed}, data, ROUNDS, keep_training_booster=True)
        return booster.predict(MATRIX), booster.eval_train()[0][2]
    data = xgboost.QuantileDMatrix(MATRIX, labels, weight=weights)
    fixed = {"nthread": 1, **({"eval_metric": metric} if metric else {})}
    booster = xgboost.train({**params, **fixed}, data, ROUNDS)
    loss = float(booster.eval(data).rpartition(":")[2])
    predictions = booster.predict(data)
    if (
        objective == "binary:hinge"
    ):  # the library gives classes, the product the logistic function of the margin
        margins = booster.predict(data, output_margin=True)
        np.testing.assert_array_equal(margins > 0, predictions == 1)
        predictions = 1 / (1 + np.exp(-margins))
    return predictions, loss**2 if metric == "rmse" else loss


@pytest.mark.variants(9)
@pytest.mark.parametrize(
    "weights",
    [pytest.param(WEIGHTS, id="weighted"), pytest.param(None, id="equal", marks=pytest.mark.soak)],
)
@pytest.mark.parametrize(("library", "objective", "kind", "params", "metric"), OBJECTIVES)
def test_predictions_and_losses_equal_the_library_called_by_hand(
    tmp_path: Path,
    library: str,
    objective: str,
    kind: str,
    params: dict[str, Any],
    metric: str | None,
    weights: np.ndarray | None,
) -> None:
    subject = adapter(tmp_path, library, objective, kind, **params)
    losses = grown(subject, kind, weights=weights)
    wanted, loss = by_hand(library, objective, kind, params, metric, weights)
    evaluated = subject.evaluate({"dense": MATRIX}, LABELS[kind][1], weights)
    predictions = evaluated.outputs
    if kind != "number":
        predictions = subject.engine.objective.predictions(predictions)
    np.testing.assert_allclose(
        predictions.reshape(wanted.shape), wanted, rtol=2e-6 if library == "xgboost" else 1e-12
    )
    assert losses[-1] == pytest.approx(evaluated.loss, rel=1e-5)
    assert losses[-1] < losses[0]
    if metric is not None:
        assert evaluated.loss == pytest.approx(loss, rel=1e-4)


@pytest.mark.parametrize("library", LIBRARIES)
def test_margins_that_are_added_up_round_by_round_equal_the_margins_of_all_trees(
    tmp_path: Path, library: str
) -> None:
    subject = adapter(tmp_path, library)
    given = {"dense": MATRIX[:500].copy()}
    labels = LABELS["number"][1][:500]
    data = rows()
    for _ in range(5):
        subject.train(data)
        found = subject.evaluate(given, labels)
    np.testing.assert_array_equal(found.outputs, subject.predict({"dense": given["dense"].copy()}))


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("booster", ["trees", "dart"])
def test_the_kept_weights_belong_to_their_round(tmp_path: Path, library: str, booster: str) -> None:
    name = "boosting" if library == "lightgbm" else "booster"
    params = {name: "dart"} if booster == "dart" else {}
    subject = adapter(tmp_path, library, **params)
    grown(subject, rounds=4)
    kept, wanted = subject.keep(), subject.predict({"dense": MATRIX})
    grown(subject, rounds=3)
    subject.set_weights(kept)
    np.testing.assert_array_equal(subject.predict({"dense": MATRIX}), wanted)
    other = adapter(tmp_path / "other", library, **params)
    other.set_weights(subject.get_weights())
    np.testing.assert_array_equal(other.predict({"dense": MATRIX}), wanted)


@pytest.mark.variants(4)
@pytest.mark.parametrize(
    ("library", "params"),
    [
        ("lightgbm", {}),
        ("lightgbm", {"bagging_fraction": 0.5, "bagging_freq": 1, "feature_fraction": 0.7}),
        ("lightgbm", {"boosting": "dart"}),
        ("xgboost", {}),
        ("xgboost", {"subsample": 0.5}),
        ("xgboost", {"colsample_bytree": 0.7}),
        ("xgboost", {"booster": "dart", "rate_drop": 0.3}),
        ("xgboost", {"booster": "gblinear"}),
    ],
)
def test_training_goes_on_from_its_state_as_if_it_had_not_stopped(
    tmp_path: Path, library: str, params: dict[str, Any]
) -> None:
    alone = adapter(tmp_path / "alone", library, **params)
    grown(alone, rounds=9)
    first = adapter(tmp_path / "first", library, **params)
    grown(first, rounds=4)
    second = adapter(tmp_path / "second", library, **params)
    second.set_weights(first.get_weights())
    second.set_state(first.get_state())
    grown(second, rounds=5)
    assert second.get_weights()["booster"].tobytes() == alone.get_weights()["booster"].tobytes()


@pytest.mark.parametrize("library", LIBRARIES)
def test_the_rounds_of_a_model_are_followed_by_more(tmp_path: Path, library: str) -> None:
    first = adapter(tmp_path / "first", library)
    grown(first, rounds=5)
    second = adapter(tmp_path / "second", library)
    second.set_weights(first.get_weights())
    losses = grown(second, rounds=5)
    assert second.rounds == 10
    whole = grown(adapter(tmp_path / "whole", library), rounds=10)
    assert losses == pytest.approx(whole[5:], rel=1e-5)


@pytest.mark.parametrize("library", LIBRARIES)
def test_numbers_beyond_float32_are_large_numbers(tmp_path: Path, library: str) -> None:
    subject = adapter(tmp_path, library)
    large = MATRIX.copy()
    large[:, 0] *= 1e200
    losses = [float(subject.train(rows()._replace(features={"dense": large}))[0]) for _ in range(5)]
    assert losses[-1] < losses[0]
    assert np.isfinite(subject.predict({"dense": large})).all()


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_learning_rate_of_its_own_for_each_round(tmp_path: Path, library: str) -> None:
    still = adapter(tmp_path, library)
    still.train(rows()._replace(rates=np.array([0.0], np.float32)))
    before = still.predict({"dense": MATRIX})
    assert np.ptp(before) == pytest.approx(0, abs=1e-6)
    still.train(rows()._replace(rates=np.array([0.5], np.float32)))
    assert np.ptp(still.predict({"dense": MATRIX})) > 0.5


@pytest.mark.parametrize("library", LIBRARIES)
def test_classes_are_weighed_in_training_alone(tmp_path: Path, library: str) -> None:
    even = adapter(tmp_path / "even", library, kind="two")
    uneven = adapter(tmp_path / "uneven", library, kind="two", more=", class_weights=[1, 5]")
    for subject in (even, uneven):
        grown(subject, "two")
    scores = [subject.predict({"dense": MATRIX}).mean() for subject in (even, uneven)]
    assert scores[1] > scores[0] + 0.5


@pytest.mark.parametrize("library", LIBRARIES)
def test_shapley_values_add_up_to_the_margin(tmp_path: Path, library: str) -> None:
    for kind, outputs in (("number", 1), ("three", 3)):
        subject = adapter(tmp_path / kind, library, kind=kind)
        grown(subject, kind)
        found = subject.contributions({"dense": MATRIX})
        assert found.shape == (900, outputs, 4)
        np.testing.assert_allclose(found.sum(axis=2), subject.predict({"dense": MATRIX}), atol=1e-5)


@pytest.mark.parametrize("library", LIBRARIES)
def test_rows_of_the_same_leaves_have_the_same_margin(tmp_path: Path, library: str) -> None:
    subject = adapter(tmp_path, library)
    grown(subject, rounds=2)
    outputs, extra = subject.predict_with({"dense": MATRIX}, ["leaves"])
    assert extra["leaves"].shape == (len(MATRIX), 2)
    margins = {
        tuple(leaves): value
        for leaves, value in zip(extra["leaves"].tolist(), outputs[:, 0].tolist(), strict=True)
    }
    assert [margins[tuple(leaves)] for leaves in extra["leaves"].tolist()] == outputs[:, 0].tolist()


@pytest.mark.parametrize("library", LIBRARIES)
def test_importances_say_which_columns_split(tmp_path: Path, library: str) -> None:
    subject = adapter(tmp_path, library)
    grown(subject)
    weights = subject.get_weights()
    assert weights["gain"].shape == weights["split"].shape == (3,)
    assert (weights["split"] > 0).all()


@pytest.mark.parametrize(
    ("library", "edit", "message"),
    [
        ("lightgbm", ('objective="regression"', 'objective="rank_x"'), "there is no objective rank_x"),
        ("xgboost", ('objective="reg:squarederror"', 'objective="survival:cox"'), "there is no objective survival:cox"),
        ("lightgbm", ("LightGBM(FEATURES", "dict(a=FEATURES"), "returns a dict, not an edl.trees.LightGBM"),
        ("xgboost", ("XGBoost(FEATURES", "dict(a=FEATURES"), "returns a dict, not an edl.trees.XGBoost"),
    ],
)  # fmt: skip
def test_a_program_without_a_model_of_trees_is_an_error(
    tmp_path: Path, library: str, edit: tuple[str, str], message: str
) -> None:
    path = simple(tmp_path, library, rows=Rows(False, 9, 9), features=COLUMNS, replace=dict([edit]))
    program = loaded(path)
    with pytest.raises(JobError, match=message):
        frameworks.create(program, {"dense": MATRIX[:2]}, None, seed=0)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize(
    ("features", "message"),
    [
        ({"dense": MATRIX[:, :2]}, r"the features have the shape \(900, 2\), the model takes 3 columns"),
        ({"dense": MATRIX, "f3": MATRIX}, "feed gives 2 arrays of features"),
    ],
)
def test_features_of_another_form_are_an_error(
    tmp_path: Path, library: str, features: dict[str, np.ndarray], message: str
) -> None:
    subject = adapter(tmp_path, library)
    grown(subject, rounds=1)
    with pytest.raises(JobError, match=message):
        subject.predict(features)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("damaged", [{"3.kernel": np.zeros(3)}, {"booster": np.zeros(9, np.uint8)}])
def test_other_weights_are_refused(tmp_path: Path, library: str, damaged: dict[str, np.ndarray]) -> None:
    with pytest.raises(JobError, match="weights"):
        adapter(tmp_path, library).set_weights(damaged)


@pytest.mark.soak
def test_the_bytes_of_a_model_do_not_depend_on_the_number_of_threads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from edl.frameworks.trees import engine
    from edl.frameworks.trees import lightgbm as ours

    found: list[bytes] = []
    set_threads: Callable[[int], None] = ours.start
    for threads in (1, 2):
        monkeypatch.setattr(ours, "GROWING", 1)
        subject = adapter(tmp_path / str(threads), "lightgbm")
        set_threads(threads)
        assert engine.threads_for(MATRIX, threads, 1) == threads
        grown(subject)
        found.append(subject.get_weights()["booster"].tobytes())
    set_threads(1)
    assert found[0] == found[1]


@pytest.mark.parametrize(
    ("message", "wanted"),
    [
        ("[02:59:29] /src/objective.cu:83: label must be non-negative", "label must be non-negative"),
        ("[02:59:29] /src/linear.cc:135: Check failed: !p->Has(): no categories", "no categories"),
        ("[02:59:29] /src/linear.cc:135: Check failed: !p->Has(): ", "Check failed: !p->Has():"),
        ("value -7 for max_depth\nStack trace:", "value -7 for max_depth"),
        (
            "Check failed: (max_bin) > (1) at /src/io/config_auto.cpp, line 607 .",
            "Check failed: (max_bin) > (1)",
        ),
    ],
)
def test_a_message_of_a_library_says_nothing_of_its_source(message: str, wanted: str) -> None:
    assert first_line(ValueError(message)) == wanted


@pytest.mark.parametrize(("library", "param"), [("lightgbm", "max_bin"), ("xgboost", "max_depth")])
def test_what_the_library_refuses_is_an_error_of_the_job(tmp_path: Path, library: str, param: str) -> None:
    with pytest.raises(JobError, match=f"{library} cannot train"):
        grown(adapter(tmp_path, library, **{param: -7}))
