"""Which statements can run on Kubernetes."""

from __future__ import annotations

from pathlib import Path

import pytest

from edl.errors import SemanticError
from sqlflow_edl.backends.kubernetes.settings import read_configuration
from sqlflow_edl.backends.kubernetes.statements import settings_of
from sqlflow_edl.syntax import parse

TRAIN = "SELECT a FROM t TO TRAIN m WITH kubernetes.worker_gpu = 1 LABEL a INTO x"
PREDICT = "SELECT a FROM t TO PREDICT USING x"
EXPLAIN = "SELECT a FROM t TO EXPLAIN m"
EVALUATE = "SELECT a, b FROM t TO EVALUATE m"
SOURCE = "mysql://reader@db.example/shop"

TEMPLATE = Path(__file__).parent / "fixtures" / "pods.yaml"


@pytest.mark.parametrize(
    ("statement", "source", "models", "message"),
    [
        (TRAIN, "duckdb:///here.duckdb", SOURCE, "cannot read duckdb, whose rows are only on this machine"),
        (TRAIN, "mysql://reader@127.0.0.1:3306/shop", SOURCE, "at 127.0.0.1, which is the pod itself"),
        (TRAIN, "mysql://reader@[::1]/shop", SOURCE, r"at \[::1\], which is the pod itself"),
        (TRAIN, "mysql://reader@localhost/shop", SOURCE, "at localhost, which is the pod itself"),
        (TRAIN, "postgresql:///shop", SOURCE, "at its socket, which is the pod itself"),
        (PREDICT, SOURCE, SOURCE, "predicts into a table of the data source"),
        (f"{EXPLAIN} WITH explain.level = rows", SOURCE, SOURCE, "explains into a table of the data source"),
        (f"{EVALUATE} WITH evaluate.report = roc_curve", SOURCE, SOURCE, "evaluates into a table"),
        (TRAIN, SOURCE, "memory://models", "in the memory of this process"),
        (TRAIN, SOURCE, "file:///home/ann/models", "cannot reach the models in /home/ann/models"),
    ],
)
def test_what_pods_do_not_reach_is_refused_with_its_place(
    statement: str, source: str, models: str, message: str
) -> None:
    [parsed] = parse(statement)
    with pytest.raises(SemanticError, match=message) as refused:
        settings_of(parsed, read_configuration(), source, models)
    assert refused.value.span == parsed.span


@pytest.mark.parametrize("text", [EXPLAIN, EVALUATE, f"{EVALUATE} WITH evaluate.report = figures"])
def test_figures_need_no_table(text: str) -> None:
    [parsed] = parse(text)
    assert settings_of(parsed, read_configuration(), SOURCE, SOURCE)


@pytest.mark.parametrize("models", [SOURCE, "s3://bucket/models"])
def test_what_pods_reach_runs_with_the_settings_of_the_statement(models: str) -> None:
    [parsed] = parse(TRAIN)
    assert settings_of(parsed, read_configuration(), SOURCE, models).whole("worker_gpu") == 1


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("env", "EDL_JOB=x", "sets EDL_JOB"),
        (
            "env",
            "SQLFLOW_MODEL_PACKAGES=subprocess",
            "sets SQLFLOW_MODEL_PACKAGES, which a statement may not",
        ),
        ("volume_code", "src", "kubernetes.volume_code needs a volume"),
        ("labels", "kueue.x-k8s.io/queue-name=q", "which would keep the job from starting"),
        ("queue", "Team A", "kubernetes.queue is 'Team A', which no object of Kubernetes can be named"),
        ("queue_priority", "high", "kubernetes.queue_priority needs a queue"),
        ("pod_template", "/nowhere.yaml", "cannot read the pod template"),
        ("checkpoints", "s3://key:hidden@bucket/x", "holds a password or a key: s3://key@bucket/x"),
    ],
)
def test_wrong_settings_are_told_before_anything_is_done(name: str, value: str, message: str) -> None:
    [parsed] = parse(TRAIN)
    with pytest.raises(SemanticError, match=message):
        settings_of(parsed, read_configuration(pairs=[(name, value)]), SOURCE, SOURCE)


def test_what_a_pod_template_brings_along_is_reached() -> None:
    [parsed] = parse(TRAIN)
    place = read_configuration(pairs=[("pod_template", str(TEMPLATE))])
    assert settings_of(parsed, place, SOURCE, "file:///models")
    assert settings_of(parsed, place, "mysql://reader@127.0.0.1/shop", SOURCE)
