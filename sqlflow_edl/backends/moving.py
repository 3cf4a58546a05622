"""Move of a training to another place: this machine, Kubernetes, or another namespace or cluster.

The training is paused, its data source hands the checkpoint over, and it is resumed at the other place, with the same
weights, on the same rows in the same order. Nothing of the first place is removed before the other one has it all, so
a training that could not be moved is still paused where it was.
"""

from __future__ import annotations

import contextlib

import msgspec

from edl.checkpoints import factory
from edl.checkpoints.kept import KeptCheckpoint, keeps_checkpoints
from edl.cluster.kubernetes.api_calls import APIRefusedError
from edl.cluster.kubernetes.deployment import Deployment, read_deployment, write_deployment
from edl.data.pinned import read_pinned
from edl.errors import ClusterError, SemanticError, SpecError, SQLFlowError
from edl.files import replace_file
from edl.jobs.cluster_folder import ClusterFolder, with_surroundings
from edl.jobs.job_folder import JobFolder
from edl.master import resume as resumption
from edl.master.state_store import pack
from edl.models.pending import Intent, destination
from edl.spec import JobSpec, from_json, to_json
from edl.tasks import encoding
from sqlflow_edl.backends import resume
from sqlflow_edl.backends.base import JobHandle
from sqlflow_edl.backends.kubernetes import continuing, submit
from sqlflow_edl.backends.kubernetes.apply import deploy, namespace_of
from sqlflow_edl.backends.kubernetes.remains import has_checkpoint
from sqlflow_edl.backends.kubernetes.settings import Configuration, KubernetesSettings
from sqlflow_edl.backends.submit import make_run_spec
from sqlflow_edl.syntax.ast import Statement
from sqlflow_edl.syntax.parse import read_statements


def move(job: JobHandle, to: Configuration | None) -> str:
    """Move the training, and return a message; it continues when this process ends. to: None for this machine.

    Raises ClusterError if it cannot be moved; it is left as it was, or paused.
    """
    folder = job.folder
    intent, spec = _check_training(folder)
    settings = None if to is None else _settings(folder, spec, intent, to)
    before = _check_place(folder, settings)
    said = _pause(job)
    if settings is None:
        return f"{said}{_start_here(folder, spec, intent)}"
    if before is None:
        return f"{said}{_start_in_pods(folder, spec, intent, settings)}"
    return f"{said}{_start_in_other_pods(folder, spec, before, settings)}"


def _refusal(folder: JobFolder, why: str, hint: str | None = None) -> ClusterError:
    return ClusterError(f"job {folder.id} cannot be moved: {why}", hint=hint)


def _check_training(folder: JobFolder) -> tuple[Intent, JobSpec]:
    """Return where the model goes, and the JobSpec. Raises ClusterError if no other place could continue the job."""
    kind, intent = folder.status().kind, destination(folder.path)
    if kind != "train":
        raise _refusal(folder, f"it is not a training, but of the kind {kind}, and would begin anew")
    if intent is None or not intent.source:
        raise _refusal(folder, "it was not started by a statement")
    spec = from_json((folder.program / "job.json").read_bytes())
    if spec.search is not None:
        raise _refusal(folder, "it is a search, whose trials have no common checkpoint")
    scheme = intent.source.partition(":")[0]
    try:
        pinned = read_pinned(folder.rows)
    except SpecError as error:
        raise _refusal(folder, f"its rows are gone: {error.message}") from None
    if pinned.table is None:
        raise _refusal(
            folder,
            f"its rows are in a file of this machine, which the other place cannot read; their source is {scheme}",
            "train from a database on a server: mysql://…, postgresql://…",
        )
    if not keeps_checkpoints(intent.source):
        raise _refusal(folder, f"its data source, {scheme}, cannot hand a checkpoint over")
    return intent, spec


def _settings(folder: JobFolder, spec: JobSpec, intent: Intent, to: Configuration) -> KubernetesSettings:
    """Return the settings of the job there. Raises ClusterError if pods could not run it."""
    [statement, *_] = read_statements(spec.statement, spec.query.dialect)
    if not isinstance(statement, Statement):
        raise _refusal(folder, f"its statement cannot be read: {statement.message}")
    try:
        return submit.settings_of(statement, to, spec.query.source, intent.store or intent.source)
    except SemanticError as error:
        raise _refusal(folder, error.message, error.hint) from None


