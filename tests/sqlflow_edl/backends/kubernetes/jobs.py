"""Submissions of jobs for tests, made from JobSpecs without any data source."""

from __future__ import annotations

import dataclasses
from typing import Any

import msgspec

from edl import spec
from edl.build import Build
from edl.cluster.kubernetes.deployment import Deployment
from edl.spec.runnable import RunnableSpec
from edl.spec.strategy import complete_settings
from sqlflow_edl.backends.kubernetes.manifests.objects import JobManifests, Submission
from sqlflow_edl.backends.kubernetes.settings import KubernetesSettings, read_configuration
from sqlflow_edl.codegen import generate

JOB = "20261122-130258-027012-9458e4"
UID = "11111111-2222-3333-4444-555555555555"
SOURCE = "mysql://reader@db.example/shop"
BUILD = Build("0.1.0", "0123456789ab", 1)  # one for all commits


def job_spec(**changes: Any) -> spec.JobSpec:
    """Of a small model; its statement trains it."""
    select = "SELECT age, department, income FROM employee"
    made = spec.JobSpec(
        kind="train",
        statement=f"{select}\nTO TRAIN DNNRegressor LABEL income INTO incomes",
        query=spec.Query(select, "mysql", SOURCE),
        rows=spec.Rows(pinned=True, total=6400, training=5760, validation=640),
        framework="keras",
        model=spec.Component("DNNRegressor", {"hidden_units": (100, 50), "activation": "relu"}),
        inputs={
            "features": (
                spec.Standardize("age", 38.58, 13.64),
                spec.OneHot(spec.Vocabulary("department", ("sales", "finance"))),
            )
        },
        label=spec.RegressionLabel("income", 60000.0, 15000.0),
        optimizer=spec.Component("adam", {"learning_rate": 0.001}),
        loss=spec.Component("mean_squared_error"),
        metrics=("rmse",),
        output=spec.Output("incomes"),
    )
    return msgspec.structs.replace(made, **changes)


def with_workers(workers: int, servers: int = 0) -> spec.JobSpec:
    return job_spec(cluster=complete_settings(spec.Cluster(workers=workers, parameter_servers=servers)))


def prediction() -> spec.JobSpec:
    return job_spec(
        kind="predict",
        statement="SELECT * FROM candidates TO PREDICT guesses.income USING incomes",
        trained_model="incomes@1",
        output=spec.Output("guesses", "income", ("age", "department")),
        cluster=spec.Cluster(workers=2),
    )


def program() -> RunnableSpec:
    select = "SELECT age, income FROM employee"
    return RunnableSpec(
        statement=f"{select} TO RUN psi.py CMD '--group=half' INTO drift",
        query=spec.Query(select, "mysql", SOURCE),
        file="psi.py",
        sent=True,
        arguments=("--group=half",),
        tables=("drift",),
    )


def of_program() -> list[dict[str, Any]]:
    """All objects of its job."""
    files = {
        "program/psi.py": b"print('psi')\n",
        "rows/pinned.json": b'{"file": "", "table": "sqlflow_pinned_1"}',
    }
    settings = read_configuration().settings()
    secrets = {SOURCE: "pa55"}
    made = JobManifests(Submission(JOB, program(), settings, "team", files, "the token", BUILD, secrets))
    return [made.job(), *made.owned_objects(UID)]


def submission(
    job: spec.JobSpec | None = None, settings: KubernetesSettings | None = None, **changes: Any
) -> Submission:
    job = job or job_spec()
    files = {f"program/{name}": content for name, content in generate(job).files.items()}
    files["rows/pinned.json"] = b'{"file": "", "table": "sqlflow_pinned_1"}'
    settings, secrets = settings or read_configuration().settings(), {SOURCE: "pa55"}
    made = Submission(JOB, job, settings, "team", files, "the token", BUILD, secrets)
    return dataclasses.replace(made, **changes)


def objects(
    job: spec.JobSpec | None = None, settings: KubernetesSettings | None = None
) -> list[dict[str, Any]]:
    """All of them, as they are in the cluster."""
    made = JobManifests(submission(job, settings))
    return [made.job(), *made.owned_objects(UID)]


def deployment(found: list[dict[str, Any]]) -> Deployment:
    """What their master reads of them."""
    [data] = [each["data"] for each in found if "cluster.kubernetes.json" in each.get("data", {})]
    return msgspec.json.decode(data["cluster.kubernetes.json"], type=Deployment)
