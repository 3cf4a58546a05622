"""Models that an image has, for a TRAIN statement that names one: a container of this machine or a pod lists them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from edl.errors import SemanticError
from edl.program import image_models
from edl.program.user_model import PATH_VARIABLE
from edl.run import containers
from edl.spec import JobSpec
from sqlflow_edl.analysis.choice import is_built_in
from sqlflow_edl.errors.spans import set_missing_spans
from sqlflow_edl.syntax.ast import Statement

if TYPE_CHECKING:
    from sqlflow_edl.backends.kubernetes.settings import Configuration


def learn_models(statement: Statement, place: Configuration | None, asks: bool) -> None:
    """Learn which models the image has that a TRAIN statement names; an image is asked once by a process.

    place: of jobs on Kubernetes, None for this machine. asks: a cluster may run the image. Raises SQLFlowError if it
    cannot run there, or has another protocol of jobs.
    """
    image, model = image_models.split_name(statement.model.text if statement.model else "")
    if not image or image_models.is_known(image) or is_built_in(model):
        return
    if place is not None and image_models.is_on_model_path(image, model):
        return
    with set_missing_spans(statement.model.span if statement.model else None):
        sources = _read_sources(image, statement, place, asks)
        sources.check_build(image)
    image_models.remember(image, sources)


def check_container(image: str) -> None:
    """Raise SemanticError if no container of the image may run on this machine."""
    containers.check_image(image, elsewhere="run the statement with --on kubernetes")


def check_workers(job_spec: JobSpec) -> None:
    """Raise SemanticError for a model that an image has: it has no workers on this machine."""
    if job_spec.image:
        raise SemanticError(
            f"{job_spec.model.name} is of the image {job_spec.image}, which runs one process here",
            hint="leave workers, --detach and --deadline out, or run the statement with --on kubernetes",
        )


def _read_sources(
    image: str, statement: Statement, place: Configuration | None, asks: bool
) -> image_models.ImageSources:
    if place is None:
        check_container(image)
        return containers.read_sources(containers.find_engine(), image)
    if not asks:
        raise SemanticError(
            f"the models of {image} are unknown before a pod of it has run, and this command starts none",
            hint=f"name the folder with a copy of its modules in {PATH_VARIABLE}",
        )
    from sqlflow_edl.backends.kubernetes import image_sources

    return image_sources.read_sources(image, place.settings(statement.attributes))
