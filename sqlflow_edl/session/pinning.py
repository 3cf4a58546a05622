"""Rows of a TRAIN statement: the step from its plan to its JobSpec.

`pin_and_fit` pins the rows, fits the features to the training rows and checks the validation rows. `look` makes the
same JobSpec from a look at the queries and pins nothing. Both go the way of `_TrainingRows.fit`.
"""

from __future__ import annotations

import contextlib
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from edl import data, spec
from edl.data.pinned import read_pinned, write_pinned
from edl.data.readers import JoinedReader
from edl.errors import SemanticError, Span, SQLFlowError, UnfitValueError
from edl.features import own_functions
from edl.features.computed import arguments, with_computed
from edl.forecasting import ExamplesReader
from edl.jobs.job_folder import JobFolder
from edl.models.fitting import write_fitting
from edl.sources.pinning_cost import RowMeter
from edl.spec.computed import functions
from sqlflow_edl.analysis import expressions, labels, without_rows
from sqlflow_edl.analysis.checks.data import DataChecks
from sqlflow_edl.analysis.checks.entities import similar_groups
from sqlflow_edl.analysis.checks.warning import DataWarning
from sqlflow_edl.analysis.columns.computed import fix_statistics, is_fixed, state_of
from sqlflow_edl.analysis.columns.decisions import record_fitting, summaries
from sqlflow_edl.analysis.columns.derive import list_readings
from sqlflow_edl.analysis.columns.drafts import Statistics
from sqlflow_edl.analysis.rows import increments, splits, validation
from sqlflow_edl.analysis.rows.marked_rows import fit_marked_rows
from sqlflow_edl.analysis.rows.row_filter import RowFilter
from sqlflow_edl.analysis.schema import ColumnType
from sqlflow_edl.analysis.search.plan import AnyPlan, SearchPlan
from sqlflow_edl.analysis.statistics.encoding_statistics import with_statistics
from sqlflow_edl.analysis.statistics.fitting import ColumnStatistics, Want, collect, distinct_values
from sqlflow_edl.analysis.train import TrainingPlan
from sqlflow_edl.errors.spans import set_missing_spans, shift_spans
from sqlflow_edl.reports.plan import Planned
from sqlflow_edl.session.observer import Observer


@dataclass(frozen=True, slots=True)
class PinnedTraining:
    """Training with pinned rows. spec: JobSpec fitted to them. warnings: findings of the data checks."""

    pinned: data.Pinned
    spec: spec.JobSpec
    warnings: tuple[DataWarning, ...]


def pin_and_fit(source: data.Source, plan: AnyPlan, job: JobFolder, observer: Observer) -> PinnedTraining:
    """Pin the rows of the plan in the job's folder, fit the features to them, and check them."""
    checks = plan.checks()
    observer.doing("pinning the rows")
    plan = _without_skipped_rows(source, plan)
    began = time.monotonic()
    pinned, plan, classes = _pin(source, plan, job)
    if isinstance(plan, SearchPlan):
        smaller = plan.reduce_after_pinning(pinned.rows, time.monotonic() - began)
        if smaller is not None:
            source.unpin(pinned, job.rows)
            pinned, plan, classes = _pin(source, smaller, job)
    try:
        _hold_out(plan, checks, partial(_pin_held_out, source, job))
        observer.doing("fitting the features")
        rows = _PinnedRows(plan, checks, pinned, classes, data.open_reader(pinned, job.rows))
        planned = rows.fit()
        fitted = with_statistics(planned.spec, rows.reader.read)
        fitted = fit_marked_rows(fitted, plan.settings, partial(rows.reader.read, 0, rows.reader.rows))
    except UnfitValueError:  # after which the plan leaves the column out
        source.unpin(pinned, job.rows)
        raise
    decisions, warnings = planned.plan.decisions, (*planned.warnings, *_check_groups(plan, pinned, job))
    write_fitting(job.rows, record_fitting(planned.columns, decisions, fitted.features, warnings))
    return PinnedTraining(pinned, fitted, warnings)


