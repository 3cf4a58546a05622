"""A call of `edl.train` as a job: its arguments become a JobSpec, and the functions of a program."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Literal, TypedDict

import numpy as np

from edl.callbacks import Callback
from edl.errors import SemanticError, did_you_mean
from edl.features.labels import probabilities
from edl.instance.datasets import Dataset, Feed, dataset
from edl.instance.sharing import strategy_named
from edl.metrics import Metric, by_name
from edl.nn import seed_everything
from edl.nn.objects import framework_of, loaded, objects
from edl.program import Program
from edl.program.contract import check
from edl.spec import Checkpoints, Cluster, Component, Evaluation, JobSpec, Query, RawLabel, Rows, Training
from edl.spec.job import Framework
from edl.spec.strategy import problems

_INSTEAD = {
    "num_epochs": "epochs",
    "minibatch_size": "batch_size",
    "num_workers": "workers",
    "training_data": "dataset",
    "validation_data": "validation",
    "eval_metrics_fn": "metrics",
    "parameter_servers": "num_ps_pods",
    "strategy": "distribution_strategy",
}
_NAMES = {
    "workers": "workers",
    "parameter_servers": "num_ps_pods",
    "strategy": "distribution_strategy",
    "local_steps": "local_steps",
    "grads_to_wait": "grads_to_wait",
}  # field of Cluster -> what it is called here

Metrics = Iterable[str | Metric] | Mapping[str, str | Metric]
Rate = float | Callable[[Any], Any]


class Options(TypedDict, total=False):
    """What need not be said, under ElasticDL's names where it had one.

    seed: of everything random. shuffle: rows in memory stand in a random order. early_stopping: end after so many
    epochs without a lower loss on `validation`, 0 never. keep: the weights of the epoch with the lowest one, or the
    last. max_step: optimizer steps, 0 no limit. num_minibatches_per_task: rows that are handed out together.
    evaluation_steps: measure `validation` after so many steps, besides at each epoch's end.
    num_ps_pods, distribution_strategy, local_steps, grads_to_wait: how workers share the work, see docs/servers.md.
    checkpoint_steps, keep_checkpoint_max: of jobs with workers. threads: of each process; None shares the cores out.
    verbose: tell of progress on standard error.
    """

    seed: int
    shuffle: bool
    early_stopping: int
    keep: Literal["best", "last"]
    max_step: int
    num_minibatches_per_task: int
    evaluation_steps: int
    num_ps_pods: int
    distribution_strategy: str
    local_steps: int
    grads_to_wait: int
    checkpoint_steps: int
    keep_checkpoint_max: int
    threads: int | None
    verbose: bool


@dataclass(frozen=True)
class Call:
    """file: where the call stands, which errors of the script's functions point into."""

    framework: Framework
    model: Any
    rows: Dataset
    functions: Mapping[str, Callable[..., Any]]
    file: Path

    def program(self, spec: JobSpec, folder: Path) -> Program:
        """The program that the call is. JobError: a function cannot be called as it will be."""
        module = ModuleType("edl_call")
        module.__file__ = str(self.file)
        functions = check(module, self.framework, str(self.file), {**self.functions, **self.rows.functions})
        return Program(folder, spec, module, functions, edited=True)


def call(
    model: Any,
    given: Any,
    *,
    loss: Any,
    optimizer: Any,
    validation: Any,
    metrics: Metrics,
    feed: Feed | None,
    scores: Callable[[Any], Any] | None,
    learning_rate: Rate | None,
    callbacks: Sequence[Callback],
    options: Options,
    file: Path,
) -> Call:
    """SemanticError: an argument is none that `edl.train` could train with."""
    check_options(options)
    seed = options.get("seed", 0)
    model = _made(model, seed)
    framework = framework_of(model)
    if framework is None:
        raise SemanticError(
            f"the model is a {type(model).__qualname__}, neither a keras.Model nor a torch.nn.Module",
            hint="give such a model, or a function without parameters that makes one",
        )
    held_out = None if isinstance(validation, float) else validation
    rows = dataset(given, held_out, framework, feed, shuffle=options.get("shuffle", True), seed=seed)
    ours = objects(framework)
    measured = _metrics(metrics)
    if learning_rate is not None and not callable(learning_rate) and not isinstance(optimizer, str):
        raise SemanticError(
            "learning_rate is of an optimizer by name", hint="give it to the optimizer itself"
        )
    rate = learning_rate if isinstance(learning_rate, float | int) else None
    functions: dict[str, Callable[..., Any]] = {
        "custom_model": lambda: model,
        "loss": ours.loss(loss),
        "optimizer": ours.optimizer(optimizer, rate),
        "eval_metrics_fn": lambda: measured,
    }
    if scores is None and ours.takes_logits(loss):
        scores = probabilities
    if scores is not None:
        functions["scores"] = scores
    if callable(learning_rate):
        functions["learning_rate"] = learning_rate
    if callbacks:
        functions["callbacks"] = lambda: list(callbacks)
    return Call(framework, model, rows, functions, file)


