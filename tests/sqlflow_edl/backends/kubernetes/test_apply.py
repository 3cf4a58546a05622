"""A job comes into the cluster as a whole, or nothing of it does."""

from __future__ import annotations

import base64
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from edl.cluster.kubernetes.api_calls import Calls
from edl.cluster.kubernetes.deployment import read_deployment
from edl.data.server_url import SECRETS
from edl.errors import ClusterError
from edl.jobs import job_folder as job_folders
from edl.jobs.job_folder import STARTING, JobFolder
from sqlflow_edl.backends.find import summaries
from sqlflow_edl.backends.kubernetes import apply as applying
from sqlflow_edl.backends.kubernetes import permissions
from sqlflow_edl.backends.kubernetes.apply import apply, check
from sqlflow_edl.backends.kubernetes.handle import NOT_STARTED
from sqlflow_edl.backends.kubernetes.settings import KubernetesSettings, read_configuration
from sqlflow_edl.codegen import generate
from tests.kubernetes.faults import Fault
from tests.kubernetes.process import Cluster
from tests.sqlflow_edl.backends.kubernetes import jobs
from tests.sqlflow_edl.backends.kubernetes.test_objects import everything

KINDS = {
    "services": "/api/v1/namespaces/{}/services",
    "configmaps": "/api/v1/namespaces/{}/configmaps",
    "secrets": "/api/v1/namespaces/{}/secrets",
    "serviceaccounts": "/api/v1/namespaces/{}/serviceaccounts",
    "roles": "/apis/rbac.authorization.k8s.io/v1/namespaces/{}/roles",
    "rolebindings": "/apis/rbac.authorization.k8s.io/v1/namespaces/{}/rolebindings",
    "jobs": "/apis/batch/v1/namespaces/{}/jobs",
}
JOBS = KINDS["jobs"]


@pytest.fixture
def job(monkeypatch: pytest.MonkeyPatch) -> JobFolder:
    """A folder with a program, and a password for its source in the environment."""
    made = job_folders.create("train", "SELECT 1")
    generate(jobs.job_spec()).write(made.program)
    (made.rows / "pinned.json").write_text("{}")
    monkeypatch.setenv(SECRETS, msgspec.json.encode({jobs.SOURCE: "pa55"}).decode())
    return made


def settings(*written: tuple[str, str]) -> KubernetesSettings:
    """Settings of a job with a master that finds no node, so that nothing of it runs."""
    return read_configuration(
        pairs=[("master_cpu", "900"), ("master_cpu_limit", "none"), *written]
    ).settings()


def there(kubernetes: Cluster, namespace: str) -> dict[str, list[str]]:
    """The names of the objects, by kind, those aside that every namespace has."""
    found = {}
    for kind, path in KINDS.items():
        items = kubernetes.ask("GET", path.format(namespace))["items"]
        names = [each["metadata"]["name"] for each in items]
        found[kind] = [name for name in names if name.startswith("sqlflow")]
    return {kind: names for kind, names in found.items() if names}


def eventually(condition: Callable[[], bool], seconds: float = 10.0) -> bool:
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.02)
    return condition()


def test_the_job_is_there_before_all_others_and_begins_after_them(
    kubernetes: Cluster, namespace: str, job: JobFolder
) -> None:
    kubernetes.requests()
    deployment = apply(job, jobs.job_spec(), settings())
    asked = [line for line in kubernetes.requests() if namespace in line]
    assert asked[0].startswith(f"POST {JOBS.format(namespace)}")
    assert asked[-1] == f"PATCH {JOBS.format(namespace)}/{deployment.name}"
    found = there(kubernetes, namespace)
    assert set(found) == set(KINDS)
    assert len(found["configmaps"]) == 4
    made = kubernetes.ask("GET", f"{JOBS.format(namespace)}/{deployment.name}")
    assert (made["spec"]["suspend"], made["metadata"]["uid"]) == (False, deployment.uid)
    assert (deployment.namespace, deployment.job) == (namespace, job.id)
    assert read_deployment(job.path) == deployment


def test_secrets_come_from_where_the_source_has_them(
    kubernetes: Cluster, namespace: str, job: JobFolder
) -> None:
    deployment = apply(job, jobs.job_spec(), settings())
    data = kubernetes.ask("GET", f"{KINDS['secrets'].format(namespace)}/{deployment.name}-secrets")["data"]
    secrets = msgspec.json.decode(base64.b64decode(data["secrets.json"]))
    assert secrets == {jobs.SOURCE: "pa55"}
    assert base64.b64decode(data["token"]).decode() == (job.path / "cluster" / "token").read_text()
    maps = kubernetes.ask("GET", KINDS["configmaps"].format(namespace))["items"]
    assert base64.b64decode(data["token"]).decode() not in str(maps)


