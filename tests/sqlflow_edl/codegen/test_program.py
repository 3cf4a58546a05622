"""Generated programs: golden files, determinism, and text that cannot break out."""

from __future__ import annotations

import ast
import json
from collections.abc import Callable

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edl import spec
from sqlflow_edl.codegen import generate
from tests.texts import texts

HOSTILE = [
    'x"); import os #',
    "x'); import os #",
    "type",
    "a.b",
    "a/b",
    "n" * 300,
    "{{ 7 * 7 }}",
    "{% raw %}",
    "$(rm -rf /)",
    "`id`",
    "a\nb",
    "a\\",
    '"""',
    "'''",
    "\\N{BULLET}",
    "\u202egnol",
    "\u2028",
    "\x00",
    "\x0c",
    "# -*- coding: utf-7 -*-",
    "f0",
    "dense",
    "class",
    "",
]


def job(
    framework: spec.job.Framework = "keras",
    *,
    names: tuple[str, str, str, str] = ("age", "department", "address", "income"),
    label: spec.Label | None = None,
    model: spec.Component | None = None,
    loss: spec.Component | None = None,
    optimizer: spec.Component | None = None,
    metrics: tuple[str, ...] = ("rmse", "mae"),
    select: str = "SELECT age, department, address, income FROM employee",
    words: tuple[str | int, ...] = ("engineering", "finance", "sales"),
    inputs: dict[str, tuple[spec.Feature, ...]] | None = None,
    schedule: spec.Component | None = None,
    weights: spec.Weights | None = None,
    own: spec.Own | None = None,
) -> spec.JobSpec:
    number, word, text, target = names
    params: dict[str, spec.job.Parameter] = {"hidden_units": (100, 150, 50), "activation": "relu"}
    return spec.JobSpec(
        kind="train",
        statement=select + " TO TRAIN …",
        query=spec.Query(select, "duckdb", "duckdb:///demo.duckdb"),
        rows=spec.Rows(pinned=True, total=6400, training=5760, validation=640),
        framework=framework,
        model=model or spec.Component("DNNRegressor", params),
        inputs=inputs
        or {
            "features": (
                spec.Standardize(number, 38.58, 13.64),
                spec.OneHot(spec.Vocabulary(word, words)),
                spec.Embedding(spec.HashBucket(text, 1000), 16),
            )
        },
        label=label or spec.RegressionLabel(target, 60000.0, 15000.0),
        optimizer=optimizer or spec.Component("adam", {"learning_rate": 0.001}),
        loss=loss or spec.Component("mean_squared_error"),
        metrics=metrics,
        schedule=schedule,
        weights=weights,
        own=own,
    )


