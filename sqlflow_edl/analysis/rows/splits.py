"""Choice of the validation rows among the rows of the query: by time, group, class or mark, or at random.

By default a date orders the rows if it is the only one among the selected columns, its name does not mean a date of
birth, an expiry or a state such as the last login, hardly any row lacks it, and it has enough values; then the latest
rows are the validation rows, as the rows to predict are later than all known ones. Otherwise each class has its
share, and rows with a number as the label are drawn at random.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from edl import spec
from edl.errors import SemanticError, Span, SQLFlowError
from sqlflow_edl.analysis.rows.validation import DEFAULT_FRACTION, FEWEST_ROWS, TEST, HeldOut
from sqlflow_edl.analysis.schema import ColumnType, Schema
from sqlflow_edl.analysis.statistics.fitting import ColumnStatistics

if TYPE_CHECKING:
    from sqlflow_edl.analysis.train_settings import TrainSettings

SPLIT, COLUMN = "validation.split", "validation.column"
FEWEST_TIMES = 20  # distinct dates that order rows; fewer are editions or snapshots
MOST_WITHOUT = 0.05  # share of rows without a date

ONE_SIDE = "validation rows have values of it that no training row has"

_MOMENTS = (ColumnType.DATE, ColumnType.TIMESTAMP)
_ORDERED = (*_MOMENTS, ColumnType.NUMBER)
# Dates of things rather than of rows, as words or parts of words in a column's name.
_OF_THINGS = re.compile(r"birth|born|dob|bday|death|died|expir|due|since|until|deadline", re.IGNORECASE)
# Dates of a state: it was recorded anew whenever it changed, and its latest rows differ from others, such as customers
# who still log in.
_OF_STATES = re.compile(
    r"(?<![a-z])last|(?-i:[a-z]Last)|latest|updat|modif|changed|edited|refreshed|login|logon|signin|seen",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Splitting:
    """Split of a statement's rows, and why it was chosen.

    split: None if the last rows of the query's order are the validation rows, or there are none. otherwise: the split
    if the rows turn out not to be ordered by time. by_label: whether the label has classes is only known with the rows.
    span: of the attribute that chose it, None for a default.
    """

    split: spec.Split | None = None
    why: str = ""
    otherwise: Splitting | None = None
    by_label: bool = False
    span: Span | None = None

    @property
    def group(self) -> str:
        """Return the column of groups, empty without one."""
        return self.split.column if self.split and self.split.by == "group" else ""

    @property
    def mark(self) -> str:
        """Return the column that marks validation rows, empty without one."""
        return self.split.column if self.split and self.split.by == "column" else ""

    @property
    def time(self) -> str:
        """Return the column of a date that was chosen and not written, empty without one."""
        return self.split.column if self.split and self.otherwise else ""

    def settle(self, times: Times | None, label: str, is_class: bool) -> Splitting:
        """Return the split that suits the rows. times: the values of `time`. is_class: the label has classes.

        Raises SemanticError if a written split does not suit the label.
        """
        if self.otherwise is not None and self.split and times is not None:
            if times.order_rows(self.split.fraction):
                return self
            return self.otherwise.settle(None, label, is_class)
        if not self.by_label or self.split is None:
            return self
        if self.span and not is_class:
            raise _without_classes(label, self.span)
        return replace(_by_class(self.split, label, is_class), span=self.span)


class Times:
    """Observer of the dates of rows: number of different ones, of missing ones, and of rows at the latest one."""

    def __init__(self, column: str) -> None:
        self._column = column
        self._begin()

    def _begin(self) -> None:
        self._rows = self._missing = self._latest_rows = 0
        self._latest: Any = None
        self._distinct: set[Any] = set()

    def watch(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the rows unchanged, and count anew."""
        self._begin()
        for batch in batches:
            self._add(batch.column(self._column))
            yield batch

    def _add(self, array: pa.Array) -> None:
        array = _count_times(array)
        self._rows += len(array)
        self._missing += array.null_count
        if len(self._distinct) < FEWEST_TIMES:
            self._distinct.update(pc.unique(array.drop_null())[:FEWEST_TIMES].to_pylist())
        latest = pc.max(array)
        if not latest.is_valid:
            return
        if self._latest is None or latest.as_py() > self._latest.as_py():
            self._latest, self._latest_rows = latest, 0
        if latest.equals(self._latest):
            self._latest_rows += pc.sum(pc.equal(array, latest)).as_py() or 0

    def order_rows(self, fraction: float) -> bool:
        """Return True if the dates order the rows, so that about the fraction of them can be the latest."""
        return (
            len(self._distinct) >= FEWEST_TIMES
            and self._missing <= MOST_WITHOUT * self._rows
            and self._latest_rows <= 2 * fraction * self._rows
        )