@pytest.mark.soak
def test_with_every_setting_the_objects_are_taken_too(
    kubernetes: Cluster, namespace: str, job: JobFolder
) -> None:
    classes = "/apis/scheduling.k8s.io/v1/priorityclasses"
    for name in ("training", "training-low"):
        kubernetes.ask("POST", classes, {"metadata": {"name": name}, "value": 1})
    values = {**everything().values, "namespace": namespace, "context": None, "master_cpu": "900"}
    apply(job, jobs.with_workers(4), KubernetesSettings(values))
    assert set(there(kubernetes, namespace)) == set(KINDS)


def test_with_a_queue_only_kueue_resumes_the_job_and_when_all_else_is_there(
    kubernetes: Cluster, namespace: str, job: JobFolder
) -> None:
    kubernetes.queue(namespace, "q", cpu="1000")
    kubernetes.requests()
    name = apply(job, jobs.with_workers(2), settings(("queue", "q"), ("queue_priority", "high"))).name
    asked = [line for line in kubernetes.requests() if namespace in line]
    assert asked[-1] == f"PATCH {JOBS.format(namespace)}/{name}"

    def made() -> Any:
        return kubernetes.ask("GET", f"{JOBS.format(namespace)}/{name}")

    assert eventually(lambda: not made()["spec"]["suspend"])
    labels = made()["metadata"]["labels"]
    assert (labels["kueue.x-k8s.io/queue-name"], labels["kueue.x-k8s.io/priority-class"]) == ("q", "high")
    assert not [name for name in made()["spec"]["template"]["metadata"]["labels"] if "kueue" in name]


@pytest.mark.soak
def test_answers_that_are_lost_are_asked_for_again(
    kubernetes: Cluster, namespace: str, job: JobFolder
) -> None:
    kubernetes.go_wrong(
        *(Fault("lose", f"POST .*/{kind}") for kind in KINDS), Fault("lose", "PATCH .*/jobs/")
    )
    apply(job, jobs.job_spec(), settings())
    found = {kind: len(names) for kind, names in there(kubernetes, namespace).items()}
    assert found == {**dict.fromkeys(KINDS, 1), "configmaps": 4}


@pytest.mark.soak
def test_a_job_that_is_applied_again_is_the_same(kubernetes: Cluster, namespace: str, job: JobFolder) -> None:
    first = apply(job, jobs.job_spec(), settings())
    assert apply(job, jobs.job_spec(), settings()) == first


CLIENT = """
import sys
from pathlib import Path
from edl.jobs.job_folder import STARTING, JobFolder
from sqlflow_edl.backends.kubernetes.apply import apply
from tests.sqlflow_edl.backends.kubernetes import jobs
from tests.sqlflow_edl.backends.kubernetes.test_apply import settings
apply(JobFolder(Path(sys.argv[1])), jobs.job_spec(), settings())
"""


@pytest.mark.soak
def test_a_job_is_removed_by_who_looks_if_its_client_is_killed_before_it_hears_of_it(
    kubernetes: Cluster, namespace: str, job: JobFolder
) -> None:
    kubernetes.go_wrong(Fault("lose", "POST .*/jobs", times=1000))
    client = subprocess.Popen([sys.executable, "-c", CLIENT, str(job.path)])
    job.owned_by(client.pid)
    job.update(place=STARTING)
    try:
        assert eventually(lambda: bool(there(kubernetes, namespace)), 60.0)
        assert [each.status.state for each in summaries() if each.status] == ["running"]
    finally:
        client.kill()
        client.wait()
    [found] = summaries()
    assert found.status is not None
    assert (found.status.state, found.status.error) == ("died", NOT_STARTED)
    assert eventually(lambda: not there(kubernetes, namespace))


@pytest.mark.variants(2)
@pytest.mark.parametrize("kind", ["jobs", "configmaps", "rolebindings", "patch"])
def test_what_fails_on_the_way_leaves_nothing(
    kubernetes: Cluster, namespace: str, job: JobFolder, kind: str
) -> None:
    request = "PATCH .*/jobs/" if kind == "patch" else f"POST .*/{kind}"
    kubernetes.go_wrong(Fault("status", request, status=422))
    with pytest.raises(ClusterError, match="the API server refuses to"):
        apply(job, jobs.job_spec(), settings())
    assert eventually(lambda: not there(kubernetes, namespace)), there(kubernetes, namespace)