CLASSES = spec.ClassLabel("kind", ("a", "b", "c"))
TWO = spec.ClassLabel("left", (False, True))
JOBS = {
    "dnn_regressor": {},
    "dnn_classifier": {
        "label": CLASSES,
        "model": spec.Component(
            "DNNClassifier", {"hidden_units": (10,), "activation": "tanh", "dropout": 0.2, "batch_norm": True}
        ),
        "loss": spec.Component("focal", {"gamma": 2.0}),
        "optimizer": spec.Component("sgd", {"learning_rate": 0.1, "momentum": 0.9, "nesterov": True}),
        "metrics": ("accuracy", "log_loss"),
        "words": tuple(range(21)),
    },
    "linear_classifier": {
        "label": TWO,
        "model": spec.Component("LinearClassifier"),
        "loss": spec.Component("cross_entropy"),
        "metrics": ("accuracy", "auc"),
    },
    "scheduled": {
        "optimizer": spec.Component(
            "adam", {"learning_rate": 0.001, "beta_1": 0.8, "beta_2": 0.99, "clipnorm": 1.0}
        ),
        "schedule": spec.Component("cosine", {"warmup_steps": 100, "decay_steps": 1900, "end": 0.0}),
    },
    "weighted": {
        "weights": spec.Weights('how "often"', 2.5),
        "label": TWO,
        "model": spec.Component("LinearClassifier"),
        "loss": spec.Component("focal", {"gamma": 2.0, "class_weights": (0.55, 5.43)}),
        "metrics": ("auc",),
    },
    "computed": {
        "inputs": {
            "features": (
                spec.Standardize(spec.Computed("LN", (spec.Computed("+", ("age", 1.0)),)), 3.5, 0.25),
                spec.OneHot(spec.Bucket(spec.Computed("/", ("debt", "income")), (0.25, 0.5))),
                spec.OneHot(spec.Cross((spec.Bucket("age", (18.0, 65.0)), "city"), 100)),
            )
        },
    },
    "dates": {
        "inputs": {
            "features": (
                spec.Standardize("born", 1.0e9, 3.0e7),
                spec.Year("born", 2001.0, 0.8),
                spec.OneHot(spec.DatePart("born", "month")),
                spec.Embedding(spec.DatePart("seen", "hour"), 4),
            )
        },
        "model": spec.Component("LinearRegressor"),
    },
    "least_squares": {
        "inputs": {
            "features": (
                spec.Standardize("age", 38.58, 13.64),
                spec.OneHot(spec.Vocabulary("city", ("a", "b"))),
            )
        },
        "model": spec.Component("LinearRegressor"),
        "optimizer": spec.Component("least_squares", {"l2": 0.5}),
    },
    "vectors": {
        "inputs": {
            "features": (
                spec.Vector("point", (24.5, 49.0, 7.0)),
                spec.Vector('a "b"', (0.5,) * 21, (0.25,) * 21, "|"),
            )
        },
        "model": spec.Component("LinearRegressor"),
    },
    "ensemble": {
        "inputs": {
            "features": (
                spec.PiecewiseLinear("carat", (0.25, 0.5, 1.0, 5.0)),
                spec.OneHot(spec.Vocabulary("cut", ("good", "ideal"))),
            )
        },
        "label": CLASSES,
        "model": spec.Component(
            "DNNClassifier", {"hidden_units": (256, 128), "activation": "relu", "dropout": 0.1, "members": 8}
        ),
        "optimizer": spec.Component("adamw", {"learning_rate": 0.002, "weight_decay": 0.01}),
        "loss": spec.Component("cross_entropy"),
        "metrics": ("accuracy", "log_loss"),
        "schedule": spec.Component("cosine", {"warmup_steps": 0, "decay_steps": 4000, "end": 0.0}),
    },
    "real_mlp": {
        "inputs": {
            "features": (
                spec.Standardize("carat", 0.8, 0.5, 4.0),
                spec.PiecewiseLinear("carat", (0.25, 0.5, 1.0, 5.0)),
                spec.OneHot(spec.Vocabulary("cut", ("good", "ideal"))),
            )
        },
        "label": CLASSES,
        "model": spec.Component(
            "RealMLPClassifier", {"hidden_units": (256, 256, 256), "activation": "selu", "dropout": 0.15}
        ),
        "optimizer": spec.Component(
            "adamw", {"learning_rate": 0.04, "beta_1": 0.9, "beta_2": 0.95, "weight_decay": 0.02}
        ),
        "loss": spec.Component("cross_entropy", {"label_smoothing": 0.1}),
        "metrics": ("accuracy", "log_loss"),
        "schedule": spec.Component("coslog", {"warmup_steps": 0, "decay_steps": 4000, "cycles": 4}),
    },
    "bins": {
        "inputs": {
            "features": (
                spec.PiecewiseLinear("carat", (0.25, 0.5, 1.0, 5.0)),
                spec.PiecewiseLinear("depth", tuple(range(21)), True),
            )
        },
        "model": spec.Component("LinearRegressor"),
    },
    "encodings": {
        "inputs": {
            "features": (
                spec.TargetMean(
                    spec.Vocabulary("city", ("oslo", "rome")),
                    10.0,
                    2,
                    (3.0, 2.0, 0.0, 4.0, 1.0, 1.0),
                    (1.0, 0.0, 0.0, 1.0, 2.0, 0.0, 2.0, 1.0, 1.0, 1.0, 0.0, 0.0),
                    2,
                    11,
                    2,
                ),
                spec.TargetMean(
                    spec.HashBucket("street", 20), 10.0, 1, (1.0,) * 105, (0.5,) * 105, 5, 105, scaled=False
                ),
                spec.LogCount(spec.Vocabulary("city", ("oslo", "rome")), (7.0, 3.0, 1.0)),
                spec.GroupMean(
                    spec.Vocabulary("city", ("oslo", "rome")),
                    "age",
                    True,
                    (7.0, 3.0, 1.0),
                    (38.0, 40.5, 20.0),
                    5.25,
                ),
                spec.Periodic("age", 38.58, 13.64, 16),
                spec.Embedding(spec.NGrams("street", 3, 4096), 32, "mean"),
            )
        },
        "model": spec.Component("DNNRegressor", {"hidden_units": (10,), "activation": "relu"}),
    },
    "lists": {
        "inputs": {
            "features": (
                spec.OneHot(spec.ListOf(spec.CategoryId("shelf", 10))),
                spec.Embedding(spec.ListOf(spec.Vocabulary("tags", tuple(range(21))), "|"), 8, "mean"),
                spec.Embedding(spec.HashBucket("city", 9), 4, "sum", "normal"),
                *(
                    spec.Embedding(spec.Vocabulary(name, tuple(range(21))), 4, table=1)
                    for name in ("start", "goal")
                ),
                spec.Embedding(spec.ListOf(spec.HashBucket("words", 1000), " ", ":"), 8),
                spec.Embedding(
                    spec.Concat((spec.DatePart("seen", "hour"), spec.Vocabulary("city", tuple(range(22))))), 4
                ),
            )
        },
        "model": spec.Component("DNNRegressor", {"hidden_units": (10,), "activation": "relu"}),
    },
    "wide_deep": {
        "inputs": {
            "wide": (
                spec.OneHot(spec.Vocabulary("city", tuple(range(21)))),
                spec.OneHot(spec.Cross(("city", "team"), 1000)),
            ),
            "deep": (
                spec.Standardize("age", 38.58, 13.64),
                spec.Embedding(spec.Vocabulary("city", tuple(range(21))), 4),
            ),
        },
        "label": CLASSES,
        "model": spec.Component("DNNLinearCombinedClassifier", {"hidden_units": (100, 50), "dropout": 0.1}),
        "loss": spec.Component("cross_entropy"),
        "metrics": ("accuracy",),
    },
    "deepfm": {
        "inputs": {
            "features": (
                spec.Standardize("age", 38.58, 13.64),
                spec.Embedding(spec.Vocabulary("city", ("oslo", "rome")), 8),
                spec.Embedding(spec.HashBucket("flat", 3600), 8),
            ),
        },
        "label": TWO,
        "model": spec.Component("DeepFMClassifier", {"hidden_units": (100, 50), "embedding_dim": 8}),
        "loss": spec.Component("cross_entropy"),
        "metrics": ("auc",),
    },
    "deepfm_regressor": {
        "inputs": {"features": (spec.Embedding(spec.Vocabulary("city", ("oslo", "rome")), 8),)},
        "model": spec.Component("DeepFMRegressor", {"hidden_units": (100, 50), "embedding_dim": 8}),
    },
    "own": {
        "model": spec.Component(
            "nets.Model",
            {
                "units": ((16, 8), (0.5, ("a",), None)),
                "activation": "own",
                "members": "all",
                "kind": "x'); import os #",
            },
        ),
        "own": spec.Own("nets", "Model", "0" * 64, ("in_features", "out_features")),
    },
    "own_arrays": {
        "model": spec.Component("zoo.wide"),
        "own": spec.Own("zoo.wide", "build", "0" * 64, ("features",)),
        "label": TWO,
        "loss": spec.Component("cross_entropy"),
        "metrics": ("auc",),
    },
    "own_zoo": {
        "model": spec.Component("zoo.net"),
        "own": spec.Own(
            "zoo.net",
            "custom_model",
            "0" * 64,
            ("outputs",),
            ("loss", "optimizer", "eval_metrics_fn", "callbacks"),
        ),
        "loss": spec.Component("zoo.net.loss"),
        "optimizer": spec.Component("zoo.net.optimizer"),
        "metrics": (),
    },
    "several": {
        "label": spec.SeveralLabels((spec.RegressionLabel("cost", 10.0, 2.5), TWO, CLASSES)),
        "model": spec.Component("DNNRegressor", {"hidden_units": (10,), "activation": "relu"}),
        "loss": spec.Component("weighted_sum", {"weights": (1.0, 0.5, 2.0)}),
        "metrics": ("cost.rmse", "left.auc", "kind.top_k_accuracy@2"),
    },
    "own_several": {
        "model": spec.Component("nets.Heads"),
        "own": spec.Own("nets", "Heads", "0" * 64, ("in_features",)),
        "label": spec.SeveralLabels((spec.RegressionLabel("cost", 10.0, 2.5), TWO)),
        "loss": spec.Component("weighted_sum", {"weights": (1.0, 1.0)}),
        "metrics": ("cost.rmse", "left.auc"),
    },
    "huber_regressor": {
        "loss": spec.Component("huber", {"delta": 1.5}),
        "model": spec.Component("LinearRegressor"),
    },
}
TREES = {
    "boosted_classifier": {
        "label": CLASSES,
        "model": spec.Component(
            "BoostedTreesClassifier", {"max_depth": 5, "num_leaves": 20, "subsample": 0.8}
        ),
        "loss": spec.Component("cross_entropy", {"class_weights": (1.0, 2.0, 1.5)}),
        "metrics": ("accuracy", "log_loss"),
    },
    "boosted_regressor": {
        "model": spec.Component("BoostedTreesRegressor"),
        "loss": spec.Component("huber", {"delta": 1.5}),
        "schedule": spec.Component("cosine", {"warmup_steps": 10, "decay_steps": 90, "end": 0.1}),
        "weights": spec.Weights("often", 2.5),
        "words": tuple(range(21)),
    },
    "boosted_ranker": {
        "label": spec.RankingLabel("relevance", "query"),
        "model": spec.Component("BoostedTreesRanker", {"truncation_level": 20}),
        "loss": spec.Component("lambdarank"),
        "metrics": ("ndcg@10", "map"),
    },
}


