"""Submission of a job to the cluster: create the Job suspended, create all that its pod needs, resume the Job.

With a queue, Kueue resumes the Job: it gets the queue's label last, and is suspended until Kueue admits it.

Every step is idempotent. A failure on the way deletes the Job, and with it all that it owns.
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import msgspec

from edl.build import present_build
from edl.cluster.kubernetes import names
from edl.cluster.kubernetes.api_calls import APIRefusedError, Calls
from edl.cluster.kubernetes.connect import connect, default_namespace
from edl.cluster.kubernetes.deployment import Deployment, write_deployment
from edl.data.server_url import parse_server
from edl.errors import ClusterError, SpecError
from edl.files import replace_file
from edl.jobs.cluster_folder import SETTINGS, ClusterFolder
from edl.jobs.job_folder import STARTING, JobFolder
from edl.jobs.script_run import FILE as SCRIPT
from edl.models.pending import FILE as INTENT
from edl.spec import JobSpec
from edl.spec.runnable import RunnableSpec
from edl.tls import issue
from sqlflow_edl.analysis.settings.values import Setting
from sqlflow_edl.backends.kubernetes import permissions
from sqlflow_edl.backends.kubernetes.certificates import encrypts
from sqlflow_edl.backends.kubernetes.manifests.objects import JobManifests, Submission
from sqlflow_edl.backends.kubernetes.manifests.rendering import Object
from sqlflow_edl.backends.kubernetes.permissions import NETWORKING, RBAC, Right
from sqlflow_edl.backends.kubernetes.settings import KubernetesSettings, read_configuration

AT_ONCE = 8  # objects that are created at the same time
ROLE_SECS, ROLE_POLL = 10.0, 0.1  # limit until the API server finds a new Role; poll interval
PARTING = 10.0  # seconds to retry the clean-up

# kind -> group and resource
_PLURALS = {
    "Job": ("batch", "jobs"),
    "Service": ("", "services"),
    "ConfigMap": ("", "configmaps"),
    "Secret": ("", "secrets"),
    "ServiceAccount": ("", "serviceaccounts"),
    "Role": (RBAC, "roles"),
    "RoleBinding": (RBAC, "rolebindings"),
    "NetworkPolicy": (NETWORKING, "networkpolicies"),
}


def check(settings: KubernetesSettings) -> None:
    """Check access. Raises ClusterError if the cluster or namespace is missing, or jobs are not allowed there."""
    with connect(settings.text("context")) as api:
        permissions.check(
            Calls(api),
            namespace_of(settings),
            with_account=bool(settings.text("service_account")),
            with_policy=settings.true("network_policy"),
        )


def deploy(
    job: JobFolder, spec: JobSpec | RunnableSpec, settings: KubernetesSettings, state: bytes = b""
) -> None:
    """Start the job in the folder; see `apply`. The folder keeps the settings, with which it can be started again."""
    before = job.status().place
    job.update(place=STARTING)  # from now on the job may exist in the cluster
    try:
        deployment = apply(job, spec, settings, state)
    except BaseException:
        job.update(place=before)
        raise
    replace_file(ClusterFolder(job.path).path / SETTINGS, msgspec.json.encode(settings.values))
    job.update(place=f"kubernetes {deployment.namespace}/{deployment.name}")


def read_settings(job: JobFolder) -> KubernetesSettings:
    """Return the settings with which the job was submitted. Those that this version adds have their defaults."""
    try:
        values = msgspec.json.decode(
            (ClusterFolder(job.path).path / SETTINGS).read_bytes(), type=dict[str, Setting]
        )
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise SpecError(f"the settings of job {job.id} cannot be read: {error}") from None
    return KubernetesSettings({**read_configuration().settings().values, **values})


def apply(
    job: JobFolder, spec: JobSpec | RunnableSpec, settings: KubernetesSettings, state: bytes = b""
) -> Deployment:
    """Start the job from the program and pinned rows in its folder; record its deployment in the folder.

    state: of an earlier master, from which the job goes on.

    Raises ClusterError if it does not start, and then leaves nothing of it in the cluster; SemanticError if a setting
    is wrong.
    """
    objects = JobManifests(replace(submission(job, spec, settings), state=state))
    with connect(settings.text("context")) as api:
        return _Application(Calls(api), objects, job).run()


def submission(job: JobFolder, spec: JobSpec | RunnableSpec, settings: KubernetesSettings) -> Submission:
    """Return the submission of the job folder, with the secrets of its data sources."""
    folder = ClusterFolder(job.path)
    folder.make_token()
    queries = (spec.query, *([spec.validation] if spec.validation else []))
    # Modules travel with jobs of the edl command: the queries of these jobs name files.
    script, travels = job.path / SCRIPT, job.zoo.is_dir()
    urls = () if travels else (parse_server(query.source).with_password() for query in queries)
    return Submission(
        job=job.id,
        spec=spec,
        settings=settings,
        namespace=namespace_of(settings),
        files=_files(job),
        token=folder.token(),
        build=present_build(),
        script=script.read_bytes() if travels and script.exists() else b"",
        secrets={str(url): url.password for url in urls if url.password},
        certificates=issue() if encrypts(spec, settings) else {},
    )


def namespace_of(settings: KubernetesSettings) -> str:
    """Return the namespace of the settings, else of the context."""
    return settings.text("namespace") or default_namespace(settings.text("context"))


def _files(job: JobFolder) -> dict[str, bytes]:
    """Return the files that are sent with the job: its program, its pinned rows, and the intent for its results; of a
    module of a model zoo also its source, and the weights that it uses.
    """
    folders = (job.program, job.rows, job.zoo)
    paths = [path for folder in folders for path in sorted(folder.rglob("*")) if path.is_file()]
    single = [job.path / INTENT, *((job.model, job.weights) if job.zoo.is_dir() else ())]
    paths += [path for path in single if path.is_file()]
    return {path.relative_to(job.path).as_posix(): path.read_bytes() for path in paths}


class _Application:
    """Submission of one job."""

    def __init__(self, calls: Calls, objects: JobManifests, job: JobFolder) -> None:
        self._calls = calls
        self._objects = objects
        self._job = job

    def run(self) -> Deployment:
        try:
            # From now on other clients can delete the job.
            write_deployment(self._job.path, self._objects.deployment(""))
            uid = self._create(self._objects.job())
            deployment = self._objects.deployment(uid)
            write_deployment(self._job.path, deployment)
            with ThreadPoolExecutor(AT_ONCE) as pool:
                list(pool.map(lambda obj: self._create(obj, uid), self._objects.owned_objects(uid)))
            self._resume()
        except BaseException as error:
            self._withdraw(error)
            raise
        return deployment

    def _create(self, obj: Object, owner: str = "") -> str:
        """Create the object unless it exists, and return its uid."""
        group, resource = _PLURALS[obj["kind"]]
        try:
            answer = self._post(obj)
        except APIRefusedError as refused:
            if refused.reason != "AlreadyExists":
                raise self._explain_error(refused, Right("create", group, resource)) from None
            return self._existing(obj, owner)
        return msgspec.json.decode(answer, type=_Existing).metadata.uid

    def _post(self, obj: Object) -> bytes:
        """Create an object; retry a RoleBinding while the API server does not yet find its new Role."""
        end = time.monotonic() + ROLE_SECS
        while True:
            try:
                return self._calls.ask("POST", self._path(obj), obj, {"fieldValidation": "Strict"})
            except APIRefusedError as refused:
                is_early = obj["kind"] == "RoleBinding" and refused.status == 404
                if not is_early or time.monotonic() > end:
                    raise
            time.sleep(ROLE_POLL)

    def _existing(self, obj: Object, owner: str) -> str:
        """Return the uid of the existing object if it belongs to the same job."""
        metadata = self._read(obj)
        # The name belongs to our Job, and permission to create Secrets may exclude reading them.
        if metadata is None and owner:
            return ""
        if (
            metadata is None
            or metadata.labels.get(names.JOB_ID) != self._job.id
            or not metadata.is_owned_by(owner)
        ):
            name, namespace = obj["metadata"]["name"], obj["metadata"]["namespace"]
            raise ClusterError(
                f"the namespace {namespace} already has a {obj['kind']} {name} that is not of this job",
                hint=f"run the statement again, which gives its job a new name, or remove that {obj['kind']}",
            )
        return metadata.uid

    def _read(self, obj: Object) -> _Metadata | None:
        """Return the metadata of the existing object, or None if we may not read it."""
        group, resource = _PLURALS[obj["kind"]]
        try:
            answer = self._calls.ask("GET", f"{self._path(obj)}/{obj['metadata']['name']}")
        except APIRefusedError as refused:
            if refused.status == 403:
                return None
            raise self._explain_error(refused, Right("get", group, resource)) from None
        return msgspec.json.decode(answer, type=_Existing).metadata

    def _resume(self) -> None:
        queue = self._objects.queue
        change: Object = {"metadata": {"labels": queue}} if queue else {"spec": {"suspend": False}}
        try:
            self._calls.ask("PATCH", self._job_path, change)
        except APIRefusedError as refused:
            raise self._explain_error(refused, Right("patch", "batch", "jobs")) from None

    def _withdraw(self, error: BaseException) -> None:
        """Delete the Job if it is ours, and with it what it owns; if that fails, add a hint to the error."""
        path = self._job_path
        try:
            metadata = msgspec.json.decode(
                self._calls.ask("GET", path, patience=PARTING), type=_Existing
            ).metadata
            if metadata.labels.get(names.JOB_ID) == self._job.id:
                options = {"propagationPolicy": "Background", "preconditions": {"uid": metadata.uid}}
                self._calls.ask("DELETE", path, options, patience=PARTING)
        except ClusterError as failed:
            gone = isinstance(failed, APIRefusedError) and failed.status == 404
            if isinstance(error, ClusterError) and not gone:
                namespace = self._objects.namespace
                error.hint = (
                    f"kubectl delete job {self._objects.name} --namespace {namespace} removes what is left"
                )

    def _explain_error(self, refused: APIRefusedError, right: Right) -> ClusterError:
        return permissions.explain_refusal(refused, right, self._objects.namespace)

    @property
    def _job_path(self) -> str:
        return f"/apis/batch/v1/namespaces/{self._objects.namespace}/jobs/{self._objects.name}"

    @staticmethod
    def _path(obj: Object) -> str:
        group, resource = _PLURALS[obj["kind"]]
        api = f"/apis/{group}/v1" if group else "/api/v1"
        return f"{api}/namespaces/{obj['metadata']['namespace']}/{resource}"


class _Owner(msgspec.Struct):
    uid: str = ""


class _Metadata(msgspec.Struct, rename="camel"):
    uid: str
    labels: dict[str, str] = {}
    owner_references: list[_Owner] = []

    def is_owned_by(self, uid: str) -> bool:
        return not uid or any(owner.uid == uid for owner in self.owner_references)


class _Existing(msgspec.Struct):
    metadata: _Metadata
