"""Models of other systems: the answer names what does their job here."""

from __future__ import annotations

from pathlib import Path

import pytest

from edl.errors import SQLFlowError, raise_all
from sqlflow_edl.analysis import catalog
from sqlflow_edl.analysis.alternatives import find_alternative
from sqlflow_edl.analysis.train_settings import check_settings
from sqlflow_edl.syntax.parse import parse


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("CatBoostClassifier", "train a BoostedTreesClassifier"),
        ("GBDTRegressor", "train a BoostedTreesRegressor"),
        ("ExtraTreesClassifier", "train a BoostedTreesClassifier"),
        ("extra_trees_regressor", "train a BoostedTreesRegressor"),
        ("CatBoostRanker", "train a BoostedTreesRanker WITH train.group_column"),
        ("DBSCAN", "train a KMeans"),
        ("OneClassSVM", "IsolationForest"),
        ("ScoreCard", "train a LinearClassifier"),
        ("ElasticDLKerasClassifier", "train a DNNClassifier"),
        ("GCN", "my_module.MyModel"),
        ("LogisticRegression", "train a LinearClassifier"),
        ("LINEAR_REG", "train a LinearRegressor"),
        ("FactorizationMachine", "train a DeepFMClassifier"),
        ("MLPRegressor", "train a DNNRegressor"),
        ("LSTM", "train a SequenceClassifier"),
        ("TruncatedSVD", "train a PCA"),
        ("VAE", "train an Autoencoder"),
        ("SVDpp", "train a MatrixFactorization"),
    ],
)
def test_a_model_of_another_system_has_an_alternative(name: str, hint: str) -> None:
    found = find_alternative(name)

    assert found
    assert found.hint.startswith(hint) or hint in found.hint


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "BoostedTreeClassifier",
            "unknown model BoostedTreeClassifier; its name here is BoostedTreesClassifier",
        ),
        ("xgboost", "unknown model xgboost; such models are named BoostedTrees here"),
        ("KNeighborsClassifier", "there is no model KNeighborsClassifier: a network does its work here"),
        ("LinearSVC", "there is no model LinearSVC: a linear model does its work here"),
    ],
)
def test_the_message_names_the_model_if_exactly_one_is_the_same(name: str, message: str) -> None:
    found = find_alternative(name)

    assert found
    assert found.message == message


@pytest.mark.parametrize(
    "name", ["DNNClasifier", "LinearRegresor", "DepFM", "WideDeep", "TabClassifier", "m"]
)
def test_a_name_of_no_system_has_none(name: str) -> None:
    assert find_alternative(name) is None


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("DNNClasifier", "DNNClassifier"),
        ("DNNLinearCombinedRegresor", "DNNLinearCombinedRegressor"),
        ("linear_clasifier", "LinearClassifier"),
        ("DepFM", "DeepFM"),
        ("XGBClassifier", None),
        ("TabRegressor", None),
        ("m", None),
    ],
)
def test_a_common_ending_makes_no_models_alike(name: str, near: str | None) -> None:
    assert catalog.nearest_model(name) == near


def chosen(name: str) -> str:
    text = f"SELECT * FROM iris TO TRAIN {name} LABEL species INTO m"
    [statement] = parse(text)
    checked = check_settings(statement)
    raise_all(list(checked.errors))
    return checked.settings.choice.example.name


@pytest.mark.parametrize("name", ["DNNClassifier", "DNN", "dnnclassifier_functional_model"])
def test_a_name_of_sqlflow_s_zoo_is_that_model_here(name: str) -> None:
    assert chosen(f"sqlflow_models.{name}") == "DNNClassifier"


def test_a_name_that_is_near_one_of_the_zoo_gets_it_as_a_hint() -> None:
    with pytest.raises(SQLFlowError, match="unknown model") as caught:
        chosen("sqlflow_models.DNNClasifier")

    assert caught.value.hint == "did you mean DNNClassifier?"


def test_a_module_of_that_name_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sqlflow_models.py").write_text("OTHER = 1\n")
    monkeypatch.chdir(tmp_path)

    with pytest.raises(SQLFlowError, match="sqlflow_models"):
        chosen("sqlflow_models.DNNClassifier")