@pytest.mark.parametrize("framework", spec.TREES)
@pytest.mark.parametrize("name", TREES)
def test_a_program_of_trees_names_the_parameters_of_its_library(
    name: str, framework: spec.job.Framework, golden: Callable[[str, bytes], None]
) -> None:
    wanted = {"words": ("engineering", "finance", "sales"), **TREES[name]}
    inputs: tuple[spec.Feature, ...] = (
        spec.Raw("age"),
        spec.Codes(spec.Vocabulary("department", wanted.pop("words"))),  # type: ignore[arg-type]
        spec.Raw("hired", "month"),
        spec.Codes(spec.Bucket("height", (1.5, 1.8))),
    )
    rate = spec.Component("boosting", {"learning_rate": 0.1})
    files = generate(job(framework, inputs={"features": inputs}, optimizer=rate, **wanted)).files  # type: ignore[arg-type]
    golden(f"programs/{name}_{framework}.py", files["model.py"])


@pytest.mark.variants(30)
@pytest.mark.parametrize("framework", ["keras", "torch"])
@pytest.mark.parametrize("name", JOBS)
def test_a_program_is_what_a_person_would_write(
    name: str, framework: spec.job.Framework, golden: Callable[[str, bytes], None]
) -> None:
    files = generate(job(framework, **JOBS[name])).files  # type: ignore[arg-type]
    golden(f"programs/{name}_{framework}.py", files["model.py"])


