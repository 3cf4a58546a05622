"""Comparison of rows with the training rows of a model: unknown values, drift, and rows that trained the model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
import numpy as np
import pyarrow as pa

from edl import data, spec
from edl.data import Pinned
from edl.data.cells import format_count
from edl.data.pinned import pin_rows
from edl.errors import SQLFlowError
from edl.features.arrays import Bools, Ints, plain_array
from edl.features.categories import encoder
from edl.features.hashing import Hashes
from edl.features.labels import target
from edl.features.weights import RowWeights
from edl.jobs.job_folder import JobFolder
from edl.models.archive import Archive
from edl.models.fitting import Fitting
from edl.ragged import Ragged
from edl.spec import JobSpec
from sqlflow_edl.analysis.checks.drift import DRIFTED, ColumnDrift, compare
from sqlflow_edl.analysis.checks.duplicates import row_hashes
from sqlflow_edl.analysis.rows.repeatable import is_repeatable, reads_other_tables
from sqlflow_edl.analysis.search.table_probe import select_part

MOST_ROWS = 100_000  # that are read from a server for this alone
MOST_COLUMNS = 5  # that a note names
MOST_AGAIN = 200_000  # that are pinned again for a note alone, in half a second of a core
MOST_AGAIN_OF_SERVERS = 100_000  # the same, where pinned rows are a table in a server

# of the names of Arrow types
_NUMBERS = ("int", "uint", "float", "double", "halffloat")
_NESTED = ("list", "large_list", "fixed_size_list", "struct", "map")


def drift(
    model: Archive,
    names: Sequence[str],
    read: Callable[[list[str]], Iterable[pa.RecordBatch]],
    limit: float = DRIFTED,
    *,
    label: bool = False,
) -> list[ColumnDrift]:
    """Compare rows with the training rows: each column that the model reads, and on demand the label.

    names: columns of the rows. read: returns batches with the wanted ones, and perhaps others. limit: as in `compare`.
    """
    trained, fitting = model.spec, model.fitting
    folded = {name.casefold(): name for name in reversed(names)}
    columns = dict.fromkeys((*trained.columns, *(spec.label_columns(trained.label) if label else ())))
    names_here = {
        name: name if name in names else folded[name.casefold()]
        for name in columns
        if name.casefold() in folded
    }
    stored = fitting.columns if fitting is not None else {}
    summaries = {name: stored[before] for before, name in names_here.items() if before in stored}
    features = [spec.with_columns(feature, names_here) for feature in trained.features]
    return compare(read(list(summaries)), summaries, features, limit=limit)


def comparison_notes(
    fitting: Fitting | None, trained: JobSpec, planned: JobSpec, pinned: Pinned, job: JobFolder
) -> tuple[str, ...]:
    """Return a note on values that the model has not met, or none: categories that it does not know, by column, and
    NULL in columns where training had none. Columns with the largest share of such rows come first.

    A list counts if one of its items is unknown; hashed values never are. There is no note for many rows that stay on
    a server, and none on lists of many rows. fitting, trained: of the model. planned: of the statement; its columns may
    have other names.
    """
    if not pinned.rows or (pinned.table is not None and pinned.rows > MOST_ROWS):
        return ()
    reader = data.open_reader(pinned, job.rows)
    marked = (
        _mark_unseen(category)
        for category in map(spec.category_of, planned.features)
        if spec.is_category(category) and (pinned.rows <= MOST_ROWS or not category.has_lists)
    )
    categories = {
        source: category
        for category in marked
        if category.has_other
        for source in spec.sources(category)
        if isinstance(source, str)
    }
    summaries = fitting.columns if fitting is not None else {}
    pairs = zip(trained.columns, planned.columns, strict=False)
    without_null = {
        column
        for before, column in pairs
        if before in summaries and not summaries[before].nulls and column in reader.schema.names
    }
    encoders = {column: encoder(category) for column, category in categories.items()}
    unseen, nulls = Counter[str](), Counter[str]()
    columns = list(dict.fromkeys((*categories, *sorted(without_null))))
    for batch in reader.read(0, pinned.rows, columns) if columns else ():
        nulls.update({column: plain_array(batch.column(column)).null_count for column in without_null})
        for column, encode in encoders.items():
            unseen[column] += _count_rows(encode(batch), categories[column].unseen_id)
    parts = (
        _list_affected_columns(unseen, pinned.rows, "a value that was rare in training or did not occur"),
        _list_affected_columns(nulls, pinned.rows, "NULL, of which training had none"),
    )
    note = "; ".join(filter(None, parts))
    return (note,) if note else ()


def _mark_unseen(category: spec.Category) -> spec.Category:
    """Return the category with an id of its own for unseen values, also of the items of a list."""
    items = getattr(category, "category", None)  # of a list
    if items is None:
        return category.with_unseen(lambda _: "other")
    return msgspec.structs.replace(category, category=_mark_unseen(items))


def _count_rows(ids: Ints | Ragged, counted_id: int) -> int:
    """Return the number of rows with an id, or with a list that has it."""
    if not isinstance(ids, Ragged):
        return int((ids == counted_id).sum())
    places = np.flatnonzero(ids.values == counted_id)
    return len(np.unique(np.searchsorted(ids.offsets, places, side="right")))


def count_classes(planned: JobSpec, pinned: Pinned, job: JobFolder) -> list[float]:
    """Return the number of rows of each class, or their weights, for EVALUATE; none of other labels, or if many rows
    stay on a server.
    """
    label = planned.label
    if planned.kind != "evaluate" or not label.has_classes:
        return []
    if pinned.table is not None and pinned.rows > MOST_ROWS:
        return []
    classes, weights = target(label), RowWeights(planned.weights) if planned.weights else None
    sizes = np.zeros(len(label.classes))
    columns = dict.fromkeys([label.column, *([planned.weights.column] if planned.weights else [])])
    for batch in data.open_reader(pinned, job.rows).read(0, pinned.rows, list(columns)):
        ids = np.asarray(classes.transform(batch, "evaluate"), np.int64).ravel()
        amounts = None if weights is None else np.asarray(weights.transform(batch, "evaluate")).ravel()
        sizes += np.bincount(ids, amounts, len(sizes))
    return [float(size) for size in sizes]


def _list_affected_columns(counts: Counter[str], rows: int, what: str) -> str:
    """Return how many of the rows have such a value, by column; empty without one."""
    positive = [(column, count) for column, count in counts.most_common() if count]
    if not positive:
        return ""
    shown = ", ".join(f"{column}: {count:,}" for column, count in positive[:MOST_COLUMNS])
    more = f" ({len(positive) - MOST_COLUMNS:,} more columns)" if len(positive) > MOST_COLUMNS else ""
    has = "has" if len(positive) == 1 and positive[0][1] == 1 else "have"
    return f"{shown} of {format_count(rows)} {has} {what}{more}"


# Rows that trained the model -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SeenRows:
    """Result of the comparison. rows: true for each row that trained the model; empty if it is not known, for `why`."""

    model: str
    count: int
    rows: Bools = field(default_factory=lambda: np.zeros(0, dtype=np.bool_))
    why: str = ""

    @property
    def seen(self) -> int:
        return int(self.rows.sum())

    def note(self) -> str:
        """Say how many of the rows trained the model."""
        these = "this row" if self.count == 1 else f"these {format_count(self.count)}"
        if self.why:
            return f"how many of {these} trained {self.model} is not known: {self.why}"
        if not self.seen:
            return f"none of {these} trained {self.model}"
        how = f"trained {self.model}, so the metrics are better than on new rows"
        if self.seen == self.count:
            return f"{these} {how}" if self.count == 1 else f"all of {these} {how}"
        return f"{self.seen:,} of {these} {how}; WITH validation.unseen_only = true measures the others alone"


@dataclass(frozen=True, slots=True)
class SeenRowsFinder:
    """Finder of the rows of a statement that trained its model.

    No rows of a training are kept. The rows of its query are pinned again, by the seed and the split of the training;
    if their digest is the training's, its training rows are known, and compared with the rows of the statement by
    hashes. reference, model: the model and its archive. query: of the statement. pinned, job: its rows, and its folder.
    """

    source: data.Source
    reference: str
    model: Archive
    query: spec.Query
    pinned: Pinned
    job: JobFolder

    def find(self, *, at_any_cost: bool = False) -> SeenRows | None:
        """Compare the rows. Return None if the model was trained on rows of other tables.

        at_any_cost: however many rows the training had.
        """
        trained = self.model.spec
        stored, query = trained.query, self.query
        if not stored.select or stored.source != query.source:
            return None
        if trained.forecast is not None and not at_any_cost:
            return None
        if reads_other_tables(stored.select, query.select, query.dialect):
            return None
        most = MOST_AGAIN if self.pinned.table is None else MOST_AGAIN_OF_SERVERS
        why = ""
        if trained.forecast is not None:
            why = "a forecast is trained on whole series"
        elif stored.increment is not None:
            why = "it was trained on rows that were new at that time"
        elif not is_repeatable(stored.select, query.select, query.dialect):
            why = "its query has functions that are not run on behalf of a stored model"
        elif trained.rows.total > most and not at_any_cost:
            why = f"it was trained on more than {most:,} rows; WITH validation.unseen_only = true looks for them"
        elif not (columns := self._common_columns()):
            why = "the query lacks columns of its training, or has them in another type, or they hold lists"
        else:
            return self._compare_rows(columns)
        return SeenRows(self.reference, self.pinned.rows, why=why)

    def _common_columns(self) -> dict[str, str]:
        """Map columns of the training to columns of the statement; empty if a feature or the label is not among them.
        Cells of several values, and values of another type, are not compared.
        """
        here = {column.name.casefold(): column for column in reversed(self.query.schema)}
        trained = self.model.spec
        pairs = ((column, here.get(column.name.casefold())) for column in trained.query.schema)
        names_here = {
            column.name: column_here.name
            for column, column_here in pairs
            if column_here is not None and _are_comparable(column.type, column_here.type)
        }
        labels = {
            one_label.column for one_label in spec.each_label(trained.label)
        }  # no column of clusters, anomalies
        needed = {*trained.columns, *labels.intersection(column.name for column in trained.query.schema)}
        return names_here if needed <= names_here.keys() else {}

    def _compare_rows(self, columns: dict[str, str]) -> SeenRows:
        try:
            # without a split, the JobSpec of trees does not tell whether the query's order was kept
            for shuffle in (True,) if self.model.spec.split is not None else (True, False):
                with self._pinned_again(shuffle) as before:
                    if before is not None:
                        return SeenRows(self.reference, self.pinned.rows, self._find_seen(before, columns))
        except SQLFlowError as error:
            why = f"its query cannot be read again: {error.message}"
            return SeenRows(self.reference, self.pinned.rows, why=why)
        why = "its query yields other rows than in its training"
        return SeenRows(self.reference, self.pinned.rows, why=why)

    @contextmanager
    def _pinned_again(self, shuffle: bool) -> Iterator[data.Reader | None]:
        """Provide the rows of the training, or None if the query yields others."""
        trained = self.model.spec
        split = msgspec.structs.replace(trained.split, since="") if trained.split is not None else None
        with TemporaryDirectory(prefix="trained-", dir=self.job.path) as name:
            folder = Path(name)
            select, seed = select_part(trained.query), trained.training.seed
            pinned = self.source.pin(select, folder, seed=seed, shuffle=shuffle, split=split)
            try:
                is_same = pinned.digest == trained.rows.digest
                yield data.open_reader(pinned, folder) if is_same else None
            finally:
                self.source.unpin(pinned, folder)

    def _find_seen(self, before: data.Reader, columns: dict[str, str]) -> Bools:
        now = data.open_reader(self.pinned, self.job.rows)
        trained_hashes = _hashes(before, trained_rows(self.model, before.rows), list(columns))
        return _in_both(_hashes(now, now.rows, list(columns.values())), trained_hashes)


def trained_rows(model: Archive, total: int) -> int:
    """Return how many of the pinned rows of a training, the first ones, trained the model."""
    trained = model.spec
    if any(trial.weight and trial.refit for trial in model.trials):
        return total
    if blocks := trained.rows.blocks:  # each is trained on by the models of other folds
        return min(blocks.rows if not blocks.is_forward else trained.rows.training, total)
    folds = trained.rows.validation if trained.folds > 1 else 0  # of an earlier version
    return min(trained.rows.training + folds, total)


def pin_unseen(seen: SeenRows, pinned: Pinned, source: data.Source, job: JobFolder) -> Pinned:
    """Pin the rows of the job anew, without the rows that trained the model, as a file in its folder."""
    reader = data.open_reader(pinned, job.rows)
    unseen = pa.array(~seen.rows)

    def batches() -> Iterator[pa.RecordBatch]:
        start = 0
        for batch in reader.read(0, reader.rows):
            yield batch.filter(unseen.slice(start, batch.num_rows))
            start += batch.num_rows

    stream = pa.RecordBatchReader.from_batches(reader.schema, batches())
    record = pin_rows(job.rows, stream, source=pinned.source, select=pinned.select, seed=0, shuffled=False)
    if pinned.table is not None:
        source.unpin(pinned, job.rows)
    return record


def _are_comparable(before: str, now: str) -> bool:
    """Return True for types of columns if their equal values have equal hashes."""
    if before.startswith(_NESTED):
        return False
    return before == now or (before.startswith(_NUMBERS) and now.startswith(_NUMBERS))


def _hashes(reader: data.Reader, rows: int, columns: list[str]) -> Hashes:
    parts = [row_hashes(batch, columns) for batch in reader.read(0, rows, columns)]
    return np.concatenate(parts) if parts else np.zeros(0, dtype=np.uint64)


def _in_both(here: Hashes, others: Hashes) -> Bools:
    """Return True for each of the own rows that is known; of equal rows, for as many as are known."""
    values, counts = np.unique(others, return_counts=True)
    is_common: Bools = np.zeros(len(here), dtype=np.bool_)
    if not len(values) or not len(here):
        return is_common
    order = np.argsort(here, kind="stable")
    ordered = here[order]
    begins = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    rank: Ints = np.arange(len(here)) - np.repeat(begins, np.diff(np.r_[begins, len(here)]))
    places = np.minimum(np.searchsorted(values, ordered), len(values) - 1)
    is_common[order] = (values[places] == ordered) & (rank < counts[places])
    return is_common
