"""`--dry-run --on kubernetes`: the Kubernetes objects of a statement's job as YAML.

No cluster is contacted and nothing is created. The record of the pinned rows is left out.
"""

from __future__ import annotations

from dataclasses import replace

from edl.build import present_build
from edl.extension_loader import load
from edl.spec import JobSpec
from edl.spec.runnable import RunnableSpec
from edl.tls import FILES
from sqlflow_edl.backends.kubernetes.apply import namespace_of
from sqlflow_edl.backends.kubernetes.certificates import encrypts
from sqlflow_edl.backends.kubernetes.dry_run import HIDDEN, JOB, describe_submission
from sqlflow_edl.backends.kubernetes.manifests.objects import Submission
from sqlflow_edl.backends.kubernetes.settings import Configuration
from sqlflow_edl.backends.kubernetes.statements import settings_of
from sqlflow_edl.codegen import generate
from sqlflow_edl.session import extended_statements
from sqlflow_edl.session.compiler import Compiler
from sqlflow_edl.syntax import Statement


def manifests(compiler: Compiler, statement: Statement, place: Configuration) -> str:
    """Return the YAML, or an empty string for a statement that starts no job.

    Raises SQLFlowError if the statement is wrong.
    """
    if statement.plan or not (statement.traits.generated or statement.kind == "run"):
        return ""
    settings = settings_of(statement, place, compiler.source.url, compiler.registry.url)
    spec, files = _specify_job(replace(compiler, asks_images=False), statement)
    if isinstance(spec, JobSpec):
        settings = settings.with_image(spec.image)
    sources = {query.source for query in (spec.query, spec.validation) if query is not None}
    return describe_submission(
        Submission(
            job=JOB,
            spec=spec,
            settings=settings,
            namespace=namespace_of(settings),
            files=files,
            token=HIDDEN,
            build=present_build(),
            secrets=dict.fromkeys(sorted(sources), HIDDEN),
            certificates=dict.fromkeys(FILES, HIDDEN) if encrypts(spec, settings) else {},
        )
    )


def _specify_job(compiler: Compiler, statement: Statement) -> tuple[JobSpec | RunnableSpec, dict[str, bytes]]:
    """Return the specification of the statement's job, and its files by their paths in the job folder."""
    if statement.kind == "run":
        run_spec: tuple[RunnableSpec, dict[str, bytes]] = load(
            extended_statements.MODULES[statement.kind], "in_a_pod"
        )(compiler, statement)
        return run_spec
    spec = compiler.job_spec(statement)
    return spec, {f"program/{name}": content for name, content in generate(spec).files.items()}
