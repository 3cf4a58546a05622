"""`--on kubernetes`: its options, and what `--dry-run` prints."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from edl import tls
from sqlflow_edl.backends.kubernetes.settings import read_configuration
from sqlflow_edl.cli.main import main
from sqlflow_edl.cli.program.manifests import HIDDEN, manifests
from sqlflow_edl.session.session import Session
from tests.mariadb import PASSWORD, Server
from tests.sqlflow_edl.backends.kubernetes.place import TEMPLATE

PROGRAM = """\
SELECT 1 AS one;
SELECT * FROM numbers TO TRAIN LinearRegressor
WITH kubernetes.worker_cpu = 2, train.num_workers = 2 LABEL b INTO lines;
SELECT * FROM numbers TO EVALUATE nothing;
"""


@pytest.fixture
def source(mariadb: Server) -> str:
    database = mariadb.database()
    rows = ", ".join(f"({number}, {number}.5)" for number in range(40))
    mariadb.run(
        f"CREATE TABLE {database}.numbers (a INT, b DOUBLE)", f"INSERT INTO {database}.numbers VALUES {rows}"
    )
    return mariadb.url(database)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--namespace", "n"], "--namespace applies to jobs on Kubernetes; add --on kubernetes"),
        (["--set", "image=x"], "--set applies to jobs on Kubernetes"),
        (["--wait-limit", "9m"], "--wait-limit applies to jobs on Kubernetes"),
        (["--on", "kubernetes", "--wait-limit", "soon"], "'soon' is not a time"),
        (["--on", "kubernetes", "--quota", "q"], "--quota applies to jobs on this machine"),
        (["--on", "kubernetes:"], "expected kubernetes or kubernetes:PROFILE"),
        (["--on", "mars"], "expected kubernetes or kubernetes:PROFILE"),
    ],
)
def test_options_that_do_not_go_together_are_refused(
    options: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        code = main(["run", "--source", "duckdb:", "-e", "SELECT 1", *options])
    except SystemExit as left:
        code = int(left.code or 0)
    assert code == 2
    assert message in capsys.readouterr().err


def test_a_wrong_setting_is_told_before_anything_runs(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "k.toml"
    file.write_text("[gpu]\nworker_gp = 1")
    arguments = ["--on", "kubernetes:gpu", "--kubernetes-config", str(file)]
    assert main(["run", "--source", "duckdb:", "-e", "SELECT 1", *arguments]) == 1
    told = capsys.readouterr()
    assert "k.toml, [gpu]: unknown setting worker_gp" in told.err
    assert "did you mean worker_gpu?" in told.err
    assert not told.out


def test_a_dry_run_prints_the_objects_of_each_job_and_nothing_else_on_stdout(
    source: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", "/nowhere")
    arguments = [
        "--on",
        "kubernetes",
        "--namespace",
        "team",
        "--image",
        "mine:1",
        "--set=worker_memory=2Gi",
        "--set=queue=q",
        "--set=network_policy=true",
        f"--set=pod_template={TEMPLATE}",
    ]
    again = PROGRAM.replace("INTO lines", "INTO more")
    assert main(["run", "--source", source, "--dry-run", "-e", PROGRAM, "-e", again, *arguments]) == 1
    told = capsys.readouterr()
    found = list(yaml.safe_load_all(told.out))
    jobs = [each["metadata"] for each in found if each["kind"] == "Job"]
    assert [each["name"] for each in jobs] == ["sqlflow-edl-lines-000000", "sqlflow-edl-more-000000"]
    assert {each["metadata"]["namespace"] for each in found} == {"team"}
    assert {each["labels"]["kueue.x-k8s.io/queue-name"] for each in jobs} == {"q"}
    assert sum(each["kind"] == "NetworkPolicy" for each in found) == 4
    [worker, _] = (
        text for each in found for key, text in each.get("data", {}).items() if "kubernetes" in key
    )
    assert '"image": "mine:1"' in worker
    assert '"cpu": "2"' in worker
    assert '"memory": "2Gi"' in worker
    [secret, _] = (each["stringData"] for each in found if each["kind"] == "Secret")
    assert secret["token"] == HIDDEN
    assert PASSWORD not in told.out
    assert "there is no model nothing" in told.err


def test_a_statement_without_a_job_has_no_objects(source: str) -> None:
    with Session(source) as session:
        for statement in session.parse("SELECT 1; SHOW MODELS"):
            assert manifests(session.compiler, statement, read_configuration()) == ""


def test_certificates_are_hidden_and_workers_that_would_talk_in_plain_are_refused_at_their_place(
    source: str, capsys: pytest.CaptureFixture[str]
) -> None:
    train = PROGRAM.split(";")[1].replace("worker_cpu = 2", "tls = TRUE")
    arguments = ["run", "--source", source, "--dry-run", "--on", "kubernetes"]
    arguments += [f"--set=pod_template={TEMPLATE}", "-e"]
    assert main([*arguments, train.replace("WITH ", "WITH train.num_ps = 1, ")]) == 0
    [secret] = [
        each["stringData"] for each in yaml.safe_load_all(capsys.readouterr().out) if each["kind"] == "Secret"
    ]
    assert {secret[name] for name in tls.FILES} == {HIDDEN}
    assert main([*arguments, train]) == 1
    told = capsys.readouterr()
    assert not told.out
    assert "kubernetes.tls cannot encrypt the sockets of gloo and XGBoost" in told.err
    assert "^^^^^^^^^^^^^^^^^^^^^" in told.err
