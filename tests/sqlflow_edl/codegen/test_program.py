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
from tests.sqlflow_edl.codegen.jobs import JOBS, TREES, job
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
    params = {"init_column": "first", "initial_centres": ((0.5, -1.0, 1.0), (2.25, 0.0, 0.0))}
    given = msgspec.structs.replace(clusters, model=spec.Component("KMeans", params))
    assert b"initial=INITIAL" in generate(given).files["model.py"]
    golden("programs/kmeans_given_torch.py", generate(given).files["model.py"])
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


def test_each_feature_has_its_reason_beside_it_or_above_it() -> None:
    def reason(feature: spec.Feature) -> str:
        return "by type: a number" if isinstance(feature, spec.Standardize) else "a text of people, " * 5

    lines = generate(job(), reason).files["model.py"].decode().splitlines()
    [number] = [line for line in lines if "fc.standardize" in line]
    assert number.endswith(",  # by type: a number")
    [place] = [place for place, line in enumerate(lines) if "fc.hash_bucket" in line]
    assert lines[place - 1] == f"    # {('a text of people, ' * 5).strip()}"


@pytest.mark.parametrize("reason", HOSTILE)
def test_a_hostile_reason_leaves_the_program_its_shape(reason: str) -> None:
    source = generate(job("torch"), lambda _: reason).files["model.py"]
    assert shape(source) == shape(generate(job("torch")).files["model.py"])


def test_a_number_keeps_every_digit() -> None:
    feature = spec.Standardize("x", 0.1 + 0.2, 1e-300)
    source = generate(msgspec.structs.replace(job(), inputs={"features": (feature,)})).files["model.py"]
    assert b"mean=0.30000000000000004, std=1e-300" in source