def test_what_cannot_be_taken_away_is_named(
    kubernetes: Cluster, namespace: str, job: JobFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(applying, "PARTING", 0.1)
    kubernetes.go_wrong(
        Fault("status", "POST .*/secrets", status=422), Fault("status", "DELETE", status=500, times=100)
    )
    with pytest.raises(ClusterError) as failed:
        apply(job, jobs.job_spec(), settings())
    [name] = there(kubernetes, namespace)["jobs"]
    assert failed.value.hint == f"kubectl delete job {name} --namespace {namespace} removes what is left"


@pytest.mark.parametrize("kind", ["jobs", "configmaps"])
def test_what_has_the_name_and_is_not_of_this_job_stays(
    kubernetes: Cluster, namespace: str, job: JobFolder, kind: str
) -> None:
    name = f"sqlflow-edl-incomes-{job.id[-6:]}" + ("-state" if kind == "configmaps" else "")
    other: dict[str, Any] = {"metadata": {"name": name}}
    if kind == "jobs":
        containers = [{"name": "c", "image": "i"}]
        other["spec"] = {
            "suspend": True,
            "template": {"spec": {"restartPolicy": "Never", "containers": containers}},
        }
    kubernetes.ask("POST", KINDS[kind].format(namespace), other)
    with pytest.raises(
        ClusterError, match=f"already has a {'Job' if kind == 'jobs' else 'ConfigMap'} {name} that"
    ):
        apply(job, jobs.job_spec(), settings())
    assert eventually(lambda: there(kubernetes, namespace) == {kind: [name]})


# Who may what ----------------------------------------------------------------------------------------------


@pytest.fixture
def account(
    kubernetes: Cluster, namespace: str, kubeconfig: Callable[..., Path]
) -> Iterator[Callable[..., None]]:
    """account(rules): from then on, the user is one that has them, and no others."""

    def make(rules: list[dict[str, list[str]]]) -> None:
        named = {"metadata": {"name": "user"}}
        kubernetes.ask("POST", KINDS["serviceaccounts"].format(namespace), named)
        kubernetes.ask("POST", KINDS["roles"].format(namespace), {**named, "rules": rules})
        subject = {"kind": "ServiceAccount", "name": "user", "namespace": namespace}
        role = {"apiGroup": permissions.RBAC, "kind": "Role", "name": "user"}
        binding = {**named, "roleRef": role, "subjects": [subject]}
        kubernetes.ask("POST", KINDS["rolebindings"].format(namespace), binding)
        path = f"{KINDS['serviceaccounts'].format(namespace)}/user/token"
        token = kubernetes.ask("POST", path, {"spec": {}})["status"]["token"]
        kubeconfig(kubernetes.url, token, namespace)

    yield make


def rules(*needed: permissions.Right) -> list[dict[str, list[str]]]:
    return [
        {"apiGroups": [group], "resources": [resource], "verbs": [verb]} for verb, group, resource in needed
    ]


def test_what_a_user_lacks_is_told_together_before_anything_is_made(
    kubernetes: Cluster, namespace: str, account: Callable[..., None]
) -> None:
    account(rules(*(right for right in permissions.NEEDED if right.resource not in ("secrets", "pods/log"))))
    with pytest.raises(ClusterError) as refused:
        check(settings(("service_account", "given")))
    assert refused.value.message == f"you may not create secrets; get pods/log in the namespace {namespace}"
    assert "sqlflow help kubernetes" in (refused.value.hint or "")
    with pytest.raises(
        ClusterError, match=r"create serviceaccounts; create roles\.rbac\.authorization\.k8s\.io"
    ):
        check(settings())


def test_who_lacks_only_the_rights_to_make_an_account_is_told_to_name_one(
    namespace: str, account: Callable[..., None]
) -> None:
    account(rules(*permissions.NEEDED))
    with pytest.raises(ClusterError) as refused:
        check(settings())
    assert refused.value.message.startswith("you may not create serviceaccounts; create roles.rbac")
    assert "set kubernetes.service_account to one" in str(refused.value.hint)


def test_a_user_with_the_rights_that_are_needed_runs_a_job(
    kubernetes: Cluster, namespace: str, job: JobFolder, account: Callable[..., None]
) -> None:
    account(rules(*permissions.NEEDED))
    kubernetes.go_wrong(*(Fault("lose", f"POST .*/{kind}") for kind in KINDS))
    given = settings(("service_account", "user"))
    check(given)
    apply(job, jobs.job_spec(), given)
    assert set(there(kubernetes, namespace)) == {"jobs", "services", "configmaps", "secrets"}


def test_an_account_of_the_jobs_own_takes_the_rights_that_it_gets(
    namespace: str, account: Callable[..., None]
) -> None:
    account(rules(*permissions.NEEDED, *permissions.WITHOUT_ACCOUNT))
    lacking = "that you do not have: create, delete, watch pods; update configmaps"
    with pytest.raises(ClusterError, match=f"you may not grant the job's master permissions {lacking}"):
        check(settings())


@pytest.mark.parametrize("more", [permissions.OF_MASTER, permissions.ESCALATING])
def test_who_has_the_masters_rights_or_may_give_any_needs_no_account(
    namespace: str, account: Callable[..., None], more: tuple[permissions.Right, ...]
) -> None:
    account(rules(*permissions.NEEDED, *permissions.WITHOUT_ACCOUNT, *more))
    check(settings())


def test_a_role_that_the_server_has_not_heard_of_yet_is_waited_for(
    kubernetes: Cluster, namespace: str, job: JobFolder, account: Callable[..., None]
) -> None:
    account(rules(*permissions.NEEDED, *permissions.WITHOUT_ACCOUNT, *permissions.OF_MASTER))
    kubernetes.go_wrong(
        Fault("delay", "POST .*/roles", seconds=0.3), Fault("status", "POST .*/rolebindings", status=404)
    )
    apply(job, jobs.job_spec(), settings())
    assert len(there(kubernetes, namespace)["rolebindings"]) == 1


def test_a_right_that_lacks_on_the_way_is_named(
    kubernetes: Cluster, namespace: str, job: JobFolder, account: Callable[..., None]
) -> None:
    account(rules(*(right for right in permissions.NEEDED if right.resource != "secrets")))
    with pytest.raises(ClusterError, match=f"you may not create secrets in the namespace {namespace}"):
        apply(job, jobs.job_spec(), settings(("service_account", "user")))
    assert eventually(lambda: not there(kubernetes, namespace)), there(kubernetes, namespace)


def test_a_namespace_that_is_not_there_is_said_to_be(namespace: str) -> None:
    with pytest.raises(ClusterError, match="the cluster has no namespace nowhere") as refused:
        check(settings(("namespace", "nowhere")))
    hint = refused.value.hint or ""
    assert "--namespace" in hint or hint.startswith("known: ")  # these, where they are few


def test_a_cluster_that_does_not_answer_is_said_to(
    kubeconfig: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(permissions, "PATIENCE", 0.1)
    kubeconfig("http://127.0.0.1:9", "token")
    with pytest.raises(ClusterError, match="does not answer"):
        check(settings())


def test_without_a_namespace_of_the_context_it_is_the_default_one(
    kubernetes: Cluster, kubeconfig: Callable[..., Path]
) -> None:
    kubeconfig(kubernetes.url, kubernetes.administrator)
    assert applying.namespace_of(settings()) == "default"
    assert applying.namespace_of(settings(("namespace", "n"))) == "n"


def test_a_namespace_that_does_not_exist_is_told_with_the_nearest_name(kubernetes: Cluster) -> None:
    kubernetes.go_wrong()  # no more: the test before may have asked for it
    kubernetes.ask("POST", "/api/v1/namespaces", {"metadata": {"name": "marketing"}})
    with pytest.raises(ClusterError, match="the cluster has no namespace marketting") as refused:
        permissions.check(Calls(kubernetes.client()), "marketting", with_account=False)
    assert refused.value.hint == "did you mean marketing?"
    path = "/api/v1/namespaces/marketing"
    kubernetes.ask("DELETE", path)


def test_someone_who_may_not_read_namespaces_is_told_that_there_may_be_none(
    kubernetes: Cluster, namespace: str, kubeconfig: Callable[..., Path]
) -> None:
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts"
    kubernetes.ask("POST", path, {"metadata": {"name": "guest"}})
    token = kubernetes.ask("POST", f"{path}/guest/token", {"spec": {}})["status"]["token"]
    kubeconfig(kubernetes.url, token, "marketing")
    with pytest.raises(ClusterError, match="or there is no such namespace") as refused:
        permissions.check(Calls(kubernetes.client(token)), "marketting", with_account=True)
    assert (refused.value.hint or "").endswith("did you mean marketing?")
    with pytest.raises(ClusterError, match="in the namespace marketing") as refused:
        permissions.check(Calls(kubernetes.client(token)), "marketing", with_account=True)
    assert "did you mean" not in (refused.value.hint or "")