def reader_of(pinned: data.Pinned, job: JobFolder) -> data.Reader:
    """Open the rows of a training that `pin_and_fit` has pinned; validation rows of a query of their own come last."""
    reader = data.open_reader(pinned, job.rows)
    if not job.validation_rows.is_dir():
        return reader
    validation_reader = data.open_reader(read_pinned(job.validation_rows), job.validation_rows)
    return JoinedReader(reader, validation_reader)


def look(source: data.Source, plan: AnyPlan, *, only_schema: bool = False) -> Planned:
    """Make the JobSpec from a look at the queries, without pinning rows.

    only_schema: the source is a schema file; its tables may have no rows.
    """
    if only_schema and not any(batch.num_rows for batch in source.stream(plan.statement.select)):
        return Planned(*without_rows.fit(plan), {})
    checks = plan.checks()
    rows = _LookedRows(_without_skipped_rows(source, plan), checks, source)
    planned = rows.fit()
    return replace(planned, read=rows.meters[0].estimate())


class _TrainingRows(ABC):
    """Rows of a training, by which its plan becomes a JobSpec: pinned, or looked at.

    plan: with what the rows show of it: the steps of a series, the split that suits them. held_out: number of
    validation rows among them, None until the statistics tell.
    """

    def __init__(self, plan: AnyPlan, checks: DataChecks, held_out: int | None = None) -> None:
        self.plan = plan
        self.checks = checks
        self.held_out = held_out

    def fit(self) -> Planned:
        """Fit the plan to the rows, and check them."""
        plan = self.plan
        with self.locate_errors():
            if isinstance(plan, TrainingPlan) and plan.forecast:
                self.plan, examples = plan.fit_series(self.read_all())
                self.held_out = examples.rows - examples.training
                self.take_examples(examples)
            self.divide()
            if isinstance(self.plan, SearchPlan):
                self.plan = self.plan.generate_features(self.read_some, self.training_rows)
            statistics = _statistics(self.plan, self.checks, self.read_training)
        rows, classes = self.settle(statistics)
        return _fit_plan(self.plan, self.checks, statistics, rows, classes)

    def locate_errors(self) -> contextlib.AbstractContextManager[None]:
        """Return a context that sets the source span of errors of the database."""
        return contextlib.nullcontext()

    @abstractmethod
    def read_all(self) -> Iterable[pa.RecordBatch]:
        """Return all rows of the query."""

    @abstractmethod
    def take_examples(self, examples: ExamplesReader) -> None:
        """Read the examples of a forecast in place of the rows."""

    @abstractmethod
    def divide(self) -> None:
        """Let the checks see the validation rows, if they are known before the statistics."""

    @abstractmethod
    def read_training(self) -> Iterable[pa.RecordBatch]:
        """Return the rows of the statistics."""

    @abstractmethod
    def read_some(self, count: int, columns: list[str]) -> Iterable[pa.RecordBatch]:
        """Return at most about so many rows of the training, with these columns."""

    @property
    def training_rows(self) -> int:
        """Number of training rows after `divide`, or 0 if it is not known."""
        return 0

    @abstractmethod
    def settle(self, statistics: Statistics) -> tuple[spec.Rows, Mapping[str, labels.Values]]:
        """Settle the split in the plan; return the number of rows and the classes of all rows by label."""