def _count_times(times: pa.Array) -> pa.Array:
    """Return dates or timestamps as whole numbers, which Python has for every year; NULL for infinite ones."""
    from edl.features.arrays import plain_array

    times = plain_array(times)
    if not pa.types.is_temporal(times.type):
        return times
    return times.view(pa.int32() if times.type.bit_width == 32 else pa.int64())


def choose(
    settings: TrainSettings,
    schema: Schema,
    label: str,
    held_out: HeldOut,
    errors: list[SQLFlowError],
    group: str = "",
) -> Splitting:
    """Return the split of the rows, as written or by default; errors are appended.

    label: empty if there is none. group: column of the groups of a ranking, which stay whole.
    """
    attribute = next((name for name in (SPLIT, COLUMN) if name in settings.resolved), None)
    nothing = _nothing_to_split(settings, held_out)
    if nothing or not label:
        if attribute and nothing:
            message, hint = nothing
            errors.append(SemanticError(f"{attribute} {message}", span=settings.span(attribute), hint=hint))
        return Splitting()
    fraction = held_out.share
    amount = spec.Split("random", label, DEFAULT_FRACTION if fraction is None else fraction)
    if fraction is None:
        amount = msgspec.structs.replace(amount, fewest=FEWEST_ROWS)
    try:
        if group:
            return _of_ranking(settings, schema, label, amount, group)
        if settings.get(SPLIT) == "column":
            return _split_by_mark(settings, schema, label, held_out)
        return (
            _split_as_written(settings, schema, label, amount)
            if attribute
            else _derive_split(settings, schema, label, amount)
        )
    except SQLFlowError as error:
        error.span = error.span or settings.span(attribute or SPLIT)
        errors.append(error)
        return Splitting()


def expected_counts(
    splitting: Splitting, label: ColumnStatistics, mark: ColumnStatistics | None
) -> int | None:
    """Return the number of validation rows by class or mark, None for other splits.

    label, mark: statistics of all rows; None without a column that marks them.
    """
    split = splitting.split
    if mark is not None and mark.counts is not None:
        counted = zip(mark.counts.values, mark.counts.counts, strict=True)
        return mark.nulls + sum(count for value, count in counted if value)
    if split is None or split.by != "stratified" or label.counts is None or label.rows < split.fewest:
        return None
    return sum(max(int(count * split.fraction + 0.5), int(count > 1)) for count in label.counts.counts)


def estimate_blocks(split: spec.Split | None, total: int) -> spec.ValidationBlocks | None:
    """Return the blocks of a split with folds if each has its share of the rows; None without folds."""
    folds = split.folds if split is not None else None
    if split is None or not folds or not folds.divides(total):
        return None
    rows = total - int(total * folds.test + 0.5)
    is_forward = split.by == "time"
    number = min(folds.number, rows - is_forward)
    if number < 2:
        return None
    size, more = divmod(rows, number + is_forward)
    sizes = tuple(size + (block < more) for block in range(number))
    return spec.ValidationBlocks(rows, sizes, is_forward)


