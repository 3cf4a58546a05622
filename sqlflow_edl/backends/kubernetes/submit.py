"""Submission to Kubernetes: the job is put into the cluster, followed from here, and continues without the client."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from edl.build import ADVICE, present_build
from edl.cluster.kubernetes.api_calls import APIRefusedError, APIUnreachableError
from edl.cluster.kubernetes.connect import current_context
from edl.data.source import Pinned
from edl.errors import ClusterError, SemanticError
from edl.jobs.job_folder import JobFolder
from edl.jobs.outcome import Outcome
from edl.jobs.termination import DetachedError, TerminatedError
from edl.models.pending import forget_intent
from edl.spec import JobSpec
from edl.spec.runnable import RunnableSpec
from sqlflow_edl.backends.base import Follower, LostSightError
from sqlflow_edl.backends.images.registry import read_build
from sqlflow_edl.backends.kubernetes import statements
from sqlflow_edl.backends.kubernetes.admission import describe_open_admission
from sqlflow_edl.backends.kubernetes.apply import check, deploy
from sqlflow_edl.backends.kubernetes.handle import KubernetesJobHandle
from sqlflow_edl.backends.kubernetes.settings import Configuration, KubernetesSettings
from sqlflow_edl.syntax.ast import Statement


def settings_of(statement: Statement, place: Configuration, source: str, models: str) -> KubernetesSettings:
    """Return the settings of a statement's job. source, models: URLs of its rows and of the model registry.

    Raises SemanticError if it cannot run there or a setting is wrong, ClusterError if the cluster does not allow jobs.
    """
    return with_context(statements.settings_of(statement, place, source, models))


_read_once = cache(read_build)  # of several statements with the same image


def with_context(settings: KubernetesSettings) -> KubernetesSettings:
    """Return the settings with the name of their context. Raises ClusterError if the cluster does not allow jobs."""
    # The current context may have changed when the job is looked up.
    context = settings.text("context") or current_context()
    settings = replace(settings, values={**settings.values, "context": context})
    check(settings)
    check_image(settings.text("image"))
    return settings


def with_image(settings: KubernetesSettings, image: str) -> KubernetesSettings:
    """Return the settings with the image of a model, which must run jobs of this client; without one, these."""
    if image:
        check_image(image)
    return settings.with_image(image)


def check_image(image: str) -> None:
    """Raise ClusterError if the label of the image names a build that does not run jobs of this client.

    Without a label from its registry, an image is compared when the master starts. The log of that one names other
    builds that run the job.
    """
    client, built = present_build(), _read_once(image)
    if built is not None and not client.is_compatible(built):
        raise ClusterError(
            f"the image {image} has {built}, which does not run jobs of {client}: the protocol of jobs is "
            f"{built.protocol} there, {client.protocol} here",
            hint=ADVICE,
        )


def run(
    job: JobFolder,
    spec: JobSpec | RunnableSpec,
    pinned: Pinned,
    settings: KubernetesSettings,
    follower: Follower,
) -> Outcome:
    """Run the job in the folder and wait for it; raises the job's own error if it fails.

    An interrupt cancels it. Raises LostSightError if contact with a continuing job is lost, DetachedError at SIGTERM.
    """
    try:
        handle = _started_on(pinned, job, spec, settings, follower)
    except BaseException:
        forget_intent(job.path)  # the caller gets the error, so no later session needs it
        raise
    return follow_job(handle, follower, cancels=True)


def follow_job(handle: KubernetesJobHandle, follower: Follower, *, cancels: bool) -> Outcome:
    """Follow the job to its end; see `run`. cancels: an interrupt cancels it. SIGTERM to this command leaves it running
    unless it is to cancel jobs.
    """
    try:
        return handle.follow(follower)
    except TerminatedError as error:
        if not (cancels and error.cancels):
            raise DetachedError(handle.folder.id) from None
        handle.cancel()
        raise
    except KeyboardInterrupt:
        if cancels:
            handle.cancel()
        raise
    except (APIRefusedError, APIUnreachableError) as error:
        raise _lost_sight(handle.folder.id, error) from None


def _lost_sight(job_id: str, error: APIRefusedError | APIUnreachableError) -> LostSightError:
    """Return the error for the loss of contact with the job."""
    lost = LostSightError(job_id, error.message)
    if isinstance(error, APIRefusedError) and error.may_pass:
        lost.hint = (
            f"job {job_id} continues, unless its namespace is being deleted; `sqlflow attach {job_id}` follows it when "
            "you have the right again"
        )
    return lost


def leave(
    job: JobFolder,
    spec: JobSpec | RunnableSpec,
    pinned: Pinned,
    settings: KubernetesSettings,
    follower: Follower,
) -> None:
    """Start the job, and return when its master runs."""
    wait_for_start(_started_on(pinned, job, spec, settings, follower), follower)


def wait_for_start(handle: KubernetesJobHandle, follower: Follower) -> None:
    """Return when the master runs; an interrupt cancels the job. Raises DetachedError at SIGTERM."""
    try:
        handle.wait_for_start(follower)
    except TerminatedError:
        raise DetachedError(handle.folder.id) from None
    except KeyboardInterrupt:
        handle.cancel()
        raise
    except (APIRefusedError, APIUnreachableError) as error:
        raise _lost_sight(handle.folder.id, error) from None


def _started_on(
    pinned: Pinned,
    job: JobFolder,
    spec: JobSpec | RunnableSpec,
    settings: KubernetesSettings,
    follower: Follower,
) -> KubernetesJobHandle:
    """Submit a job that reads its rows from a data source."""
    if pinned.table is None:
        raise SemanticError(
            "the rows could not be pinned in the data source, where pods would read them",
            hint="its user may not create tables there; ask an administrator for that permission",
        )
    return start_job(job, spec, settings, follower)


def start_job(
    job: JobFolder, spec: JobSpec | RunnableSpec, settings: KubernetesSettings, follower: Follower
) -> KubernetesJobHandle:
    """Submit the job in the folder. The follower gets a note if its namespace does not restrict pods."""
    deploy(job, spec, settings)
    if note := describe_open_admission(settings):
        follower.note(note)
    return KubernetesJobHandle(job)