def _check_place(folder: JobFolder, settings: KubernetesSettings | None) -> Deployment | None:
    """Return the present deployment of the job, or None on this machine. Raises ClusterError if it is there already."""
    before = read_deployment(folder.path) if folder.status().place else None
    if settings is None:
        if before is None:
            raise _refusal(folder, "it is on this machine already")
    elif before is not None:
        namespace = namespace_of(settings)
        if (before.context, before.namespace) == (settings.text("context"), namespace):
            raise _refusal(folder, f"it is in the namespace {namespace} already")
    if before is not None and _has_place_for_checkpoints(before):
        raise _refusal(
            folder,
            "its checkpoints are on a volume or in an object store, which pods of its namespace alone read",
            f"`sqlflow pause {folder.id}` keeps it there",
        )
    return before


def _has_place_for_checkpoints(deployment: Deployment) -> bool:
    containers = deployment.worker["spec"]["containers"]
    return any(variable["name"] == factory.VARIABLE for variable in containers[0].get("env", ()))


def _pause(job: JobHandle) -> str:
    """Pause the training, unless it stands still, and return what to say of it."""
    folder, said = job.folder, ""
    state = job.details().status.state
    if state != "paused" and not folder.can_resume:
        try:
            said = f"{job.pause()}\n"
        except APIRefusedError as error:
            if not (error.may_pass and has_checkpoint(folder)):
                raise
            # Its namespace was deleted, and the user's rights with it. Its pods kept the checkpoint when they ended.
            ClusterFolder(folder.path).mark_kept()
            folder.end("failed", error.message)
            return ""
    elif state != "paused":
        return ""
    snapshot = job.details().snapshot
    if folder.status().place and not (snapshot is not None and snapshot.kept):
        raise _refusal(
            folder,
            "its data source has no checkpoint of it",
            f"`sqlflow resume {folder.id}` continues it where it is; `sqlflow logs {folder.id} master` may say why",
        )
    return said


def _start_in_pods(folder: JobFolder, spec: JobSpec, intent: Intent, settings: KubernetesSettings) -> str:
    """Start a training of this machine in pods."""
    position = resumption.prepare(folder)  # checks rows and checkpoint; the job counts as running
    file = folder.program / "job.json"
    before = file.read_bytes()
    try:
        state = b""
        if position.checkpoint:
            master_state = resumption.read_state(folder)
            master_state.kept = position.checkpoint
            state = encoding.encode(master_state)
            checkpoint = factory.for_master(folder.path).fetch(position.checkpoint)
            KeptCheckpoint(intent.source, folder.id, insists=False).put(checkpoint, pack(state))
        if not spec.cluster.workers:  # it ran in one process
            cluster = msgspec.structs.replace(spec.cluster, workers=1)
            spec = msgspec.structs.replace(spec, cluster=cluster)
            replace_file(file, to_json(spec))
        deploy(folder, spec, settings, state)
    except BaseException:
        replace_file(file, before)
        folder.update(state="paused", place="")
        raise
    resumption.remove_checkpoints(folder)
    if state:
        ClusterFolder(folder.path).mark_kept()  # it can be resumed if it cannot start there
    folder.forget_processes()
    return f"job {folder.id} is on {folder.status().place}: {position}"


def _start_in_other_pods(
    folder: JobFolder, spec: JobSpec, before: Deployment, settings: KubernetesSettings
) -> str:
    """Start a training in pods of another namespace or cluster, and remove the Job that it had."""
    state = continuing.read_state(folder)
    resumption.reopen_job(state, spec)
    with continuing.open_again(folder):
        try:
            deploy(folder, spec, settings, encoding.encode(state))
        except BaseException:
            write_deployment(folder.path, before)
            raise
    with contextlib.suppress(APIRefusedError):  # its namespace is gone, and the rights there with it
        continuing.remove_objects(before)
    return f"job {folder.id} is on {folder.status().place}: {resumption.point_of(state)}"


def _start_here(folder: JobFolder, spec: JobSpec, intent: Intent) -> str:
    """Start a training of pods on this machine."""
    before = read_deployment(folder.path)
    state = continuing.read_state(folder)
    kept = KeptCheckpoint(intent.source, folder.id, insists=False)
    name = state.checkpoint_name
    if name and not (folder.checkpoints / name).is_dir():
        kept.fetch(name, folder.checkpoints / name)
    cluster = ClusterFolder(folder.path)
    cluster.write_run_spec(with_surroundings(make_run_spec(spec, None, detached=True)))
    resumption.write_state(folder, state)
    if before is not None:
        with contextlib.suppress(APIRefusedError):
            continuing.remove_objects(before)
    cluster.forget_pods()
    folder.update(place="", state="paused", ended="", error="")
    said = resume.resume(folder)
    with contextlib.suppress(SQLFlowError):  # a later session does it
        kept.remove()
    return said