def test_the_centre_of_a_label_stands_in_the_program() -> None:
    label = spec.RegressionLabel("arrived", 0.5, 20.0, 1_700_000_000.0)
    program = generate(job(label=label)).files["model.py"].decode()
    assert 'LABEL = fc.label("arrived", mean=0.5, std=20.0, centre=1700000000.0)' in program


def test_a_program_of_clusters_measures_distances(golden: Callable[[str, bytes], None]) -> None:
    clusters = job(
        "torch",
        label=spec.ClusterLabel(5),
        model=spec.Component("KMeans"),
        inputs={"features": (spec.Standardize("age", 38.58, 13.64), spec.Standardize("income", 6e4, 1.5e4))},
        loss=spec.Component("squared_distance"),
        metrics=("inertia", "silhouette"),
    )
    golden("programs/kmeans_torch.py", generate(clusters).files["model.py"])
    params = {
        "pretrain_dims": (10, 3),
        "run_pretrain": True,
        "pretrain_epochs": 30,
        "pretrain_lr": 1.0,
        "kmeans_init": 20,
    }
    deep = msgspec.structs.replace(
        clusters,
        model=spec.Component("DeepEmbeddedClustering", params),
        loss=spec.Component("cluster_divergence"),
    )
    golden("programs/deep_clusters_torch.py", generate(deep).files["model.py"])