class _PinnedRows(_TrainingRows):
    """Pinned rows. classes: of all rows, by label."""

    def __init__(
        self,
        plan: AnyPlan,
        checks: DataChecks,
        pinned: data.Pinned,
        classes: Mapping[str, labels.Values],
        reader: data.Reader,
    ) -> None:
        super().__init__(plan, checks, pinned.validation)
        self.reader = reader
        self._pinned = pinned
        self._classes = classes
        self._rows = spec.Rows(False, 0, 0, 0)

    def read_all(self) -> Iterable[pa.RecordBatch]:
        return self.reader.read(0, self._pinned.rows)

    def take_examples(self, examples: ExamplesReader) -> None:
        self.reader = examples

    def divide(self) -> None:
        reader, plan = self.reader, self.plan
        rows = _rows(plan, reader.rows, self.held_out, self.checks, self._pinned.digest)
        rows = msgspec.structs.replace(rows, blocks=self._pinned.blocks)
        if rows.validation and not plan.held_out.query:
            self.checks.hold_out(reader.read(rows.training, reader.rows, plan.columns))
        self._rows = rows

    def read_training(self) -> Iterable[pa.RecordBatch]:
        return self.reader.read(0, self._rows.training, self.plan.columns)

    def read_some(self, count: int, columns: list[str]) -> Iterable[pa.RecordBatch]:
        return self.reader.read(0, min(count, self._rows.training), columns)

    @property
    def training_rows(self) -> int:
        return self._rows.training

    def settle(self, statistics: Statistics) -> tuple[spec.Rows, Mapping[str, labels.Values]]:
        self.plan = _with_since(self.plan, self.reader, self._rows)
        return self._rows, self._classes


class _LookedRows(_TrainingRows):
    """Rows of the query in the database, all of which the statistics read. meters: of each time that they are read."""

    def __init__(self, plan: AnyPlan, checks: DataChecks, source: data.Source) -> None:
        super().__init__(plan, checks)
        self.meters: list[RowMeter] = []
        self._source = source
        self._filter = _row_filter(plan, plan.schema.names)
        self._times = splits.Times(plan.splitting.time) if plan.splitting.time else None
        self._read: Callable[[], Iterable[pa.RecordBatch]] = self.read_all

    def locate_errors(self) -> contextlib.AbstractContextManager[None]:
        return self._filter.place(self.plan.statement.select_span)

    def read_all(self) -> Iterable[pa.RecordBatch]:
        self.meters.append(RowMeter())
        return self.meters[-1].watch(self._source.stream(self._filter.of(self.plan.statement.select)))

    def take_examples(self, examples: ExamplesReader) -> None:
        self._read = partial(examples.read, 0, examples.rows)

    def divide(self) -> None:
        """Leave the division to `settle`: it follows from the statistics."""

    def read_training(self) -> Iterable[pa.RecordBatch]:
        return self._times.watch(self._read()) if self._times else self._read()

    def read_some(self, count: int, columns: list[str]) -> Iterable[pa.RecordBatch]:
        for batch in self._source.stream(self._filter.of(self.plan.statement.select)):
            yield batch.slice(0, count).select(columns)
            count -= batch.num_rows
            if count <= 0:
                return

    def settle(self, statistics: Statistics) -> tuple[spec.Rows, Mapping[str, labels.Values]]:
        plan, checks = self.plan, self.checks
        _hold_out(plan, checks, self._source.stream)
        counts = {label: statistics[label].counts for label in plan.all_labels}
        classes = {label: values.classes if values else None for label, values in counts.items()}
        self.plan = plan = _settle_split(plan, self._times, classes)
        label = statistics.get(plan.label) or max(
            statistics.values(),
            key=lambda column_statistics: column_statistics.rows,
            default=ColumnStatistics(),
        )
        held_out = self.held_out
        if held_out is None:
            held_out = splits.expected_counts(plan.splitting, label, statistics.get(plan.splitting.mark))
        if plan.splitting.mark:
            splits.check_found(plan.splitting, label.rows, held_out)
        blocks = splits.estimate_blocks(plan.splitting.split, label.rows)
        if blocks is None:
            return _rows(plan, label.rows, held_out, checks), classes
        rows = _rows(plan, label.rows, blocks.sizes[0] + label.rows - blocks.rows, checks)
        return msgspec.structs.replace(rows, blocks=blocks), classes


