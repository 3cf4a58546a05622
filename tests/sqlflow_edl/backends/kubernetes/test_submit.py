"""Statements with jobs that are to run on Kubernetes, and cannot: said before anything is fixed or made."""

from __future__ import annotations

from pathlib import Path

import pytest

from edl.data.source import Pinned, PinnedTable
from edl.errors import ClusterError, SemanticError
from edl.jobs import job_folder
from edl.models.pending import Intent, read_intent, write_intent
from sqlflow_edl.backends.kubernetes import apply, submit
from sqlflow_edl.backends.kubernetes.settings import Configuration, KubernetesSettings
from sqlflow_edl.session.session import Session
from tests.mariadb import Server
from tests.sqlflow_edl.backends.kubernetes.jobs import job_spec
from tests.sqlflow_edl.backends.kubernetes.place import TEMPLATE
from tests.sqlflow_edl.backends.kubernetes.play import Told

LOCAL = Configuration(command={"pod_template": str(TEMPLATE)})
TRAIN = "SELECT 1 AS x, 1 AS y TO TRAIN DNNClassifier LABEL y INTO m"


def test_rows_of_an_embedded_database_are_out_of_reach_for_pods(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/rows.db"
    with (
        Session(url, create=True, place=Configuration()) as session,
        pytest.raises(SemanticError, match="cannot read sqlite") as raised,
    ):
        list(session.run(TRAIN))
    assert "mysql://" in (raised.value.hint or "")
    assert raised.value.span is not None
    assert job_folder.jobs() == []


def test_predictions_need_a_table_to_go_to(mariadb: Server) -> None:
    with (
        Session(mariadb.url(), place=LOCAL) as session,
        pytest.raises(SemanticError, match="the statement names none"),
    ):
        list(session.run("SELECT 1 AS x TO PREDICT USING m"))


def test_without_a_cluster_nothing_is_begun(
    mariadb: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    with (
        Session(mariadb.url(), place=LOCAL) as session,
        pytest.raises(ClusterError, match="no Kubernetes cluster can be reached"),
    ):
        list(session.run(TRAIN))
    assert job_folder.jobs() == []


def test_the_failure_of_a_job_that_did_not_start_is_left_to_who_waits_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_: object) -> None:
        raise ClusterError("the namespace has no room")

    monkeypatch.setattr(apply, "apply", refuse)
    job = job_folder.create("train", TRAIN)
    pinned = Pinned("mysql://db/shop", "SELECT 1", "", 1, (), "", 0, False, table=PinnedTable("rows"))
    write_intent(job.path, Intent("train", "mysql://db/shop", "m"))
    with pytest.raises(ClusterError, match="no room"):
        submit.run(job, job_spec(), pinned, KubernetesSettings({}), Told())
    assert read_intent(job.path) is None
    assert not job.status().place