def check_found(splitting: Splitting, total: int, validation: int | None) -> None:
    """Raise SemanticError if a written split into groups, by time or by mark has found no rows of one side."""
    split = splitting.split
    if split is None or not splitting.span or not split.column:
        return
    if split.by == "column" and validation in (0, total):
        side = "all" if validation else "none"
        raise SemanticError(
            f"{split.column} marks {side} of the {total:,} rows as validation rows",
            span=splitting.span,
            hint="it is TRUE (or 1) in the rows to validate on, and FALSE (or 0) in those to train on",
        )
    if validation or not split.rows(total):
        return
    raise SemanticError(
        f"{split.column} has one value in all {total:,} rows, and so no validation rows can be taken by it",
        span=splitting.span,
        hint=f"name a column of several values, or write {SPLIT} = random",
    )


def _nothing_to_split(settings: TrainSettings, held_out: HeldOut) -> tuple[str, str] | None:
    """Return what contradicts a split, with a hint, or None."""
    if held_out.query:
        return (
            "chooses among the rows of the query, and the validation rows have a query of their own",
            "keep one",
        )
    if settings.get("train.shuffle") is False:
        hint = "leave one out, or write ORDER BY in the query: its last rows are the validation rows"
        return "arranges the rows, and train.shuffle = FALSE keeps their order", hint
    if held_out.share == 0:
        return (
            "has no effect without validation rows",
            "write VALIDATE 0.2 to validate on a fifth of the rows",
        )
    return None


def _of_ranking(
    settings: TrainSettings, schema: Schema, label: str, amount: spec.Split, group: str
) -> Splitting:
    """Return the split into whole groups, by their column or by a written column of larger groups."""
    how = str(settings.get(SPLIT) or "auto")
    if how not in ("auto", "group"):
        raise SemanticError(
            f"{SPLIT} = {how} would divide groups of {group}, and a ranking is measured on whole ones",
            span=settings.span(SPLIT),
            hint=f"write {SPLIT} = group, or select the validation rows by a query: VALIDATE ON (SELECT …)",
        )
    column = _column(settings, schema, label)
    split = msgspec.structs.replace(amount, by="group", column=column or group)
    span = settings.span(COLUMN) or settings.span(SPLIT)
    return Splitting(split, "" if span else f"{group} has groups", span=span)


def _split_as_written(settings: TrainSettings, schema: Schema, label: str, amount: spec.Split) -> Splitting:
    how = str(settings.get(SPLIT) or "auto")
    span = settings.span(COLUMN) or settings.span(SPLIT)
    column = _column(settings, schema, label)
    if how == "auto" and column:
        if schema.type(column) not in _MOMENTS:
            raise SemanticError(
                f"{column} can divide the rows by group or by time, or mark the validation rows",
                span=settings.span(COLUMN),
                hint=f"write {SPLIT} = group, {SPLIT} = time or {SPLIT} = column",
            )
        how = "time"
    if how == "auto":
        return _derive_split(settings, schema, label, amount)
    if how in ("random", "stratified"):
        if column:
            raise SemanticError(
                f"{COLUMN} has no effect with {SPLIT} = {how}",
                span=settings.span(COLUMN),
                hint=f"leave it out, or write {SPLIT} = group or {SPLIT} = time",
            )
        if how == "random":
            return Splitting(amount, span=span)
        return _split_by_class(settings, schema, label, amount)
    if how == "time":
        column = _time(settings, schema, column)
        return Splitting(msgspec.structs.replace(amount, by="time", column=column), span=span)
    if not column:
        raise SemanticError(
            f"{SPLIT} = group needs the column of the groups",
            hint=f"add {COLUMN} = customer_id, for instance",
        )
    return Splitting(msgspec.structs.replace(amount, by="group", column=column), span=span)


