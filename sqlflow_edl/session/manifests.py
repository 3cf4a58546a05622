"""`--dry-run --on kubernetes`: the Kubernetes objects of a statement's job as YAML.

No cluster is contacted and nothing is created. Values that exist only with a real job have placeholders: the
job id, the uid of the Job, the token and the passwords. The record of the pinned rows is left out.
"""

from __future__ import annotations

from edl.spec import JobSpec
from edl.spec.runnable import RunnableSpec
from sqlflow_edl.backends.kubernetes.apply import namespace_of
from sqlflow_edl.backends.kubernetes.manifests.objects import Objects, Submission
from sqlflow_edl.backends.kubernetes.manifests.rendering import Object, shown
from sqlflow_edl.backends.kubernetes.settings import Configuration
from sqlflow_edl.backends.kubernetes.statements import settings_of
from sqlflow_edl.codegen import generate
from sqlflow_edl.session.compiler import KINDS, Compiler
from sqlflow_edl.session.running import in_a_pod
from sqlflow_edl.syntax import Statement

JOB = "00000000-000000-000000-000000"
UID = "00000000-0000-0000-0000-000000000000"
HIDDEN = "(not shown)"

_HEAD = f"""\
# The objects of the job, in the order in which they are made. The job id {JOB},
# the uid {UID}, the token and passwords stand in for what comes with the job.
"""


def manifests(compiler: Compiler, statement: Statement, place: Configuration) -> str:
    """Return the YAML, or an empty string for a statement that starts no job.

    Raises SQLFlowError if the statement is wrong.
    """
    if statement.kind not in (*KINDS, "run") or statement.plan:
        return ""
    settings = settings_of(statement, place, compiler.source.url, compiler.registry.url)
    spec, files = _of(compiler, statement)
    sources = {query.source for query in (spec.query, spec.validation) if query is not None}
    objects = Objects(
        Submission(
            job=JOB,
            spec=spec,
            settings=settings,
            namespace=namespace_of(settings),
            files=files,
            token=HIDDEN,
            secrets=dict.fromkeys(sorted(sources), HIDDEN),
        )
    )
    return _HEAD + shown([_queued(objects), *objects.owned(UID)])


def _queued(objects: Objects) -> Object:
    """Return the Job with the labels of its queue, which it gets when all other objects exist."""
    job = objects.job()
    job["metadata"]["labels"] |= objects.queue
    return job


def _of(compiler: Compiler, statement: Statement) -> tuple[JobSpec | RunnableSpec, dict[str, bytes]]:
    """Return the specification of the statement's job, and its files by their paths in the job folder."""
    if statement.kind == "run":
        return in_a_pod(compiler, statement)
    spec = compiler.job_spec(statement)
    return spec, {f"program/{name}": content for name, content in generate(spec).files.items()}
