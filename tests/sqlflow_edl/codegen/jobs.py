"""JobSpecs of the golden programs: of networks, and of trees."""

from __future__ import annotations

from edl import spec


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
    "newton": {
        "inputs": {"features": (spec.Standardize("age", 38.58, 13.64),)},
        "label": spec.ClassLabel("kind", ("a", "b", "c")),
        "model": spec.Component("LinearClassifier"),
        "optimizer": spec.Component("newton"),
        "loss": spec.Component("cross_entropy"),
        "metrics": ("accuracy",),
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
