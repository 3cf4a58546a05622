"""Settings of a running job: its cluster, the validation during training, its checkpoints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from edl import spec
from edl.embeddings.placement import LARGEST_IN_GRAPH
from edl.embeddings.sizes import in_tables
from edl.errors import SemanticError, SQLFlowError
from edl.spec import strategy
from edl.spec.job import ROW_LIMITS, SOLVERS
from edl.spec.precision import FLOAT16_IN_KERAS, FLOAT16_ON_CPU, FLOAT16_ON_SERVERS
from sqlflow_edl.analysis.models.dnn import L2
from sqlflow_edl.analysis.settings import optimizer as steps

if TYPE_CHECKING:
    from sqlflow_edl.analysis.train_settings import TrainSettings


# field of spec.Cluster -> attribute
_ATTRIBUTES = {
    "workers": "train.num_workers",
    "parameter_servers": "train.num_ps",
    "strategy": "train.strategy",
    "local_steps": "train.local_steps",
    "grads_to_wait": "train.grads_to_wait",
    "durable_updates": "train.durable_updates",
    "max_staleness": "train.max_staleness",
    "max_workers": "train.max_workers",
    "priority": "train.priority",
    "task_timeout": "train.task_timeout",
}


def cluster(settings: TrainSettings, workers: int | None = None) -> spec.Cluster:
    """Return the cluster as it is written. workers: of the session, which overrides the statement's."""
    default = spec.Cluster()
    resolved = settings.resolved
    values: dict[str, Any] = {
        field: resolved[name].value if name in resolved else getattr(default, field)
        for field, name in _ATTRIBUTES.items()
    }
    written = spec.Cluster(**values)
    if settings.choice.example.solver and workers is not None:
        workers = min(workers, 1)
    return written if workers is None else msgspec.structs.replace(written, workers=workers)


def problems(settings: TrainSettings, workers: int | None) -> list[SQLFlowError]:
    """Return the errors of settings that exclude each other.

    workers: of the session, which overrides the statement; None leaves the statement's.
    """
    settings_of_cluster = cluster(settings, workers)
    errors: list[SQLFlowError] = [
        SemanticError(problem.message, span=settings.span(_ATTRIBUTES[problem.field]), hint=problem.hint)
        for problem in strategy.problems(settings_of_cluster)
    ]
    if settings.get("train.precision") == "float16" and not errors:
        errors += _of_float16(settings, strategy.complete_settings(settings_of_cluster))
    if settings.is_trees and not errors:
        errors += _of_trees(settings, strategy.complete_settings(settings_of_cluster))
    steps.check(settings, errors)
    is_solved = settings.optimizer.name in SOLVERS or L2.name in settings.resolved
    if is_solved and strategy.complete_settings(settings_of_cluster).strategy != "local":
        solver = settings.choice.example.solver
        named = settings.optimizer.name if settings.optimizer.name in SOLVERS else L2.name
        message = f"{solver or named} solves for the weights in one process"
        hint = f"leave out train.num_workers and --workers, or {named}"
        span = settings.span("optimizer") or settings.span(L2.name)
        if solver:
            names = ("train.num_workers", "train.num_ps", "train.strategy", *_ATTRIBUTES.values())
            span = next((at for name in names if (at := settings.span(name))), None)
            hint = "leave it out"
        errors.append(SemanticError(message, span=span, hint=hint))
    in_memory = checkpoints(settings).copies == "neighbours"
    if in_memory and not errors and not strategy.complete_settings(settings_of_cluster).parameter_servers:
        message = "only parameter servers keep checkpoints in the memory of their peers"
        hint = "leave it out, or set train.num_ps = 2"
        errors.append(SemanticError(message, span=settings.span("train.checkpoint_copies"), hint=hint))
    if in_memory and settings_of_cluster.durable_updates != "none":
        message = (
            "durable updates need checkpoints in files, and train.checkpoint_copies keeps them in memory"
        )
        hint = "leave out train.checkpoint_copies or train.durable_updates"
        errors.append(SemanticError(message, span=settings.span("train.durable_updates"), hint=hint))
    return errors


def _of_float16(settings: TrainSettings, cluster_settings: spec.Cluster) -> list[SQLFlowError]:
    """Return the error for float16 where it cannot be: on the CPU, in Keras, and with parameter servers."""
    if settings.get("train.device") == "cpu":
        message, hint = FLOAT16_ON_CPU
    elif settings.framework == "keras":
        message, hint = FLOAT16_IN_KERAS
    elif cluster_settings.parameter_servers:
        message, hint = FLOAT16_ON_SERVERS
    else:
        return []
    return [SemanticError(message, span=settings.span("train.precision"), hint=hint)]


def _of_trees(settings: TrainSettings, cluster_settings: spec.Cluster) -> list[SQLFlowError]:
    """Return the error for trees that their instances cannot train."""
    fields: tuple[str, ...] = ("workers", "strategy")
    if cluster_settings.strategy in ("async", "sync"):
        message = "trees have no gradients that parameter servers could apply"
        hint = "leave out train.num_ps and train.strategy: several workers add up their histograms"
        fields = ("parameter_servers", "strategy")
    elif cluster_settings.workers > 1 and (alone := _of_one_worker(settings)):
        message = f"XGBoost trains {alone} on one worker"
        hint = "leave that out, or leave out train.num_workers and --workers"
    else:
        return []
    span = next(filter(None, (settings.span(_ATTRIBUTES[field]) for field in fields)), None)
    return [SemanticError(message, span=span, hint=hint)]


def _of_one_worker(settings: TrainSettings) -> str:
    """Return the parameter of XGBoost that needs all rows at one place, or an empty text."""
    if settings.framework != "xgboost":
        return ""
    params = {name.removeprefix("model."): resolved.value for name, resolved in settings.resolved.items()}
    params = {**settings.choice.params, **params}
    needs = {"booster": "gblinear", "tree_method": "exact"}
    return next((f"model.{name} = {value}" for name, value in needs.items() if params.get(name) == value), "")


def unused_limits(settings: TrainSettings, job: spec.JobSpec) -> list[SQLFlowError]:
    """Return the error of the first limit for the rows of tables, if the model has none outside of its graph."""
    if job.own is not None or in_tables(job):  # a model of one's own may have layers with tables
        return []
    limits = [f"train.{name}" for name in ROW_LIMITS if getattr(job.training, name)]
    message = "this model has no row table, and only row tables have limits"
    hint = f"leave it out; an embedding of more than {LARGEST_IN_GRAPH:,} numbers, ids times width, has one"
    return [SemanticError(message, span=settings.span(name), hint=hint) for name in limits[:1]]


def evaluation(settings: TrainSettings) -> spec.Evaluation:
    names = ("steps", "secs", "start_delay_secs", "throttle_secs")
    default = spec.Evaluation()
    return spec.Evaluation(*(_get(settings, f"validation.{name}", getattr(default, name)) for name in names))


def checkpoints(settings: TrainSettings) -> spec.Checkpoints:
    default = spec.Checkpoints()
    return spec.Checkpoints(
        _get(settings, "train.checkpoint_steps", default.steps),
        _get(settings, "train.checkpoint_secs", default.secs),
        _get(settings, "train.keep_checkpoint_max", default.keep),
        _get(settings, "train.checkpoint_copies", default.copies),
    )


def _get(settings: TrainSettings, name: str, default: Any) -> Any:
    value = settings.get(name)
    return default if value is None else value