def _fit_plan(
    plan: AnyPlan,
    checks: DataChecks,
    statistics: Statistics,
    rows: spec.Rows,
    classes: Mapping[str, labels.Values],
) -> Planned:
    """Fit the plan to the statistics of its rows, and check its labels and its validation rows.

    classes: of all rows, by label.
    """
    label_classes = classes.get(plan.label)
    disorders = checks.disorders(plan.whole_numbers, classes=plan.has_classes(label_classes))
    with_disorder = {name: replace(statistics[name], disorder=value) for name, value in disorders.items()}
    statistics = {**statistics, **with_disorder}
    fitted = plan.fit(statistics, rows, label_classes)
    validation.check_labels(plan.held_out, fitted.label, checks.held_out, plan.schema)
    default_split = fitted.split if plan.splitting.span is None else None
    warnings = tuple(checks.warnings(statistics, fitted, plan.named_columns, default_split))
    wants, unread = plan.wants(), plan.unread_columns(statistics)
    read = {name: want for name, want in wants.items() if name not in unread}
    return Planned(plan, fitted, summaries(statistics, read), warnings)


def _statistics(
    plan: AnyPlan, checks: DataChecks, read: Callable[[], Iterable[pa.RecordBatch]]
) -> dict[str, ColumnStatistics]:
    """Collect the statistics that the plan wants of the training rows.

    Takes one pass, and another where texts turn out to be lists, or where expressions have statistics of the rows in
    them. checks: data checks, which see the rows of the first pass.
    """
    wants, computed = plan.wants(), plan.computed
    later = {name for name, source in computed.items() if not is_fixed(source)}
    early = {name: source for name, source in computed.items() if name not in later}
    rows = _with_computed(plan, checks.watch(read()), early)
    first = {name: want for name, want in wants.items() if name not in later}
    statistics = collect(rows, first, seed=plan.seed, lists=plan.lists())
    if later:
        statistics |= _states(plan, [computed[name] for name in later], statistics, read)
        numbered = dict(_fix_expressions({name: computed[name] for name in later}, statistics))
        statistics |= collect(
            _with_computed(plan, read(), numbered), {name: wants[name] for name in numbered}, seed=plan.seed
        )
    if cells := set(list_readings(wants, statistics)):
        named = {item.column: computed[item.column] for item in cells if item.column in computed}
        of_items = collect(
            _with_computed(plan, read(), named),
            {item.column: Want.NONE for item in cells},
            seed=plan.seed,
            lists=cells,
        )
        for column, items in of_items.items():
            statistics[column] = replace(
                statistics[column], lists={**statistics[column].lists, **items.lists}
            )
    return statistics


def _states(
    plan: AnyPlan,
    sources: Iterable[spec.Computed],
    statistics: Statistics,
    read: Callable[[], Iterable[pa.RecordBatch]],
) -> dict[str, ColumnStatistics]:
    """Fit the functions of a user's own to the training rows; return their states by their texts.

    A function holds its columns of all rows in memory.
    """
    states: dict[str, ColumnStatistics] = {}
    for item, node in ((str(source), operator) for source in sources for operator in functions(source)):
        if node.function is None or (state := state_of(node)) in states:
            continue
        numbered = fix_statistics(node, {**statistics, **states})
        with set_missing_spans(_places(plan).get(item)):
            tables = [arguments(batch, numbered) for batch in read() if batch.num_rows]
            if tables:  # without rows the label has the error
                state_text = own_functions.fit(node.function, pa.concat_tables(tables))
                states[state] = ColumnStatistics(state=state_text)
    return states


def _places(plan: AnyPlan) -> dict[str, Span | None]:
    """Map columns to the place of the first item that reads them."""
    drafts = plan.drafts if isinstance(plan, TrainingPlan) else plan.first_plan.drafts
    return {
        column: draft.span for draft in reversed(drafts) for part in draft.leaves for column in part.columns
    }


