"""JobSpec of a TRAIN over columns without known rows, such as the columns of a schema file.

All that rows decide otherwise must be written: the classes of the label, the figures of the features, the length of the
training. Any table of `FEWEST` rows or more would give this JobSpec, but for the numbers of rows.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace

import msgspec
import numpy as np

from edl import spec
from edl.errors import SemanticError, Span, SQLFlowError, raise_all
from sqlflow_edl.analysis import expressions, labels
from sqlflow_edl.analysis.columns.decisions import Decision
from sqlflow_edl.analysis.columns.drafts import Draft
from sqlflow_edl.analysis.rows.increments import INCREMENTAL
from sqlflow_edl.analysis.rows.row_weights import CLASSES
from sqlflow_edl.analysis.rows.row_weights import COLUMN as WEIGHT
from sqlflow_edl.analysis.rows.splits import SPLIT
from sqlflow_edl.analysis.schema import ColumnType
from sqlflow_edl.analysis.search.plan import AnyPlan, SearchPlan
from sqlflow_edl.analysis.statistics.fitting import ColumnStatistics, ValueCounts
from sqlflow_edl.analysis.train import TrainingPlan
from sqlflow_edl.syntax.ast import MapValue

FEWEST, MANY = 1_000, 1_000_000  # numbers of rows between which no default may differ
_ROWS = "give rows of the table in the schema file: INSERT INTO t VALUES …"
_MOST = 6  # columns of a message

# parts of a JobSpec with defaults that follow from the number of rows -> what to write
_WRITTEN = {
    "batch_size": "train.batch_size",
    "epochs": "{length}",
    "schedule": "optimizer.decay_steps, or optimizer.schedule = constant",
    "model": "the parameters of the model",
    "optimizer": "the parameters of the optimizer",
}


def fit(plan: AnyPlan) -> tuple[AnyPlan, spec.JobSpec]:
    """Return the plan with its decisions, and the JobSpec. Raises an error for each thing that only rows tell, all
    together.
    """
    span = plan.statement.select_span
    if isinstance(plan, SearchPlan):
        raise _unknown_error("which model is best", span, "name one without folds: TO TRAIN DNNClassifier")
    classes: dict[str, labels.Values] = {}
    raise_all([*_of_plan(plan), *_of_labels(plan, classes), *_of_features(plan)])
    (few, _), (many, decisions) = (_fit_counts(plan, classes, rows) for rows in (FEWEST, MANY))
    raise_all(list(_of_defaults(plan, few, many)))
    return replace(plan, decisions=decisions), msgspec.structs.replace(many, rows=spec.Rows(False, 0, 0, 0))


def _unknown_error(what: str, span: Span | None, hint: str = "") -> SemanticError:
    return SemanticError(f"only rows tell {what}", span=span, hint=f"{hint}, or {_ROWS}" if hint else _ROWS)


def _of_plan(plan: TrainingPlan) -> Iterator[SQLFlowError]:
    """Yield errors for clauses and attributes that need rows whatever else is written."""
    settings = plan.settings
    if plan.parent is not None:
        yield _unknown_error("how rows differ from those of the model", plan.parent.span, "leave USING out")
    if plan.forecast is not None:
        yield _unknown_error(
            "the step and the season of a series", plan.statement.select_span, "train another model"
        )
    if plan.query.increment:
        yield _unknown_error("which rows are new", settings.span(INCREMENTAL), "leave it out")
    if plan.weight:
        yield _unknown_error("the mean of the weights", settings.span(WEIGHT), "leave it out")
    classes = settings.resolved.get(CLASSES)
    if classes is not None and not isinstance(classes.written.value, MapValue):
        yield _unknown_error(
            "the shares of the classes", settings.span(CLASSES), "write the weight of each class"
        )
    if time := plan.splitting.time:
        yield _unknown_error(
            f"whether {time} orders the rows", plan.statement.select_span, f"write {SPLIT} = time or random"
        )


def _of_labels(plan: TrainingPlan, classes: dict[str, labels.Values]) -> Iterator[SQLFlowError]:
    """Put the classes of each label into `classes`; yield errors for labels that only rows tell."""
    model, count = plan.settings.model, plan.settings.get("model.n_classes")
    task = model.task if model else None
    spans = {plan.label: plan.label_span, **plan.more_labels} if plan.label else {}
    for label, span in spans.items():
        kind, is_integer = plan.schema.type(label), plan.schema.is_integer(label)
        if kind is ColumnType.BOOLEAN and task != "regression":
            classes[label] = (False, True)
        elif task == "classification" and is_integer and isinstance(count, int):
            classes[label] = tuple(range(count))
        elif task == "classification" and is_integer:
            yield _unknown_error(
                f"the classes of {label}", span, "write model.n_classes = 3 for the classes 0, 1 and 2"
            )
        elif task == "classification" or kind is not ColumnType.NUMBER:
            yield _unknown_error(f"the classes of {label}", span, "select a whole number or a boolean")
        elif task is None and is_integer:
            yield _unknown_error(
                f"whether {label} has classes", span, "name a Classifier, with model.n_classes"
            )
        elif task in (None, "regression"):
            yield _unknown_error(f"the mean and the deviation of {label}", span)


def _of_features(plan: TrainingPlan) -> Iterator[SQLFlowError]:
    """Yield errors for the features that are fitted to rows: one for each item, and one for all derived features."""
    derived = [draft for draft in plan.drafts if draft.why]
    for draft in plan.drafts:
        if not draft.why and _is_fitted(plan, draft):
            names = ", ".join(dict.fromkeys(draft.columns))
            yield _unknown_error(
                f"the values of {names}, which the feature is fitted to",
                draft.span,
                _suggest_function(plan, draft),
            )
    if derived:
        names_found = list(dict.fromkeys(name for draft in derived for name in draft.columns))
        names = ", ".join(names_found[:_MOST]) + (
            f" and {len(names_found) - _MOST} more" if names_found[_MOST:] else ""
        )
        what = f"which feature{'s' if names_found[1:] else ''} {names} become{'' if names_found[1:] else 's'}"
        yield _unknown_error(what, plan.statement.select_span, _suggest_function(plan, derived[0]))


def _is_fitted(plan: TrainingPlan, draft: Draft) -> bool:
    """Return True if two tables of other values make another feature of it."""
    try:
        one, other = (draft.fit(_statistics(plan, guess)) for guess in range(2))
    except SQLFlowError:
        return True
    return one != other


def _statistics(plan: TrainingPlan, guess: int) -> dict[str, ColumnStatistics]:
    """Return made-up statistics of every column. The guesses 0 and 1 differ in all figures."""

    def made_up(values: tuple[str, ...] | tuple[int, ...]) -> ColumnStatistics:
        mean = 0.4 + guess / 8
        return ColumnStatistics(
            FEWEST,
            nulls=guess,
            max=float(guess),
            mean=mean,
            std=mean,
            numbers=FEWEST,
            counts=ValueCounts(values, (FEWEST // 2,) * len(values)),
            distinct=FEWEST * (1 + 99 * guess),
            longest=1 + guess,
            years=(mean, mean),
            sample=np.array([0, mean, 1]),
            vector=((mean,), (mean,)),
            state=f'"{guess}"',
        )

    numbers, texts = made_up((guess, 2)), made_up((f"a{guess}", "b"))
    cells = {cell: texts for draft in plan.drafts for part in (draft, *draft.leaves) for cell in part.lists}
    names = (name for name in plan.schema.names if plan.schema.type(name) is ColumnType.TEXT)
    by_name = {name: replace(texts, lists=cells) for name in names}
    return defaultdict(lambda: replace(numbers, lists=cells), by_name)


def _suggest_function(plan: TrainingPlan, draft: Draft) -> str:
    """Return a hint with a function that needs no rows of such a column."""
    column = draft.columns[0]
    if column in plan.computed:
        return "write numbers in the place of statistics"
    name = expressions.argument(column)
    kind = plan.schema.type(column)
    if kind is ColumnType.NUMBER:
        return f"write COLUMN BUCKET({name}, [1, 10, 100])" + (
            f" or CATEGORY_ID({name}, 1000)" if plan.schema.is_integer(column) else ""
        )
    return f"write COLUMN CATEGORY_HASH({name}, 1000)" if kind is ColumnType.TEXT else f"do not select {name}"


def _fit_counts(
    plan: TrainingPlan, classes: Mapping[str, labels.Values], total: int
) -> tuple[spec.JobSpec, list[Decision]]:
    """Return the JobSpec for so many rows, and the decisions on its columns."""
    label_classes, first = classes.get(plan.label), plan.notes[:]
    settled = (
        plan.splitting.settle(None, plan.label, plan.has_classes(label_classes))
        if plan.label
        else plan.splitting
    )
    others = {name: classes.get(name) for name in plan.more_labels}
    plan = replace(plan, splitting=settled, more_classes=others, notes=first, decisions=[])
    last = plan.held_out.rows(total)
    more = total // 10 if plan.held_out.query else 0
    rows = spec.Rows(False, total + more, total - last, last + more)
    statistics = _statistics(plan, 0)
    statistics |= dict.fromkeys((plan.label, *others), ColumnStatistics(total, max=1.0))
    return plan.fit(statistics, rows, label_classes), plan.decisions


def _of_defaults(plan: TrainingPlan, few: spec.JobSpec, many: spec.JobSpec) -> Iterator[SQLFlowError]:
    """Yield an error for the parts of the JobSpec that follow from the number of rows."""
    length = "train.num_boost_round" if plan.settings.is_trees else "train.epoch"
    lengths = [
        what.format(length=length) for part, what in _WRITTEN.items() if _part(few, part) != _part(many, part)
    ]
    if lengths:
        span = plan.statement.model.span if plan.statement.model else plan.statement.select_span
        yield _unknown_error("how long it is to be trained", span, f"write {', '.join(lengths)}")


def _part(job: spec.JobSpec, name: str) -> object:
    return getattr(job.training if hasattr(job.training, name) else job, name)
