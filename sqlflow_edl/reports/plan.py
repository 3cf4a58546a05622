"""Plan of a statement: what would run, as section, name, value and reason.

The reason says where a value comes from: written in the statement, a default, or derived from the rows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from edl.data.source import RowEstimate
from edl.embeddings.placement import is_outside
from edl.embeddings.sizes import FLOAT_BYTES, in_tables, slots, table_memory
from edl.models.fitting import ColumnSummary
from edl.spec import (
    NO_FRAMEWORK,
    TREES,
    Component,
    Feature,
    JobSpec,
    each_label,
    embeddings,
    num_ids,
    sources,
)
from edl.spec.strategy import LARGEST_IN_WORKERS
from sqlflow_edl.analysis import catalog, model_size
from sqlflow_edl.analysis.checks.warning import DataWarning
from sqlflow_edl.analysis.columns.decisions import Reasons
from sqlflow_edl.analysis.models.base import count_columns
from sqlflow_edl.analysis.search.plan import AnyPlan, SearchPlan
from sqlflow_edl.analysis.settings.attribute_dictionary import NO_EFFECT
from sqlflow_edl.analysis.train import TrainingPlan
from sqlflow_edl.reports import search, text

COLUMNS = ("section", "name", "value", "why")
WRITTEN, DEFAULT = "written", "default"

Row = tuple[str, str, str, str]
Rows = Iterator[tuple[str, str, str]]  # name, value, why


@dataclass(frozen=True, slots=True)
class Planned:
    """TRAIN statement planned up to the pinning of its rows. read: the rows that were looked at, if they were."""

    plan: AnyPlan
    spec: JobSpec
    columns: dict[str, ColumnSummary]
    warnings: tuple[DataWarning, ...] = ()
    read: RowEstimate | None = None

    @property
    def reasons(self) -> Reasons:
        """Reasons of the features."""
        return Reasons(self.plan.decisions)


# no sections of a transform
_OF_TRAINING = ("optimizer", "schedule", "loss", "metrics", "callbacks", "training", "size")


def training(planned: Planned) -> list[Row]:
    """Plan a TRAIN statement."""
    plan, spec = planned.plan, planned.spec
    if isinstance(plan, SearchPlan):
        return search.rows(plan, spec, planned.warnings)
    notes = (*plan.statement.warnings, *(item for item in plan.notes if NO_EFFECT in item))
    sections: tuple[tuple[str, Rows], ...] = (
        ("model", _model(plan, spec)),
        ("label", _label(planned)),
        ("forecast", _forecast(plan, spec)),
        ("features", _features(planned, plan)),
        ("left out", ((", ".join(d.columns), "", d.why) for d in plan.decisions if d.fitted is None)),
        ("warnings", ((item.about, item.message, item.advice) for item in planned.warnings)),
        ("optimizer", _optimizer(plan, spec)),
        ("schedule", _schedule(plan, spec.schedule)),
        ("loss", _component(plan, "loss", spec.loss)),
        ("metrics", _metrics(plan, spec)),
        ("callbacks", _callbacks(plan)),
        ("rows", _rows(plan, spec)),
        ("training", _training(plan, spec)),
        ("size", _size(spec)),
        ("note", ((str(number), note, "") for number, note in enumerate(notes, 1))),
    )
    left_out = _OF_TRAINING if spec.framework == NO_FRAMEWORK else ()
    return [
        (section, name, value, why)
        for section, rows in sections
        if section not in left_out
        for name, value, why in rows
    ]


def use(spec: JobSpec, source: str, *, append: bool = False) -> list[Row]:
    """Plan a PREDICT, EVALUATE or EXPLAIN statement. source: URL of the data source. append: to the table."""
    rows = [
        ("model", spec.trained_model, f"{text.model(spec)} in {spec.framework}", ""),
        *(
            (
                "features",
                text.columns(feature),
                text.feature(feature, text.column_types(spec.query)),
                "the model's",
            )
            for feature in spec.features
        ),
        *(("label", one_label.column, text.label(one_label), "") for one_label in each_label(spec.label)),
        *(("metrics", name, "", "") for name in spec.metrics if spec.kind == "evaluate"),
        *([("report", "", spec.report, WRITTEN)] if spec.report != "figures" else []),
        *_explanation(spec),
        ("batch_size", "", f"{spec.batch_size:,}", ""),
        *(("workers", "", value, why) for value, why in _workers(spec)),
    ]
    if spec.output.name:
        what = "rows added to a table" if append else "a table"
        rows.append(("result", spec.output.name, f"{what} in {source}", ""))
    else:
        rows.append(("result", "", "a result set", "no table is named"))
    return rows


def _explanation(spec: JobSpec) -> Iterator[Row]:
    """List the subject of the explanation and its cost."""
    if spec.explanation is None:
        return
    rows = spec.explanation.level == "rows"
    what = "contribution of each column in each row" if rows else "importance of each column over all rows"
    predictions = 1 + 2 * spec.explanation.samples * (len(spec.columns) - 1)
    yield "explanation", "level", spec.explanation.level, what
    if spec.explanation.rows:
        yield "explanation", "rows", f"up to {spec.explanation.rows:,}", "drawn at random from the query"
    if spec.framework in TREES:
        return
    of = "rows of the query" if spec.explanation.background else "rows that the model keeps of its training"
    yield "explanation", "background", of, "with which each row is compared"
    cost = f"{'up to ' * (predictions > 1)}{predictions:,} prediction{'' if predictions == 1 else 's'} for each row"
    if spec.explanation.method:
        yield "explanation", "method", "expected gradients", "of numbers; ids are exchanged one after another"
        cost = f"{spec.explanation.samples:,} gradients for each row"
    yield "explanation", "samples", f"{spec.explanation.samples:,}", cost


def _model(plan: TrainingPlan, spec: JobSpec) -> Rows:
    chosen = plan.settings.model is None
    entry = catalog.MODELS.find(spec.model.name) or plan.settings.model
    yield text.model(spec), entry.doc if entry else "", "chosen by the label" if chosen else WRITTEN
    yield "framework", spec.framework, _framework_origin(plan, spec)
    wide = {} if entry is None or plan.parent else entry.defaults_of_width(spec.features)
    yield from _by_width(_parameters(plan, "model", spec.model), "model", wide, spec)
    yield "name", spec.output.name, "a new version under that name"


def _framework_origin(plan: TrainingPlan, spec: JobSpec) -> str:
    is_written, usual = "model.framework" in plan.settings.resolved, plan.settings.choice.framework
    if is_written or plan.parent or spec.framework == usual:
        return _origin(plan, "model.framework")
    return f"{usual} has no loss {spec.loss.name}"


def _label(planned: Planned) -> Rows:
    for label in each_label(planned.spec.label):
        seen = planned.columns.get(label.column)
        kind = "a logit per class" if label.has_classes and not label.is_binary else "one output"
        if label.clusters:
            kind = "a distance per cluster"
        if label.dimensions:
            kind = "the numbers and three errors"
        yield label.column, text.label(label), f"{kind}; {text.nulls(seen)}" if seen else kind


def _forecast(plan: TrainingPlan, spec: JobSpec) -> Rows:
    for name, value in text.forecast(spec.forecast):
        yield name, value, WRITTEN if f"forecast.{name}" in plan.settings.resolved else "by the rows"


def _features(planned: Planned, plan: TrainingPlan) -> Rows:
    reasons, types = planned.reasons, text.column_types(planned.spec.query)
    for feature, place in text.features_with_inputs(planned.spec):
        seen = (planned.columns.get(str(source)) for source in sources(feature))
        nulls = [text.nulls(column) for column in seen if column is not None and column.nulls]
        why = "; ".join(filter(None, [reasons.find(feature), *place, _describe_placement(feature), *nulls]))
        yield text.columns(feature), text.feature(feature, types), why


def _describe_placement(feature: Feature) -> str:
    """Describe where the vectors of a large category are kept."""
    outside = (is_outside(num_ids(vectors.category), vectors.dim) for vectors in embeddings([feature]))
    return "vectors in a row table, outside of the graph" if any(outside) else ""


def _component(plan: TrainingPlan, kind: str, component: Component) -> Rows:
    yield component.name, "", _describe_origin(plan, kind) or _origin(plan, kind)
    yield from _parameters(plan, kind, component)


def _optimizer(plan: TrainingPlan, spec: JobSpec) -> Rows:
    """List the optimizer and its parameters, some of which depend on the number of columns."""
    example = plan.settings.choice.example
    wide = {} if "optimizer" in plan.settings.resolved else example.defaults_of_width(spec.features)
    yield from _by_width(_component(plan, "optimizer", spec.optimizer), "optimizer", wide, spec)


def _by_width(rows: Rows, kind: str, wide: Collection[str], spec: JobSpec) -> Rows:
    """Name the number of columns as the reason of the defaults that depend on it."""
    for name, value, why in rows:
        depends = why == DEFAULT and f"{kind}.{name}" in wide
        yield name, value, f"default for {count_columns(spec.features):,} columns" if depends else why


def _describe_origin(plan: TrainingPlan, function: str) -> str:
    """Return the origin of a function that the model's module provides; empty for other functions."""
    return "from the model's module" if function in plan.settings.functions else ""