def _with_computed(
    plan: AnyPlan, batches: Iterable[pa.RecordBatch], computed: Mapping[str, spec.Computed]
) -> Iterator[pa.RecordBatch]:
    """Yield the batches with computed columns. Their errors have the places of the items that read them."""
    places = _places(plan)
    for batch in batches:
        for name, source in computed.items():
            with set_missing_spans(places.get(name)):
                [batch] = with_computed([batch], {name: source})
        yield batch


def _fix_expressions(
    computed: Mapping[str, spec.Computed], statistics: Statistics
) -> Iterator[tuple[str, spec.Computed]]:
    """Yield expressions with the numbers of their statistics; if one has none, the feature raises the error."""
    for name, source in computed.items():
        with contextlib.suppress(SemanticError):
            yield name, fix_statistics(source, statistics)


def _hold_out(plan: AnyPlan, checks: DataChecks, read: Callable[[str], Iterable[pa.RecordBatch]]) -> None:
    """Let the checks see the rows of the validation query, if there is one. read: the rows of a query."""
    if plan.held_out.query:
        with plan.held_out.locate_errors():
            names = [field.name for field in plan.validation.schema] if plan.validation is not None else []
            rows = RowFilter(plan.bad_rows.conditions, _fitting_columns(plan, names))
            checks.hold_out(read(rows.of(plan.held_out.query)))


def _pin_held_out(source: data.Source, job: JobFolder, query: str) -> Iterator[pa.RecordBatch]:
    """Pin the validation rows of a query of their own, in its order; return them."""
    pinned = source.pin(query, job.validation_rows, seed=0, shuffle=False)
    write_pinned(job.validation_rows, pinned)
    return data.open_reader(pinned, job.validation_rows).read(0, pinned.rows)


def _check_groups(plan: AnyPlan, pinned: data.Pinned, job: JobFolder) -> Iterator[DataWarning]:
    """Yield warnings about the groups of a split."""
    group = plan.splitting.group
    if group and plan.schema.type(group) is ColumnType.TEXT:
        batches = data.open_reader(pinned, job.rows).read(0, pinned.rows, [group])
        yield from similar_groups(group, distinct_values(batches, group) or ())


def _pin(
    source: data.Source, plan: AnyPlan, job: JobFolder
) -> tuple[data.Pinned, AnyPlan, dict[str, labels.Values]]:
    """Pin the rows, again if they show that another split suits them.

    Return them, the plan with its split, and the classes of all rows by label.
    """
    pin = partial(_pin_rows, source, plan, job)
    pinned = pin(split=plan.splitting.split)
    reader = data.open_reader(pinned, job.rows)
    times = splits.Times(plan.splitting.time) if plan.splitting.time else None
    if times is not None:
        deque(times.watch(reader.read(0, pinned.rows, [plan.splitting.time])), maxlen=0)
    classes = {name: distinct_values(reader.read(0, pinned.rows, [name]), name) for name in plan.all_labels}
    try:
        settled = _settle_split(plan, times, classes)
    except SQLFlowError:
        source.unpin(pinned, job.rows)
        raise
    if settled.splitting.split != plan.splitting.split:
        source.unpin(pinned, job.rows)
        pinned = pin(split=settled.splitting.split)
    splits.check_found(settled.splitting, pinned.rows, pinned.validation)
    return pinned, settled, classes


def _pin_rows(source: data.Source, plan: AnyPlan, job: JobFolder, split: spec.Split | None) -> data.Pinned:
    """Pin the rows of the plan. Columns that it leaves out are pinned, too, unless the source cannot copy them."""
    pin = partial(source.pin, folder=job.rows, seed=plan.seed, shuffle=plan.shuffle, split=split)
    trained_on = _row_filter(plan, plan.schema.names if plan.schema.left_out else ())
    try:
        with trained_on.place(plan.statement.select_span):
            return pin(trained_on.of(plan.statement.select))
    except UnfitValueError as error:
        if plan.schema.unfit.keys().isdisjoint(error.columns):
            raise
    trained_on = _row_filter(plan, plan.schema.names)
    with trained_on.place(plan.statement.select_span):
        return pin(trained_on.of(plan.statement.select))