def test_a_program_of_anomalies_trains_the_threshold(golden: Callable[[str, bytes], None]) -> None:
    anomalies = job(
        "torch",
        label=spec.AnomalyLabel(),
        model=spec.Component("IsolationForest", {"n_trees": 100, "sample_rows": 256, "contamination": 0.05}),
        inputs={"features": (spec.Standardize("age", 38.58, 13.64), spec.Standardize("income", 6e4, 1.5e4))},
        loss=spec.Component("threshold_quantile", {"contamination": 0.05}),
        metrics=("anomaly_rate",),
    )
    golden("programs/isolation_forest_torch.py", generate(anomalies).files["model.py"])


def test_a_program_of_a_forecast(golden: Callable[[str, bytes], None]) -> None:
    own = (
        spec.Raw("hired", "weekday"),
        spec.Raw("age"),
        spec.Codes(spec.Vocabulary("department", ("a", "b"))),
    )
    forecast = msgspec.structs.replace(
        job("lightgbm"),
        model=spec.Component("Forecast"),
        inputs={
            "features": (spec.Raw("forecast.step"), spec.Raw("forecast.lag_1"), *own),
            "scale": (spec.Raw("forecast.level"), spec.Raw("forecast.scale")),
        },
        label=spec.ForecastLabel("income", (0.1, 0.9)),
        optimizer=spec.Component("boosting", {"learning_rate": 0.1}),
        loss=spec.Component("mean_absolute_error"),
        metrics=("mase", "seasonal_naive_mase"),
        forecast=spec.Forecast("hired", ("department",), horizon=14, season=7, step="1 day", lags=1),
    )
    golden("programs/forecast_lightgbm.py", generate(forecast).files["model.py"])


def test_a_program_of_a_network_that_forecasts(golden: Callable[[str, bytes], None]) -> None:
    scale = tuple(spec.Raw(f"forecast.{name}") for name in ("level", "scale", "step"))
    known = (
        spec.Standardize("age", mean=38.58, std=13.64),
        spec.OneHot(spec.Vocabulary("department", ("a", "b"))),
    )
    network = msgspec.structs.replace(
        job("torch"),
        model=spec.Component("TiDE", {"hidden_size": 64, "layers": 1, "dropout": 0.1}),
        inputs={
            "past": tuple(map(spec.Raw, ("forecast.lag_1", "forecast.lag_2"))),
            "known": known,
            "scale": scale,
        },
        label=spec.ForecastLabel("income", (0.1, 0.9)),
        loss=spec.Component("mean_absolute_error"),
        metrics=("mase", "seasonal_naive_mase"),
        forecast=spec.Forecast("hired", ("department",), horizon=14, season=7, step="1 day", lags=2),
    )

    golden("programs/tide_torch.py", generate(network).files["model.py"])