def _metrics(plan: TrainingPlan, spec: JobSpec) -> Rows:
    if whose := _describe_origin(plan, "eval_metrics_fn"):
        yield f"{spec.own.module if spec.own else ''}.eval_metrics_fn", "", whose
    yield from ((name, "", _origin(plan, "validation.metrics")) for name in spec.metrics)


def _callbacks(plan: TrainingPlan) -> Rows:
    if (whose := _describe_origin(plan, "callbacks")) and plan.settings.choice.own:
        yield f"{plan.settings.choice.own.module}.callbacks", "", whose


def _schedule(plan: TrainingPlan, schedule: Component | None) -> Rows:
    """List the schedule of the learning rate, unless the rate is constant."""
    if schedule is not None:
        yield schedule.name, "", _origin(plan, "optimizer.schedule")
        yield from _parameters(plan, "schedule", schedule)


def _parameters(plan: TrainingPlan, prefix: str, component: Component) -> Rows:
    for name, value in component.params.items():
        yield name, text.value(value), _origin(plan, f"{prefix}.{name}")


def _rows(plan: TrainingPlan, spec: JobSpec) -> Rows:
    rows = spec.rows
    yield "total", f"{rows.total:,}", "counted now; pinned when the training starts"
    yield "training", f"{rows.training:,}", ""
    if spec.framework == NO_FRAMEWORK:
        return
    if spec.forecast is not None:
        yield "validation", f"{rows.validation:,}", f"the backtest, {text.backtest(spec.forecast)}"
        return
    few = "none for fewer than 100 rows" if not rows.validation else "a tenth"
    origin = "by a query of their own" if plan.held_out.query else WRITTEN
    yield (
        "validation",
        f"{rows.validation:,}",
        origin if plan.held_out.span or plan.splitting.mark else f"{DEFAULT}: {few}",
    )
    if spec.split is not None and rows.validation:
        splitting = plan.splitting
        why = WRITTEN if splitting.span else f"{DEFAULT}: {splitting.why}"
        units = "" if splitting.mark else "; equal rows are on one side"
        yield "split", text.split(spec.split), f"{why}{units}"


