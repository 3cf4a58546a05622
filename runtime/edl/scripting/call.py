"""Conversion of a call of `edl.train` to a job: its arguments become a JobSpec, and the functions of a program."""

from __future__ import annotations

import inspect
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec
import numpy as np

from edl.callbacks import Callback
from edl.cli.cluster_arguments import strategy_named
from edl.errors import SemanticError
from edl.features.labels import probabilities
from edl.frameworks import seed_everything
from edl.frameworks.objects import framework_of, loaded_frameworks, objects
from edl.metrics import Metric, by_name
from edl.program import Program
from edl.program.contract import check
from edl.scripting.datasets import Dataset, Feed, dataset
from edl.scripting.options import Options, describe_value, whole
from edl.spec import Checkpoints, Cluster, Component, Evaluation, JobSpec, Query, RawLabel, Rows, Training
from edl.spec.job import ROW_LIMITS, Framework
from edl.spec.strategy import problems

_NAMES = {
    "workers": "workers",
    "parameter_servers": "num_ps_pods",
    "strategy": "distribution_strategy",
    "local_steps": "local_steps",
    "grads_to_wait": "grads_to_wait",
    "max_staleness": "max_staleness",
    "max_workers": "max_workers",
    "durable_updates": "durable_updates",
}  # field of Cluster -> its name here

Metrics = Iterable[str | Metric] | Mapping[str, str | Metric]
Rate = float | Callable[[Any], Any]


@dataclass(frozen=True)
class TrainCall:
    """Checked arguments of a call. `file` contains the call; errors of the script's functions refer to it."""

    framework: Framework
    model: Any
    rows: Dataset
    functions: Mapping[str, Callable[..., Any]]
    file: Path

    def program(self, spec: JobSpec, folder: Path) -> Program:
        """Return the call as a program. Raises JobError if a function does not accept its arguments."""
        module = ModuleType("edl_call")
        module.__file__ = str(self.file)
        functions = check(module, self.framework, str(self.file), {**self.functions, **self.rows.functions})
        return Program(folder, spec, module, functions, edited=True)


def call(
    model: Any,
    data: Any,
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
) -> TrainCall:
    """Check the arguments of `edl.train`; `options` are checked. Raises SemanticError for an unusable argument."""
    seed = options.get("seed", 0)
    model = _make_model(model, seed)
    framework = framework_of(model)
    if framework is None:
        raise SemanticError(
            f"the model is a {type(model).__qualname__}, neither a keras.Model nor a torch.nn.Module",
            hint="give such a model, or a function without parameters that makes one",
        )
    apart = None if _share(validation) is not None else validation
    rows = dataset(data, apart, framework, feed, shuffle=options.get("shuffle", True), seed=seed)
    ours = objects(framework)
    measured = _metrics(metrics)
    rate = _rate(learning_rate, optimizer)
    if not isinstance(loss, str) and (inspect.isclass(loss) or not callable(loss)):
        hint = "give an object, a function, or a name such as mse"
        raise SemanticError(f"the loss is {describe_value(loss)}", hint=hint)
    if not isinstance(callbacks, Iterable):
        raise SemanticError(f"callbacks is {describe_value(callbacks)}", hint="give a list of them")
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
    return TrainCall(framework, model, rows, functions, file)


def job_spec(
    called: TrainCall, epochs: int, batch_size: int, validation: Any, workers: int, options: Options
) -> JobSpec:
    """Return the JobSpec of the call, without its rows. Raises SemanticError for an invalid number."""
    share = _share(validation)
    measured = validation is not None and share != 0
    for name in ("early_stopping", "keep", "evaluation_steps"):
        if name in options and options[name] not in (0, "last") and not measured:
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
            epochs=whole("epochs", epochs, 1),
            batch_size=whole("batch_size", batch_size, 1),
            shuffle=options.get("shuffle", True),
            seed=options.get("seed", 0),
            max_steps=options.get("max_step", 0),
            minibatches_per_task=options.get("num_minibatches_per_task", 0),
            validation_fraction=share or 0.0,
            early_stopping=options.get("early_stopping", 0),
            keep=options.get("keep", "last"),
            **{name: options.get(name, 0) for name in ROW_LIMITS},  # type: ignore[arg-type]  # checked
        ),
        evaluation=Evaluation(steps=options.get("evaluation_steps", 0)),
        checkpoints=Checkpoints(
            steps=options.get("checkpoint_steps", 0),
            keep=options.get("keep_checkpoint_max", Checkpoints().keep),
        ),
        cluster=_cluster(whole("workers", workers, 1), options),
        device=options.get("device", "auto"),
        precision=options.get("precision", "float32"),
    )


def _share(validation: object) -> float | None:
    """Return the validation fraction, or None for given rows or none.

    Raises SemanticError for an invalid fraction.
    """
    if not isinstance(validation, Real):
        return None
    share = float(validation)
    if not 0 <= share < 1:
        raise SemanticError(f"validation is {validation}; a fraction of the rows is between 0 and 1")
    return share


def _rate(learning_rate: Rate | None, optimizer: object) -> float | None:
    """Return the learning rate of an optimizer by name."""
    if learning_rate is None or callable(learning_rate):
        return None
    if not isinstance(learning_rate, Real):
        hint = "give a number, or a function of the steps' numbers"
        raise SemanticError(f"learning_rate is {describe_value(learning_rate)}", hint=hint)
    if not isinstance(optimizer, str):
        raise SemanticError(
            "learning_rate needs an optimizer by name", hint="pass it to the optimizer itself"
        )
    return float(learning_rate)


def _cluster(workers: int, options: Options) -> Cluster:
    """Return the cluster settings; one worker without other settings is this process."""
    waits = options.get("grads_to_wait", 0)
    settings = Cluster(
        workers if workers > 1 else 0,
        options.get("num_ps_pods", 0),
        strategy_named(options.get("distribution_strategy", "auto"), waits),
        options.get("local_steps", 1),
        waits,
        int(options.get("priority", 0)),  # checked
        options.get("task_timeout", 0.0),
        max_staleness=options.get("max_staleness", 0),
        durable_updates=options.get("durable_updates", "none"),
        max_workers=options.get("max_workers") or msgspec.UNSET,
    )
    for problem in problems(settings):
        raise SemanticError(f"{_NAMES[problem.field]}: {problem.message}", hint=problem.hint)
    return settings


def _make_model(model: Any, seed: int) -> Any:
    """Return the model; a function or class is called to make it, with seeded random numbers."""
    if framework_of(model) is not None or not callable(model):
        return model
    random.seed(seed)
    np.random.seed(seed % 2**32)
    for framework in loaded_frameworks():
        seed_everything(framework, seed)
    return model()


def _metrics(metrics: Metrics) -> dict[str, Metric]:
    if isinstance(metrics, str):
        metrics = [metrics]
    pairs: Iterable[tuple[str, str | Metric]] = (
        metrics.items() if isinstance(metrics, Mapping) else (("", item) for item in metrics)
    )
    by_title = {}
    for name, item in pairs:
        metric = by_name(item, None) if isinstance(item, str) else item
        if not isinstance(metric, Metric):
            raise SemanticError(
                f"the metric {item!r} is a {type(item).__name__}",
                hint='a name such as "auc", or one of edl.metrics',
            )
        by_title[name or metric.name] = metric
    return by_title