def searched() -> spec.JobSpec:
    """An ensemble of a network and of trees, each with another number of models."""
    network = job("torch", model=spec.Component("LinearRegressor"), words=tuple(range(21)))
    trees = job(
        "lightgbm",
        inputs={"features": (spec.Raw("age"), spec.Codes(spec.Vocabulary("department", ("a", "b"))))},
        model=spec.Component("BoostedTreesRegressor"),
        optimizer=spec.Component("boosting", {"learning_rate": 0.1}),
    )
    return msgspec.structs.replace(
        network,
        framework=spec.ENSEMBLE,
        model=spec.Component("Ensemble"),
        inputs={},
        weights=spec.Weights("often", 2.5),
        members=(spec.Member(0.75, network), spec.Member(0.25, trees, 5)),
    )


def test_a_program_of_an_ensemble_holds_its_members_programs(golden: Callable[[str, bytes], None]) -> None:
    ensemble = searched()
    files = generate(ensemble).files
    golden("programs/searched_ensemble.py", files["model.py"])
    for number, member in enumerate(ensemble.members):
        own = {f"members/{number}/{name}": content for name, content in generate(member.spec).files.items()}
        assert own.items() <= files.items()
    assert spec.from_json(files["job.json"]) == ensemble
    assert {name.split("/")[0] for name in files} == {
        "model.py",
        "model.py.sha256",
        "reader.py",
        "job.json",
        "members",
    }
    assert "members/0/vocabulary/f1.json" in files


def test_a_program_of_a_search_holds_its_candidates_programs(golden: Callable[[str, bytes], None]) -> None:
    ensemble = searched()
    candidates = tuple(spec.Candidate(each.spec.model.name, each.spec) for each in ensemble.members)
    search = msgspec.structs.replace(ensemble, members=(), search=spec.Search(candidates, "rmse"))
    files = generate(search).files
    golden("programs/search.py", files["model.py"])
    assert files["candidates/1/model.py"] == generate(candidates[1].spec).files["model.py"]
    assert not any(name.startswith("members") for name in files)
    assert search.columns == ensemble.columns


def test_a_reader_names_its_source_and_query(golden: Callable[[str, bytes], None]) -> None:
    golden("programs/reader_duckdb.py", generate(job()).files["reader.py"])


@pytest.mark.parametrize(
    ("database", "source"),
    [
        ("mysql", "mysql://reader@db.example:3306/shop"),
        ("postgresql", "postgresql://reader@db.example:5432/shop"),
        ("maxcompute", "maxcompute://LTAIreader@service.example/api?curr_project=shop"),
    ],
)
def test_a_reader_of_a_server_drops_its_rows_and_names_no_password(
    golden: Callable[[str, bytes], None], database: str, source: str
) -> None:
    query = msgspec.structs.replace(job().query, source=source)
    golden(
        f"programs/reader_{database}.py",
        generate(msgspec.structs.replace(job(), query=query)).files["reader.py"],
    )


def test_a_reader_names_the_query_of_held_out_rows(golden: Callable[[str, bytes], None]) -> None:
    query = spec.Query("SELECT * FROM new_employees", "duckdb", "duckdb:///demo.duckdb")
    golden(
        "programs/reader_held_out.py",
        generate(msgspec.structs.replace(job(), validation=query)).files["reader.py"],
    )


def test_a_reader_splits_the_rows_as_its_job_does(golden: Callable[[str, bytes], None]) -> None:
    split = spec.Split("group", 'depart"ment', 0.2, since="A")
    golden(
        "programs/reader_split.py",
        generate(msgspec.structs.replace(job(), split=split)).files["reader.py"],
    )


@pytest.mark.parametrize("framework", ["keras", "torch"])
def test_the_same_spec_gives_the_same_bytes(framework: spec.job.Framework) -> None:
    first, second = generate(job(framework)), generate(spec.from_json(spec.to_json(job(framework))))
    assert first.files == second.files


def test_a_long_vocabulary_is_stored_beside_the_program() -> None:
    words = tuple(f"word {i}" for i in range(21))
    files = generate(job(words=words)).files
    assert json.loads(files["vocabulary/f1.json"]) == list(words)
    assert b"word 1" not in files["model.py"]