def _training(plan: TrainingPlan, spec: JobSpec) -> Rows:
    training = spec.training
    if spec.framework in TREES:
        yield "rounds", f"{training.epochs:,}", _origin(plan, "train.num_boost_round")
        yield from _settings(plan, spec)
        return
    per_epoch = -(-spec.rows.training // training.batch_size)
    steps = per_epoch * training.epochs
    by_rows = f"{DEFAULT} for {spec.rows.training:,} rows"
    yield "batch_size", f"{training.batch_size:,}", _origin(plan, "train.batch_size", by_rows)
    yield "epochs", f"{training.epochs:,}", _origin(plan, "train.epoch", by_rows)
    limit = training.max_steps
    yield (
        "steps",
        f"{min(steps, limit) if limit else steps:,}",
        f"train.max_steps = {limit:,}" if limit and limit < steps else f"{per_epoch:,} per epoch",
    )
    yield from _settings(plan, spec)


def _settings(plan: TrainingPlan, spec: JobSpec) -> Rows:
    training = spec.training
    for name, value in text.settings(training):
        yield name, value, _origin(plan, f"train.{name}")
    for name, value in (("device", spec.device), ("precision", spec.precision)):
        if f"train.{name}" in plan.settings.resolved:
            yield name, value, WRITTEN
    if spec.weights is not None:
        yield "weight_column", spec.weights.column, WRITTEN
    yield from _sharing(plan, spec)


def _sharing(plan: TrainingPlan, spec: JobSpec) -> Rows:
    """List the training instances and the strategy for their gradients."""
    cluster = spec.cluster
    for value, why in _workers(spec):
        yield "workers", value, why
    if cluster.max_workers:
        yield (
            "max_workers",
            f"{cluster.max_workers:,}",
            "an automatic number, by the measured rows per second",
        )
    if cluster.strategy == "local":
        yield "strategy", "local", _origin(plan, "train.strategy", "one worker holds the parameters")
        return
    if cluster.strategy == "allreduce":
        yield "strategy", "allreduce", _origin(plan, "train.strategy", _why_all_reduce(spec))
        return
    servers = _origin(plan, "train.num_ps", "one for two workers")
    yield "parameter servers", f"{cluster.parameter_servers:,}", servers
    yield "strategy", cluster.strategy, _origin(plan, "train.strategy", _why_servers(spec))
    if cluster.strategy == "sync":
        waits = _origin(plan, "train.grads_to_wait", "one of each worker")
        yield (
            "grads_to_wait",
            f"{cluster.grads_to_wait:,}",
            f"{waits}; batch_size is the rows of one gradient",
        )
    else:
        yield "local_steps", f"{cluster.local_steps:,}", _origin(plan, "train.local_steps")
        if cluster.max_staleness:
            yield "max_staleness", f"{cluster.max_staleness:,}", _origin(plan, "train.max_staleness")
        if cluster.durable_updates != "none":
            yield "durable_updates", cluster.durable_updates, _origin(plan, "train.durable_updates")


def _why_all_reduce(spec: JobSpec) -> str:
    """Explain why each worker holds all parameters, with their sizes."""
    if spec.framework in TREES:
        return "each worker has its share of the rows, and all have the trees"
    if memory := table_memory(spec):
        largest = text.size(LARGEST_IN_WORKERS)
        return f"{text.size(memory)} of embedding rows and slots, up to {largest}, fit each worker"
    count = model_size.parameters(spec)
    of = "" if count is None else f", {text.size(count * FLOAT_BYTES)}"
    return f"each worker holds all parameters{of}"


def _why_servers(spec: JobSpec) -> str:
    """Explain why parameters are on servers, with their sizes."""
    outside = in_tables(spec)
    count = model_size.parameters(spec)
    if outside:
        dense = "" if count is None else f", beside {text.size((count - outside) * FLOAT_BYTES)} of others"
        return f"{text.size(table_memory(spec))} of embedding rows and slots in tables{dense}"
    of = "" if count is None else f" of {text.size(count * FLOAT_BYTES)}"
    return f"workers share the parameters{of}"


def _workers(spec: JobSpec) -> Iterator[tuple[str, str]]:
    """List the number of workers; empty for a job in one process."""
    if spec.cluster.workers:
        yield f"{spec.cluster.workers:,}", "with a master"


def _size(spec: JobSpec) -> Rows:
    yield "inputs", f"{model_size.input_width(spec):,}", "numbers per row"
    if spec.framework in TREES:
        return
    count = model_size.parameters(spec)
    if count is None:
        yield "parameters", "unknown", "known when the framework builds the model"
        return
    yield "parameters", f"{count:,}", "weights of the layers, from their widths"
    kept = slots(spec.optimizer)
    of = f"parameters, gradients and {kept} more of each in {spec.optimizer.name}"
    yield "memory", text.size(model_size.memory(spec) or 0), of if kept else "parameters and gradients"


def _origin(plan: TrainingPlan, attribute: str, default: str = DEFAULT) -> str:
    if plan.parent and attribute.startswith("model."):
        default = f"of {plan.parent.reference}"
    return WRITTEN if attribute in plan.settings.resolved else default