def _split_by_mark(settings: TrainSettings, schema: Schema, label: str, held_out: HeldOut) -> Splitting:
    """Return the split by a column that is true in the validation rows."""
    column = _column(settings, schema, label)
    if not column:
        raise SemanticError(
            f"{SPLIT} = column needs the column that is TRUE in the validation rows",
            hint=f"add {COLUMN} = is_test, for instance",
        )
    if not (schema.type(column) is ColumnType.BOOLEAN or schema.is_integer(column)):
        compared = "> 0" if schema.type(column) is ColumnType.NUMBER else "= '…'"
        raise SemanticError(
            f"{column} is {schema.type(column).words}, and validation rows are marked by TRUE or 1",
            span=settings.span(COLUMN),
            hint=f"select a comparison: {column} {compared} AS is_test",
        )
    if held_out.share is not None:
        raise SemanticError(
            f"{column} marks the validation rows, whatever their share is",
            span=held_out.span or settings.span(TEST),
            hint=f"leave the fraction out, or {SPLIT} = column",
        )
    return Splitting(spec.Split("column", column), span=settings.span(COLUMN))


def _column(settings: TrainSettings, schema: Schema, label: str) -> str:
    """Return the written column, empty without one."""
    if settings.get(COLUMN) is None:
        return ""
    hint = f"write {SPLIT} = stratified to validate on each class, or name another column"
    taken = "is the label; it cannot divide the rows too"
    name, error = settings.column(COLUMN, schema, {label}, taken, hint)
    if error is None and schema.type(name) is ColumnType.OTHER:
        error = schema.unusable(name, settings.span(COLUMN))
    if error:
        raise error
    return name


def _time(settings: TrainSettings, schema: Schema, column: str) -> str:
    """Return the column that orders the rows: the written one, or the only date."""
    if not column:
        times = [name for name in schema.names if schema.type(name) in _MOMENTS]
        if len(times) != 1:
            counted = "none is selected" if not times else f"there are {', '.join(times)}"
            raise SemanticError(
                f"{SPLIT} = time needs a date, and {counted}", hint=f"name the column: {COLUMN} = order_date"
            )
        return times[0]
    if schema.type(column) not in _ORDERED:
        raise SemanticError(
            f"{column} is {schema.type(column).words}, and rows are ordered by a date, a timestamp or a number",
            span=settings.span(COLUMN),
            hint=f"cast it: CAST({column} AS DATE) AS {column}",
        )
    return column


def _split_by_class(settings: TrainSettings, schema: Schema, label: str, amount: spec.Split) -> Splitting:
    is_class = _has_classes(settings, schema, label)
    if is_class is False:
        raise _without_classes(label)
    split = msgspec.structs.replace(amount, by="stratified", column=label)
    return Splitting(split, by_label=is_class is None, span=settings.span(SPLIT))


def _derive_split(settings: TrainSettings, schema: Schema, label: str, amount: spec.Split) -> Splitting:
    is_class = _has_classes(settings, schema, label)
    by_label = replace(_by_class(amount, label, bool(is_class)), by_label=is_class is None)
    moments = [name for name in schema.names if schema.type(name) in _MOMENTS]
    if len(moments) != 1 or _OF_THINGS.search(moments[0]) or _OF_STATES.search(moments[0]):
        return by_label
    [only] = moments
    return Splitting(
        msgspec.structs.replace(amount, by="time", column=only), f"{only} is the only date", by_label
    )


def _by_class(amount: spec.Split, label: str, is_class: bool) -> Splitting:
    if is_class:
        return Splitting(
            msgspec.structs.replace(amount, by="stratified", column=label), f"{label} has classes"
        )
    return Splitting(amount, f"{label} is a number")


def _has_classes(settings: TrainSettings, schema: Schema, label: str) -> bool | None:
    """Return True if the label has classes; None if the rows decide it."""
    task = settings.model.task if settings.model else None
    if task is not None:
        return task == "classification"
    if schema.type(label) is not ColumnType.NUMBER:
        return True
    return None if schema.is_integer(label) or settings.loss else False


def _without_classes(label: str, span: Span | None = None) -> SemanticError:
    return SemanticError(
        f"{label} is a number and has no classes, of which each could have its share",
        span=span,
        hint=f"write {SPLIT} = random, time or group",
    )
