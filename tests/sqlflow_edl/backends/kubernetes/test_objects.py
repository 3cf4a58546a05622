"""The objects of a job: golden files, the published schemas, rights, and values that stay values."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from kubernetes_validate import utils

from edl import exit_codes, tls
from edl.cluster.kubernetes import names
from edl.errors import SemanticError, SpecError
from edl.frameworks.device import AUTO
from edl.installation import VERSION
from edl.jobs.cluster_folder import RunSpec
from edl.spec import Cluster, JobSpec
from edl.spec.strategy import complete_settings
from sqlflow_edl.backends.kubernetes.manifests.objects import JobManifests
from sqlflow_edl.backends.kubernetes.manifests.rendering import format_yaml
from sqlflow_edl.backends.kubernetes.settings import KubernetesSettings, read_configuration
from tests.sqlflow_edl.backends.kubernetes import jobs

VERSIONS = [version for version in dict.fromkeys(utils.all_versions()) if int(version.split(".")[1]) >= 30]
ENDS = VERSIONS[0], VERSIONS[-1]  # between them a kind of object is neither new nor gone
FIXTURES = Path(__file__).parent / "fixtures"


def everything() -> KubernetesSettings:
    """A profile with every setting set."""
    return read_configuration("everything", FIXTURES / "kubernetes.toml").settings()


def encrypted(job: JobSpec) -> list[dict[str, Any]]:
    """The objects of a job with certificates."""
    settings = read_configuration(pairs=[("tls", "true")]).settings()
    made = JobManifests(
        jobs.submission(job, settings, certificates={name: f"the {name}" for name in tls.FILES})
    )
    return [made.job(), *made.owned_objects(jobs.UID)]


CASES: dict[str, Callable[[], list[dict[str, Any]]]] = {
    "train_local": lambda: jobs.objects(jobs.with_workers(1)),
    "train_ring": lambda: jobs.objects(jobs.with_workers(4)),
    "train_servers": lambda: jobs.objects(jobs.with_workers(4, servers=2)),
    "train_encrypted": lambda: encrypted(jobs.with_workers(4, servers=2)),
    "predict": lambda: jobs.objects(jobs.prediction()),
    "run": jobs.of_program,
    "everything": lambda: jobs.objects(jobs.with_workers(4), everything()),
}


@functools.cache
def rendered(case: str) -> list[dict[str, Any]]:
    return CASES[case]()


@pytest.fixture(scope="module", autouse=True)
def schemas_are_read_once() -> Any:
    """Each is a megabyte, and the package reads it for every object."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(utils, "schema_contents", functools.cache(utils.schema_contents))
        yield


@pytest.mark.parametrize("case", CASES)
def test_objects_equal_the_golden_file(case: str, golden: Callable[[str, bytes], None]) -> None:
    golden(f"kubernetes/{case}.yaml", format_yaml(rendered(case)).encode())


@pytest.mark.parametrize(
    "version",
    [each if each in ENDS else pytest.param(each, marks=pytest.mark.soak) for each in VERSIONS],
)
def test_every_object_is_one_of_the_published_schema(version: str) -> None:
    checked = []
    for case in CASES:
        found = rendered(case)
        deployed = jobs.deployment(found)
        pods = [
            {**pod, "metadata": {**pod["metadata"], "name": "p"}}
            for pod in (deployed.worker, deployed.ps)
            if pod
        ]
        for each in (*found, *pods):
            utils.validate(each, version, strict=True)
            checked.append(each["kind"])
    assert set(checked) == {
        *("Job", "Pod", "Service", "ConfigMap", "Secret"),
        *("ServiceAccount", "Role", "RoleBinding", "NetworkPolicy"),
    }


def test_the_schemas_refuse_a_field_that_is_not_there() -> None:
    job = jobs.objects()[0]
    job["spec"]["template"]["spec"]["containers"][0]["imag"] = "x"
    with pytest.raises(utils.ValidationError, match="imag"):
        utils.validate(job, VERSIONS[-1], strict=True)


