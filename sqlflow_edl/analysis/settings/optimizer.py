"""Optimizer of a TRAIN statement with its parameters, clipping and schedule, or an exact solution without steps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import msgspec

from edl import spec
from edl.errors import SemanticError, SQLFlowError
from edl.spec import strategy
from edl.spec.job import COMPONENTS, FACTORS, LEAST_SQUARES, NEWTON
from sqlflow_edl.analysis import catalog
from sqlflow_edl.analysis.entries import Entry
from sqlflow_edl.analysis.models.dnn import L2
from sqlflow_edl.analysis.settings import trees
from sqlflow_edl.analysis.settings.attribute_dictionary import Resolved

if TYPE_CHECKING:
    from sqlflow_edl.analysis.train_settings import TrainSettings

SOLVABLE, _FAMILY = {"LinearRegressor": LEAST_SQUARES, "LinearClassifier": NEWTON}, "Linear"
_SOLVED = {COMPONENTS: "PCA", FACTORS: "MatrixFactorization"}
# Solver of a linear model -> the loss that it minimises, and its words; and the model.
_LOSSES = {
    LEAST_SQUARES: ("mean_squared_error", "the mean squared error"),
    NEWTON: ("cross_entropy", "the log loss"),
}
_MODELS = {solver: model for model, solver in SOLVABLE.items()}
# Attributes of a training in steps.
_STEPS = (
    "train.epoch",
    "train.max_steps",
    "train.batch_size",
    "train.early_stopping",
    "train.min_delta",
    "train.shuffle",
    "train.unseen_rate",
)
MOST_INPUTS = 1000  # of an exact solution, whose work grows with their square; times the logits of classes
_MOST_PRODUCTS = (
    10**11
)  # of rows and squared weights, of a pass of newton; it keeps a thousandth of them in memory
CLIPPING = ("optimizer.clipnorm", "optimizer.global_clipnorm", "optimizer.clipvalue")


def read_steps(
    settings: TrainSettings, entry: Entry, training: spec.Training, rows: int
) -> tuple[spec.Component, spec.Component | None]:
    """Return the optimizer with its parameters and the written gradient clipping, and the schedule.

    entry: the optimizer, unless it is a function of the model's module. rows: number of training rows.
    """
    resolved, framework = settings.resolved, settings.framework
    optimizer = settings.own_function("optimizer")
    if optimizer is None and framework in spec.TREES:
        # A forest is the mean of trees, which no learning rate scales.
        rate = 1.0 if settings.choice.is_forest else trees.RATES[framework]
        parameters = {"learning_rate": rate, **catalog.parameters(entry, resolved)}
        optimizer = spec.Component(entry.name, parameters)
    elif optimizer is None:
        clipping = {name.rpartition(".")[2]: resolved[name].value for name in CLIPPING if name in resolved}
        optimizer = spec.Component(entry.name, {**catalog.parameters(entry, resolved), **clipping})
    return optimizer, schedule(settings.schedule, resolved, training, rows)


def check(settings: TrainSettings, errors: list[SQLFlowError]) -> None:
    """Add an error for two kinds of gradient clipping, and for an exact solution that is impossible."""
    resolved = settings.resolved
    if settings.optimizer.name in _LOSSES or L2.name in resolved:
        _check_solution(settings, errors)
    if settings.choice.example.solver:
        _refuse_steps(settings, errors)
        return
    if settings.optimizer.name in (COMPONENTS, FACTORS):
        message = f"{settings.optimizer.name} solves {_SOLVED[settings.optimizer.name]} alone"
        errors.append(SemanticError(message, span=settings.span("optimizer"), hint="leave optimizer out"))
    names = [name for name in CLIPPING if name in resolved]
    if len(names) > 1:
        first, second = sorted(names, key=lambda name: resolved[name].key_span.start)[:2]
        errors.append(
            SemanticError(
                f"only one way to clip gradients can be set, and {first} is set already",
                span=resolved[second].key_span,
                hint="keep one of them",
            )
        )


def _refuse_steps(settings: TrainSettings, errors: list[SQLFlowError]) -> None:
    """Add an error for each attribute of a training in steps: the model is solved for."""
    name_of_model, resolved = settings.choice.example.name, settings.resolved
    for name in resolved:
        other = name == "optimizer" and settings.optimizer.name != settings.choice.example.solver
        if other or name in (*_STEPS, "train.tolerance") or name.startswith(("optimizer.", "schedule.")):
            message = f"{name_of_model} is solved for in one pass, and {name} is of a training in steps"
        elif name == "train.precision" and resolved[name].value != "float32":
            message = f"{name_of_model} is solved for in float64, and its features are float32"
        else:
            continue
        errors.append(SemanticError(message, span=resolved[name].key_span, hint=f"leave {name} out"))


def schedule(
    entry: Entry | None, resolved: Mapping[str, Resolved], training: spec.Training, rows: int
) -> spec.Component | None:
    """Return the schedule with all its parameters.

    rows: number of training rows, which with `training` gives the number of steps.
    """
    if entry is None:
        return None
    params = catalog.parameters(entry, resolved)
    names = [row.name for row in entry.params]
    if "schedule.decay_steps" in names and "decay_steps" not in params:
        warmup = params["warmup_steps"]
        left = max(1, steps(training, rows) - warmup)  # type: ignore[operator]
        params["decay_steps"] = max(1, left // 3) if entry.name == "step" else left
    return spec.Component(entry.name, params)


def steps(training: spec.Training, rows: int) -> int:
    """Return the number of optimizer steps of the whole training."""
    every = training.epochs * -(-rows // training.batch_size)
    return min(every, training.max_steps or every)


def _reasons(settings: TrainSettings, solver: str) -> Iterator[tuple[str, str]]:
    """Yield why the model is not solved for by the solver, with the attribute that says so."""
    named = settings.optimizer.name if settings.optimizer.name in _LOSSES else solver
    is_linear = settings.choice.family == _FAMILY or settings.choice.example.name in SOLVABLE
    if not is_linear or named != solver:
        yield f"{named} solves {_MODELS.get(named, 'a linear model')} alone", "optimizer"
    for name in settings.resolved:
        if name in _STEPS or name.startswith(("optimizer.", "schedule.")):
            yield f"{name} is of a training in steps, and {solver} takes none", name
    loss, words = _LOSSES.get(solver, (settings.loss, ""))
    if (settings.loss or loss) != loss or settings.functions:
        yield f"{solver} minimises {words}", "loss"
    if settings.get("loss.label_smoothing"):
        yield f"{solver} smooths no labels", "loss.label_smoothing"
    if (settings.get("train.precision") or "float32") != "float32":
        yield f"{solver} computes in float64, and the model is float32", "train.precision"


def _check_solution(settings: TrainSettings, errors: list[SQLFlowError]) -> None:
    """Add an error if an exact solution is written, and impossible."""
    asked = L2.name if L2.name in settings.resolved else "optimizer"
    named = settings.optimizer.name if settings.optimizer.name in _LOSSES else "an exact solution"
    is_family = settings.choice.family == _FAMILY  # its label chooses the model
    reasons = list(
        _reasons(settings, named if is_family else SOLVABLE.get(settings.choice.example.name, named))
    )
    if settings.optimizer.name not in _LOSSES and "optimizer" in settings.resolved:
        reasons.append(
            (f"{asked} is of an exact solution, and {settings.optimizer.name} takes steps", "optimizer")
        )
    for message, name in reasons[:1]:
        hint = f"leave {asked} out" if name == asked else f"leave out {name}, or {asked}"
        errors.append(SemanticError(message, span=settings.span(name) or settings.span(asked), hint=hint))


def _takes_steps(job: spec.JobSpec, settings: TrainSettings) -> bool:
    """Return True if the settings do not leave the model to an exact solution."""
    solver = SOLVABLE[job.model.name]
    other = "optimizer" in settings.resolved and settings.optimizer.name != solver
    cluster = job.cluster
    if settings.workers is not None:
        cluster = msgspec.structs.replace(cluster, workers=settings.workers)
    in_one_process = strategy.complete_settings(cluster).strategy == "local"
    return bool(job.trained_model) or other or not in_one_process or any(_reasons(settings, solver))


def _exceeds_solver(job: spec.JobSpec) -> str:
    """Return why the inputs of a model are too many, or none, for its solver; else an empty text."""
    solver, inputs = SOLVABLE[job.model.name], sum(map(spec.width, job.features))
    if any(feature.dim or feature.array == "periodic" for feature in job.features):
        return f"{solver} has at most {MOST_INPUTS:,} inputs, and the model has embeddings"
    if solver == LEAST_SQUARES:
        return f"{solver} has at most {MOST_INPUTS:,} inputs, and the model has {inputs:,}" * (
            inputs > MOST_INPUTS
        )
    weights = (inputs + 1) * (1 if job.label.is_binary else len(job.label.classes))
    if weights > MOST_INPUTS:
        return f"{solver} has at most {MOST_INPUTS:,} weights, and the model has {weights:,}"
    if job.rows.training * max(inputs * 1000, weights**2) > _MOST_PRODUCTS:
        return f"{solver} keeps the inputs of all rows, and these are {job.rows.training:,} rows of {inputs:,} inputs"
    return ""


def solve_exactly(job: spec.JobSpec, settings: TrainSettings) -> spec.JobSpec:
    """Return the job of a SOLVABLE model with an exact solution in place of steps, if settings and inputs allow one.

    Raises SemanticError if they do not, and it is written nevertheless.
    """
    takes_steps = _exceeds_solver(job)
    if job.label.labels or _takes_steps(job, settings):
        solver = SOLVABLE[job.model.name]
        takes_steps = f"{solver} has one label, and trains no further what another training began"
    if takes_steps:
        if settings.optimizer.name in _LOSSES or L2.name in settings.resolved:
            span = settings.span("optimizer") or settings.span(L2.name)
            raise SemanticError(takes_steps, span=span, hint="leave it out")
        return job
    parameters = dict(job.model.params)
    penalty = parameters.pop("l2", None)
    solved = msgspec.structs.replace(
        job,
        model=spec.Component(job.model.name, parameters),
        optimizer=spec.Component(SOLVABLE[job.model.name], {} if penalty is None else {"l2": penalty}),
    )
    return train_in_one_pass(solved)


def train_in_one_pass(job: spec.JobSpec) -> spec.JobSpec:
    """Return the job of a solver, which reads all rows once, in blocks."""
    return msgspec.structs.replace(
        job,
        schedule=None,
        training=msgspec.structs.replace(
            job.training,
            epochs=1,
            batch_size=spec.BLOCK,
            shuffle=False,
            early_stopping=0,
            unseen_rate=msgspec.UNSET,
        ),
    )