def job_spec(
    called: Call, epochs: int, batch_size: int, validation: Any, workers: int, options: Options
) -> JobSpec:
    """The JobSpec of the call; which rows there are is not known yet. SemanticError: a number is none of these."""
    for name, value in (("epochs", epochs), ("batch_size", batch_size), ("workers", workers)):
        if not isinstance(value, int) or value < 1:
            raise SemanticError(f"{name} is {value!r}, and must be a whole number from 1")
    fraction = validation if isinstance(validation, float) else 0.0
    if not 0.0 <= fraction < 1.0:
        raise SemanticError(f"validation is {fraction}; a share of the rows lies between 0 and 1")
    for name in ("early_stopping", "keep", "evaluation_steps"):
        if name in options and options[name] not in (0, "last") and validation is None:  # type: ignore[literal-required]
            raise SemanticError(
                f"{name} needs rows to measure", hint="give validation=(features, labels), or 0.1"
            )
    name = type(called.model).__qualname__
    return JobSpec(
        kind="train",
        statement=f"edl.train of {name}",
        query=Query("", "", ""),
        rows=Rows(pinned=False, total=0, training=0),
        framework=called.framework,
        model=Component(name),
        inputs={},
        label=RawLabel("prediction"),
        optimizer=Component("optimizer"),
        loss=Component("loss"),
        metrics=(),
        training=Training(
            epochs=epochs,
            batch_size=batch_size,
            shuffle=options.get("shuffle", True),
            seed=options.get("seed", 0),
            max_steps=options.get("max_step", 0),
            minibatches_per_task=options.get("num_minibatches_per_task", 0),
            validation_fraction=fraction,
            early_stopping=options.get("early_stopping", 0),
            keep=options.get("keep", "last"),
        ),
        evaluation=Evaluation(steps=options.get("evaluation_steps", 0)),
        checkpoints=Checkpoints(
            steps=options.get("checkpoint_steps", 0),
            keep=options.get("keep_checkpoint_max", Checkpoints().keep),
        ),
        cluster=_cluster(workers, options),
    )


def check_options(options: Mapping[str, object]) -> None:
    """SemanticError: one is unknown."""
    for name in options:
        if name not in Options.__annotations__:
            known = [*Options.__annotations__, *_INSTEAD.values()]
            instead = f"it is called {_INSTEAD[name]} here" if name in _INSTEAD else did_you_mean(name, known)
            raise SemanticError(f"edl.train has no argument {name}", hint=instead)


def _cluster(workers: int, options: Options) -> Cluster:
    """As it is written; without more said, one worker is this process."""
    waits = options.get("grads_to_wait", 0)
    written = Cluster(
        workers if workers > 1 else 0,
        options.get("num_ps_pods", 0),
        strategy_named(options.get("distribution_strategy", "auto"), waits),
        options.get("local_steps", 1),
        waits,
    )
    for problem in problems(written):
        raise SemanticError(f"{_NAMES[problem.field]}: {problem.message}", hint=problem.hint)
    return written


def _made(model: Any, seed: int) -> Any:
    """The model; of a function or class that makes one, what it makes, with random numbers of the seed."""
    if framework_of(model) is not None or not callable(model):
        return model
    random.seed(seed)
    np.random.seed(seed % 2**32)
    for framework in loaded():
        seed_everything(framework, seed)
    return model()


def _metrics(given: Metrics) -> dict[str, Metric]:
    if isinstance(given, str):
        given = [given]
    pairs: Iterable[tuple[str, str | Metric]] = (
        given.items() if isinstance(given, Mapping) else (("", each) for each in given)
    )
    found = {}
    for name, each in pairs:
        metric = by_name(each, None) if isinstance(each, str) else each
        if not isinstance(metric, Metric):
            raise SemanticError(
                f"the metric {each!r} is a {type(each).__name__}",
                hint='a name such as "auc", or one of edl.metrics',
            )
        found[name or metric.name] = metric
    return found