def _row_filter(plan: AnyPlan, names: Sequence[str] = ()) -> RowFilter:
    """Return the filter of the rows of the query that are trained on.

    names: columns of the query, of which those without unfit values are read.
    """
    return RowFilter(plan.conditions, _fitting_columns(plan, names))


def _fitting_columns(plan: AnyPlan, names: Sequence[str]) -> tuple[str, ...]:
    """Return the columns of a query that are read, as it writes them; none if all are.

    Others hold values that their types cannot hold, or there is no time for them.
    """
    without = plan.schema.unfit.keys() | plan.schema.left_out
    if without.isdisjoint(names) and not plan.schema.left_out:
        return ()
    return tuple(expressions.quote(name, plan.schema.dialect) for name in names if name not in without)


def _without_skipped_rows(source: data.Source, plan: AnyPlan) -> AnyPlan:
    """Return the plan with the limits of its increment. Note which rows of the query are not trained on.

    Raises SemanticError if none is left.
    """
    select, span = plan.statement.select, plan.statement.select_span
    if increment := plan.query.increment:
        with shift_spans(span):
            greatest = increments.greatest_query(increment, plan.schema, select)
            last = source.stream(greatest).read_all()["last"][0].as_py()
        increment = increments.bound_rows(increment, last, plan.settings.span(increments.INCREMENTAL))
        plan = replace(plan, query=msgspec.structs.replace(plan.query, increment=increment))
        plan.notes.append(increments.increment_note(increment))
        select = RowFilter(tuple(increments.conditions(increment, plan.schema))).of(select)
    bad = plan.bad_rows
    if bad.columns:
        with shift_spans(span):
            counts = source.stream(bad.among(select)).read_all()
        count, total = (column[0].as_py() for column in counts.columns)
        if 0 < count == total:
            raise SemanticError(bad.note(count, total), span=span)
        if count:
            plan.notes.append(bad.note(count, total))
    return plan


def _settle_split(plan: AnyPlan, times: splits.Times | None, classes: Mapping[str, labels.Values]) -> AnyPlan:
    """Return the plan with the split that suits the rows and the classes of all labels but the first."""
    is_class = plan.has_classes(classes.get(plan.label))
    splitting = plan.splitting.settle(times, plan.label, is_class)
    return replace(plan, splitting=splitting, more_classes={name: classes[name] for name in plan.more_labels})


def _with_since(plan: AnyPlan, reader: data.Reader, rows: spec.Rows) -> AnyPlan:
    """Return the plan with the first time of the validation rows."""
    split = plan.splitting.split
    if split is None or split.by != "time" or not rows.validation:
        return plan
    batches = reader.read(rows.training, rows.training + rows.validation, [split.column])
    since = pc.min(pa.chunked_array([batch.column(0) for batch in batches])).as_py()
    dated = msgspec.structs.replace(split, since=str(since).removesuffix(" 00:00:00"))
    return replace(plan, splitting=replace(plan.splitting, split=dated))


def _rows(plan: AnyPlan, total: int, held_out: int | None, checks: DataChecks, digest: str = "") -> spec.Rows:
    """Count the rows of both sets. Validation rows are the last of the query, or all of another query.

    held_out: number of validation rows among `total`, if the pinning determined it.
    """
    last = plan.held_out.rows(total) if held_out is None else held_out
    validation_rows = validation.rows(checks.held_out) if plan.held_out.query else 0
    return spec.Rows(bool(digest), total + validation_rows, total - last, last + validation_rows, digest)
