"""Metrics found by name."""

from __future__ import annotations

import pytest

from edl import metrics
from edl.errors import SemanticError
from edl.spec import ClassLabel, RegressionLabel


@pytest.mark.parametrize(
    ("written", "kind", "made"),
    [
        ("Accuracy", "binary", metrics.Accuracy()),
        ("AUC", "multiclass", metrics.AUC()),
        ("roc_auc", "binary", metrics.AUC()),
        ("Log Loss", "binary", metrics.LogLoss()),
        ("SparseCategoricalCrossentropy", "multiclass", metrics.LogLoss()),
        ("MeanSquaredError", "regression", metrics.MSE()),
        ("root_mean_squared_error", "regression", metrics.RMSE()),
        ("RMSE", "regression", metrics.RMSE()),
        ("R2Score", "regression", metrics.R2()),
        ("f1-score", "binary", metrics.F1()),
        ("fbeta@3", "binary", metrics.FBeta(3)),
        ("fbeta_score", "multiclass", metrics.FBeta(2)),
        ("FalsePositives", "binary", metrics.FalsePositives()),
        ("explained_variance_score", "regression", metrics.ExplainedVariance()),
        ("hinge_loss", "binary", metrics.Hinge()),
        ("NDCG@5", "ranking", metrics.NDCG(5)),
        ("mean average precision", "ranking", metrics.MAP()),
    ],
)
def test_a_metric_has_the_names_that_analysts_write(
    written: str, kind: metrics.Kind, made: metrics.Metric
) -> None:
    found = metrics.by_name(written, kind)
    assert (type(found), found.name) == (type(made), made.name)


def test_metrics_of_sqlflow_have_their_names() -> None:
    of_keras = (
        "Accuracy Precision Recall AUC TruePositives TrueNegatives FalsePositives FalseNegatives BinaryAccuracy "
        "CategoricalAccuracy TopKCategoricalAccuracy MeanAbsoluteError MeanAbsolutePercentageError MeanSquaredError "
        "RootMeanSquaredError"
    )
    of_scikit_learn = (
        "accuracy_score average_precision_score balanced_accuracy_score brier_score_loss cohen_kappa_score "
        "explained_variance_score f1_score fbeta_score hamming_loss hinge_loss log_loss mean_absolute_error "
        "mean_squared_error mean_squared_log_error median_absolute_error precision_score r2_score recall_score "
        "roc_auc_score zero_one_loss"
    )
    for name in (*of_keras.split(), *of_scikit_learn.split()):
        assert metrics.by_name(name, None).name


@pytest.mark.parametrize("kind", ["regression", "binary", "multiclass", "ranking"])
def test_every_name_and_default_of_a_kind_can_be_made_and_calls_itself_so(kind: metrics.Kind) -> None:
    assert set(metrics.DEFAULTS[kind]) <= set(metrics.names(kind))
    for name in metrics.names(kind):
        metric = metrics.by_name(name, kind)
        assert metric.name == name
        assert getattr(metrics, type(metric).__name__) is type(metric)


def test_evaluation_asks_for_the_exact_figure() -> None:
    assert metrics.by_name("auc", "binary", exact=True) == metrics.AUC(exact=True)
    assert metrics.by_name("auc", "binary") == metrics.AUC()
    assert metrics.by_name("rmse", "regression", exact=True).name == "rmse"


@pytest.mark.parametrize(
    ("name", "kind", "message", "hint"),
    [
        (
            "auc",
            "regression",
            "auc measures predicted classes, this label is a number",
            "rmse, mae, r2, mse, mape",
        ),
        ("rmse", "binary", "rmse measures predicted numbers, this label is a class", "accuracy"),
        ("ndcg@3", "regression", "ndcg@3 measures predicted rankings, this label is a number", "rmse"),
        ("ndcg@0", "ranking", "there is no metric ndcg@0", "did you mean ndcg"),
        ("acuracy", "binary", "there is no metric acuracy", "did you mean accuracy?"),
        ("MeanSquareEror", "regression", "there is no metric", "did you mean mse?"),
        ("zzz", "regression", "there is no metric zzz", "known: rmse, mae"),
        ("", "regression", "there is no metric", "known: rmse, mae"),
    ],
)
def test_a_wrong_name_says_which_would_be_right(
    name: str, kind: metrics.Kind, message: str, hint: str
) -> None:
    with pytest.raises(SemanticError, match=message) as error:
        metrics.by_name(name, kind)
    assert hint in str(error.value.hint)


def test_the_kind_follows_from_the_label() -> None:
    assert metrics.kind_of(RegressionLabel("y")) == "regression"
    assert metrics.kind_of(ClassLabel("y", ("a", "b"))) == "binary"
    assert metrics.kind_of(ClassLabel("y", (1, 2, 3))) == "multiclass"
