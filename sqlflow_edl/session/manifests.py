"""`--dry-run --on kubernetes`: the Kubernetes objects of a statement's job as YAML.

No cluster is contacted and nothing is created. Values that exist only with a real job have placeholders: the
job id, the uid of the Job, the token and the passwords. The record of the pinned rows is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from edl.spec import JobSpec
from sqlflow_edl.backends.kubernetes.apply import namespace_of
from sqlflow_edl.backends.kubernetes.manifests.objects import Objects, Submission
from sqlflow_edl.backends.kubernetes.manifests.rendering import shown
from sqlflow_edl.backends.kubernetes.settings import Configuration
from sqlflow_edl.backends.kubernetes.statements import settings_of
from sqlflow_edl.codegen import generate
from sqlflow_edl.session.plan import planned_use
from sqlflow_edl.syntax import Statement

if TYPE_CHECKING:
    from sqlflow_edl.session.session import Session

JOB = "00000000-000000-000000-000000"
UID = "00000000-0000-0000-0000-000000000000"
HIDDEN = "(not shown)"

_HEAD = f"""\
# The objects of the job, in the order in which they are made. The job id {JOB},
# the uid {UID}, the token and passwords stand in for what comes with the job.
"""


def manifests(session: Session, statement: Statement, place: Configuration) -> str:
    """Return the YAML, or an empty string for a statement that starts no job.

    Raises SQLFlowError if the statement is wrong.
    """
    planner = _PLANNERS.get(statement.kind)
    if planner is None or statement.plan:
        return ""
    settings = settings_of(statement, place, session.source.url, session.registry.url)
    spec = planner(session, statement)
    sources = {query.source for query in (spec.query, spec.validation) if query is not None}
    objects = Objects(
        Submission(
            job=JOB,
            spec=spec,
            settings=settings,
            namespace=namespace_of(settings),
            files={f"program/{name}": content for name, content in generate(spec).files.items()},
            token=HIDDEN,
            secrets=dict.fromkeys(sorted(sources), HIDDEN),
        )
    )
    return _HEAD + shown([objects.job(), *objects.owned(UID)])


def _train(session: Session, statement: Statement) -> JobSpec:
    return session.planned(statement).spec


_PLANNERS: Mapping[str, Callable[[Session, Statement], JobSpec]] = {
    "train": _train,
    "auto": _train,
    "predict": planned_use,
    "evaluate": planned_use,
    "explain": planned_use,
}