@pytest.mark.parametrize("framework", ["keras", "torch"])
@pytest.mark.parametrize("loss", ["mean_squared_error", "mean_absolute_error", "huber", "log_cosh"])
def test_every_regression_loss_makes_a_program(framework: spec.job.Framework, loss: str) -> None:
    params: dict[str, spec.job.Parameter] = {"delta": 1.0} if loss == "huber" else {}
    ast.parse(generate(job(framework, loss=spec.Component(loss, params))).files["model.py"])


def shape(source: bytes) -> str:
    """The syntax tree without the values of its literals."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant):
            node.value = type(node.value).__name__
            node.kind = None
    return ast.dump(tree)


def with_names(
    framework: spec.job.Framework, names: tuple[str, str, str, str], words: tuple[str, str, str]
) -> bytes:
    select = "SELECT " + ", ".join(names) + " FROM t"
    return generate(job(framework, names=names, words=words, select=select)).files["model.py"]


SHAPES = {
    framework: shape(with_names(framework, ("a", "b", "c", "d"), ("x", "y", "z")))
    for framework in ("keras", "torch")
}


@pytest.mark.variants(16)
@pytest.mark.parametrize("framework", ["keras", "torch"])
@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_name_leaves_the_program_its_shape(framework: spec.job.Framework, name: str) -> None:
    source = with_names(framework, (name, name + "1", name + "2", name + "3"), (name, name + "y", name + "z"))
    assert shape(source) == SHAPES[framework]
    assert f'"{name}"' in ast.unparse(ast.parse(source)) or repr(name) in ast.unparse(ast.parse(source))


@pytest.mark.parametrize("framework", ["keras", "torch"])
def test_hostile_names_of_several_labels_leave_the_program_its_shape(framework: spec.job.Framework) -> None:
    def source(names: tuple[str, str]) -> bytes:
        label = spec.SeveralLabels(
            (spec.RegressionLabel(names[0]), spec.ClassLabel(names[1], ("a", "b", "c")))
        )
        loss = spec.Component("weighted_sum", {"weights": (1.0, 2.0)})
        measured = (f"{names[0]}.rmse", f"{names[1]}.accuracy")
        return generate(job(framework, label=label, loss=loss, metrics=measured)).files["model.py"]

    usual = shape(source(("a", "b")))
    for name in HOSTILE:
        assert shape(source((name, name + "1"))) == usual


TEXTS = texts(max_size=40)


@given(names=st.tuples(*[TEXTS] * 4), words=st.tuples(*[TEXTS] * 3))
def test_no_name_changes_the_shape_of_a_program(
    names: tuple[str, str, str, str], words: tuple[str, str, str]
) -> None:
    for framework in ("keras", "torch"):
        source = with_names(framework, names, words)  # type: ignore[arg-type]
        assert shape(source) == SHAPES[framework]
        found = [node.value for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Constant)]
        assert set(names) | set(words) <= {value for value in found if isinstance(value, str)}


@pytest.mark.soak
def test_thousands_of_drawn_names_leave_the_shape(repository: object) -> None:
    import random

    draw = random.Random(20)  # noqa: S311 - a fixed drawing, not a secret
    alphabet = "ab \"'\\\n\r\t{}%#();.,/`$\x00\x0c\u2028\u202eäß漢😀"
    drawn = ["".join(draw.choices(alphabet, k=draw.randint(0, 12))) for _ in range(3_000)]
    for i in range(0, len(drawn) - 7, 7):
        one = drawn[i : i + 7]
        framework: spec.job.Framework = "keras" if i % 2 else "torch"
        source = with_names(framework, tuple(one[:4]), tuple(one[4:]))  # type: ignore[arg-type]
        assert shape(source) == SHAPES[framework]


def test_a_number_keeps_every_digit() -> None:
    feature = spec.Standardize("x", 0.1 + 0.2, 1e-300)
    source = generate(msgspec.structs.replace(job(), inputs={"features": (feature,)})).files["model.py"]
    assert b"mean=0.30000000000000004, std=1e-300" in source