def by_kind(found: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {each["kind"]: each for each in found}


def test_everything_is_named_after_the_job_and_goes_with_it() -> None:
    job, *others = jobs.objects()
    name = job["metadata"]["name"]
    assert job["spec"]["suspend"] is True
    assert "ownerReferences" not in job["metadata"]
    for each in (job, *others):
        assert each["metadata"]["name"] == name or each["metadata"]["name"].startswith(f"{name}-")
        assert each["metadata"]["labels"][names.JOB_ID] == jobs.JOB
    for each in others:
        [owner] = each["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["name"], owner["uid"], owner["controller"]) == (
            "Job",
            name,
            jobs.UID,
            False,
        )


def test_the_master_may_do_what_it_needs_and_nothing_else() -> None:
    found = by_kind(jobs.objects())
    name = found["Job"]["metadata"]["name"]
    pods, maps, own = found["Role"]["rules"]
    assert (pods["resources"], sorted(pods["verbs"])) == (
        ["pods"],
        ["create", "delete", "list", "watch"],
    )
    assert (maps["resources"], maps["verbs"]) == (["configmaps"], ["get", "update"])
    assert maps["resourceNames"] == [f"{name}-state", f"{name}-status"]
    assert (own["resources"], own["verbs"], own["resourceNames"]) == (["jobs"], ["get"], [name])


def test_a_given_service_account_is_used_and_none_is_made() -> None:
    settings = read_configuration(pairs=[("service_account", "trainer")]).settings()
    found = jobs.objects(settings=settings)
    assert not {"ServiceAccount", "Role", "RoleBinding"} & set(by_kind(found))
    assert found[0]["spec"]["template"]["spec"]["serviceAccountName"] == "trainer"


def test_only_the_master_has_a_token_and_no_container_has_a_privilege() -> None:
    found = jobs.objects()
    deployed = jobs.deployment(found)
    for pod, token in ((found[0]["spec"]["template"], True), (deployed.worker, False), (deployed.ps, False)):
        assert pod["spec"]["automountServiceAccountToken"] is token
        assert pod["spec"]["securityContext"]["runAsNonRoot"] is True
        [container] = pod["spec"]["containers"]
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }


def test_pods_wait_as_long_for_a_peer_as_the_client_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EDL_UNREACHABLE_SECS", "5")
    found = jobs.objects()
    for pod in (found[0]["spec"]["template"], jobs.deployment(found).worker, jobs.deployment(found).ps):
        [container] = pod["spec"]["containers"]
        assert {"name": "EDL_UNREACHABLE_SECS", "value": "5"} in container["env"]
    monkeypatch.setenv("EDL_UNREACHABLE_SECS", "soon")
    with pytest.raises(SpecError, match="EDL_UNREACHABLE_SECS is 'soon'"):
        jobs.objects()


def test_secrets_stand_in_the_secret_alone() -> None:
    found = jobs.objects()
    secret = by_kind(found)["Secret"]
    assert secret["stringData"] == {
        "token": "the token",
        "secrets.json": '{"mysql://reader@db.example/shop":"pa55"}',
    }
    rest = format_yaml(each for each in found if each is not secret)
    assert "the token" not in rest
    assert "pa55" not in rest


def test_exit_codes_of_the_master_say_what_follows() -> None:
    rules = jobs.objects()[0]["spec"]["podFailurePolicy"]["rules"]
    told = [(rule["action"], rule.get("onExitCodes", {}).get("values")) for rule in rules]
    assert told == [
        ("FailJob", [exit_codes.USAGE, exit_codes.JOB_FAILED]),
        ("Ignore", [exit_codes.PREEMPTED]),
        ("Ignore", None),
    ]


HOSTILE = [
    'a"b',
    "a'b",
    "a: b",
    "- x",
    "a\nb\n---\nkind: Pod",
    "{{ 7 * 7 }}",
    "\u2028\x85\U0001f600\x07",
    "#",
    "~",
    "1e3",
]


@pytest.mark.variants(4)
@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_values_stay_values(text: str) -> None:
    def pairs(name: str) -> tuple[str, str]:
        return name, f"key={text.replace(',', ' ')}"

    settings = read_configuration(pairs=[pairs("env"), pairs("annotations"), ("image", text)]).settings()
    job = jobs.job_spec(statement=text)
    found = jobs.objects(job, settings)
    assert [each["kind"] for each in found] == [each["kind"] for each in jobs.objects()]
    [container] = found[0]["spec"]["template"]["spec"]["containers"]
    assert {"name": "key", "value": text} in container["env"]
    assert container["image"] == text
    assert found[0]["metadata"]["annotations"]["sqlflow-edl/statement"] == text
    assert found[0]["metadata"]["annotations"]["key"] == text
    printed = format_yaml(found)
    assert list(yaml.safe_load_all(printed)) == found


def test_workers_get_as_many_threads_as_they_may_use_processors() -> None:
    settings = read_configuration(pairs=[("worker_cpu", "1500m")]).settings()
    found = jobs.objects(settings=settings)
    [spec] = [
        each["data"]["cluster.spec.json"] for each in found if "cluster.spec.json" in each.get("data", {})
    ]
    assert msgspec.json.decode(spec, type=RunSpec).threads == 2


def test_pods_allow_the_packages_that_the_client_allows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SQLFLOW_MODEL_PACKAGES", "torchvision.models, my_company")
    found = jobs.objects()
    [master] = found[0]["spec"]["template"]["spec"]["containers"]
    [worker] = jobs.deployment(found).worker["spec"]["containers"]
    packages = {"name": "SQLFLOW_MODEL_PACKAGES", "value": "torchvision.models,my_company"}
    assert packages in master["env"]
    assert packages in worker["env"]


def test_the_masters_disk_bounds_the_checkpoints_that_it_keeps() -> None:
    found = jobs.objects(settings=read_configuration(pairs=[("master_disk", "10G")]).settings())
    [master] = found[0]["spec"]["template"]["spec"]["containers"]
    assert master["resources"]["limits"]["ephemeral-storage"] == "10G"
    assert {"name": "EDL_CHECKPOINTS_BYTES", "value": "8000000000"} in master["env"]
    [worker] = jobs.deployment(found).worker["spec"]["containers"]
    assert "EDL_CHECKPOINTS_BYTES" not in {each["name"] for each in worker["env"]}


def test_a_limit_below_what_is_asked_for_is_refused() -> None:
    settings = read_configuration(pairs=[("worker_memory", "4Gi"), ("worker_memory_limit", "2Gi")]).settings()
    with pytest.raises(SemanticError, match="worker_memory_limit = 2Gi is less than the request of 4Gi"):
        JobManifests(jobs.submission(settings=settings))


@pytest.mark.parametrize("written", [[], [("volume", "claim"), ("checkpoints", "s3://bucket/cuts")]])
def test_updates_are_logged_on_a_volume_only(written: list[tuple[str, str]]) -> None:
    cluster = msgspec.structs.replace(jobs.with_workers(2, servers=2).cluster, durable_updates="process")
    job = jobs.job_spec(cluster=cluster)
    assert jobs.objects(job, read_configuration(pairs=[("volume", "claim")]).settings())
    with pytest.raises(SemanticError, match="durable_updates needs a volume, on which parameter servers log"):
        jobs.objects(job, read_configuration(pairs=written).settings())


def test_certificates_stand_in_the_secret_alone_and_every_pod_uses_them() -> None:
    found = encrypted(jobs.prediction())
    secret = by_kind(found)["Secret"]
    assert {name: secret["stringData"][name] for name in tls.FILES} == {
        name: f"the {name}" for name in tls.FILES
    }
    assert "the tls.key" not in format_yaml(each for each in found if each is not secret)
    deployed = jobs.deployment(found)
    for pod in (found[0]["spec"]["template"], deployed.worker, deployed.ps):
        [container] = pod["spec"]["containers"]
        [folder] = [each["value"] for each in container["env"] if each["name"] == tls.VARIABLE]
        [mounted] = [each for each in container["volumeMounts"] if each["mountPath"] == folder]
        assert (mounted["name"], mounted["readOnly"]) == ("secrets", True)


@pytest.mark.parametrize(
    ("cluster", "refused"),
    [
        (Cluster(workers=2), True),
        (Cluster(workers=1, strategy="allreduce"), True),  # more workers may join it
        (Cluster(workers=1), False),
        (Cluster(workers=2, parameter_servers=1), False),
        (Cluster(workers=2, strategy="sync"), False),
    ],
)
def test_a_job_is_refused_if_its_workers_would_talk_in_plain(cluster: Cluster, refused: bool) -> None:
    job = jobs.job_spec(cluster=complete_settings(cluster))
    if refused:
        with pytest.raises(
            SemanticError, match=r"kubernetes\.tls cannot encrypt the sockets of gloo and XGBoost"
        ) as error:
            encrypted(job)
        assert "train.num_ps" in str(error.value.hint)
    else:
        assert encrypted(job)


def test_workers_with_a_gpu_have_an_image_for_it_and_compute_on_nothing_else() -> None:
    """An image without CUDA fails there, rather than keep a GPU for a job of the CPU."""
    found = jobs.objects(jobs.with_workers(2), read_configuration(pairs=[("worker_gpu", "1")]).settings())
    [master] = found[0]["spec"]["template"]["spec"]["containers"]
    [worker] = jobs.deployment(found).worker["spec"]["containers"]
    assert worker["resources"]["limits"]["nvidia.com/gpu"] == "1"
    assert worker["image"] == master["image"] == f"sqlflow-edl:{VERSION}-gpu"
    asked = {"name": AUTO, "value": "cuda"}
    assert (asked in worker["env"], asked in master["env"]) == (True, False)
    own = read_configuration(pairs=[("worker_gpu", "1"), ("image", "team/models:7")]).settings()
    [worker] = jobs.deployment(jobs.objects(settings=own)).worker["spec"]["containers"]
    assert worker["image"] == "team/models:7"


@pytest.mark.parametrize(
    ("changes", "gpus", "message"),
    [
        ({"device": "cuda"}, "0", "train.device is cuda, and pods see a GPU only if they ask for it"),
        ({"device": "cpu"}, "2", "train.device is cpu, and kubernetes.worker_gpu is 2"),
        ({"framework": "xgboost"}, "1", "trees compute on the CPU, and kubernetes.worker_gpu is 1"),
    ],
)
def test_gpus_of_workers_are_those_that_the_job_computes_on(
    changes: dict[str, Any], gpus: str, message: str
) -> None:
    given = jobs.submission(settings=read_configuration(pairs=[("worker_gpu", gpus)]).settings())
    changed = msgspec.structs.replace(given.spec, **changes)
    with pytest.raises(SemanticError, match=message):
        JobManifests(dataclasses.replace(given, spec=changed))
