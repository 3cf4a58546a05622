"""Plan of a search: a TRAIN statement for each candidate, over the same pinned rows.

A candidate's JobSpec is compiled from its own statement: a user could run that to train the model by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

import msgspec
import pyarrow as pa

from edl import metrics, spec
from edl.errors import SemanticError, SQLFlowError, raise_all
from sqlflow_edl.analysis import expressions, labels, train
from sqlflow_edl.analysis.checks.data import DataChecks, is_id, is_named_as_id
from sqlflow_edl.analysis.checks.text_readings import decimal_mark
from sqlflow_edl.analysis.columns.cells import Cells
from sqlflow_edl.analysis.columns.decisions import Decision
from sqlflow_edl.analysis.columns.drafting import TEXT_NUMBERS
from sqlflow_edl.analysis.columns.drafts import Statistics
from sqlflow_edl.analysis.columns.reused import Models
from sqlflow_edl.analysis.rows.increments import INCREMENTAL
from sqlflow_edl.analysis.rows.plan import RowPlan
from sqlflow_edl.analysis.rows.validation import FRACTION, TEST
from sqlflow_edl.analysis.schema import ColumnType, Schema
from sqlflow_edl.analysis.search import space
from sqlflow_edl.analysis.search.candidates import FeatureAdder, StatementWriter, encode_texts
from sqlflow_edl.analysis.search.drafts import LEAST_TRIALS, TRIALS, drafts_of, value_of
from sqlflow_edl.analysis.search.generating import ROWS, WIDE, Generated, generate_features
from sqlflow_edl.analysis.search.label_losses import choose_losses, vary_losses
from sqlflow_edl.analysis.search.limits import (
    FOLDED,
    Clock,
    Table,
    default_seconds,
    note_on_candidates,
)
from sqlflow_edl.analysis.search.planning import CandidatePlanner, PlannedCandidate
from sqlflow_edl.analysis.search.portfolio import Lines, places_by_leaves
from sqlflow_edl.analysis.search.reduction import Reduction, find_reduction
from sqlflow_edl.analysis.search.split import TEST as TEST_SHARE
from sqlflow_edl.analysis.search.split import (
    VALIDATION,
    Division,
    add_folds,
    divide,
)
from sqlflow_edl.analysis.settings import search as settings
from sqlflow_edl.analysis.settings.attribute_dictionary import Resolved
from sqlflow_edl.analysis.statistics.fitting import ColumnStatistics, Want
from sqlflow_edl.errors.spans import set_missing_spans
from sqlflow_edl.syntax import ast

MODEL = "Ensemble"
# training rows from which candidates are trained on a ninth of them first
SCREENED_ROWS, SCREENING = 50_000, 9


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchPlan(RowPlan):
    """Checked statement of a search that needs the statistics of its rows.

    candidates: in the order of the trials. written: the resolved attributes of the search.
    """

    candidates: tuple[PlannedCandidate, ...]
    written: Mapping[str, Resolved]
    trials: int = 0  # at most
    ordered: int = 0  # candidates tried in their order, before others are chosen by the results; 0: all
    folds: int | None = None  # None for the default
    reduction: Reduction | None = None  # None if all candidates are planned and fitted
    candidate_count: int = 0  # candidates before those without time for their plans were left out
    models: Models | None = None  # of FEATURES(m) in COLUMN
    task: str = ""  # as of `TrainSettings`
    texts: frozenset[str] = frozenset()  # columns of texts of which candidates have parts as features

    @property
    def first_plan(self) -> train.TrainingPlan:
        """Plan of the first candidate, which has the features that all have."""
        return self.candidates[0].plan

    @property
    def plans(self) -> list[train.TrainingPlan]:
        """The different plans of the candidates."""
        return list({id(candidate.plan): candidate.plan for candidate in self.candidates}.values())

    @property
    def whole_numbers(self) -> list[str]:
        return self.first_plan.whole_numbers

    @property
    def named_columns(self) -> set[str]:
        return self.first_plan.named_columns

    @property
    def decisions(self) -> list[Decision]:
        """Decisions of all candidates."""
        return [decision for candidate in self.candidates for decision in candidate.plan.decisions]

    def wants(self) -> dict[str, Want]:
        """Map columns to the statistics of the training rows that any candidate needs."""
        wants: dict[str, Want] = {}
        for plan in self.plans:
            for column, want in plan.wants().items():
                wants[column] = wants.get(column, Want.NONE) | want
        return wants

    @property
    def columns(self) -> list[str]:
        """Columns of the table that have statistics."""
        return [column for column in self.wants() if column not in self.computed]

    def unread_columns(self, statistics: Statistics) -> set[str]:
        return self.first_plan.unread_columns(statistics)

    def checks(self) -> DataChecks:
        return self.first_plan.checks()

    def lists(self) -> set[Cells]:
        return {cells for plan in self.plans for cells in plan.lists()}

    def fit(self, statistics: Statistics, rows: spec.Rows, classes: labels.Values) -> spec.JobSpec:
        """Return the JobSpec of the search. Raises the errors of the first candidate if none can be trained."""
        _check_validation(self)
        limit = None if self.reduction is None else self.reduction.limit
        allows_folds = self.folds is not None or limit is None or limit.allows_folds
        divided = divide(
            rows,
            self.held_out.test_rows(rows.validation),
            is_written=TEST in self.names,
            allows_folds=allows_folds,
            columns=len(self.columns),
        )
        if rows.blocks and limit is not None and not allows_folds:
            over = f"{FOLDED:.0%} of the limit of {limit.seconds:g} s was over before"
            self.notes.append(f"the models are trained without folds: {over}")
        if self.folds is not None and divided.folds < self.folds and rows.validation:
            fewer = "1 fold" if divided.folds == 1 else f"{divided.folds} folds"
            self.notes.append(f"{fewer} in place of {self.folds}: the rows have no more parts")
        if not divided.rows.validation:
            raise self._too_few(rows.total)
        candidates: list[spec.Candidate] = []
        columns: list[frozenset[str]] = []  # of each
        failed: list[SQLFlowError] = []
        tried_first = words = 0
        label = expressions.name(self.label, self.query.dialect)
        kept = self.candidates[0].draft.kept
        writer = StatementWriter(self.statement, kept, self.query.dialect, label, self._shares(divided))
        fit = _ColumnFitter(self, statistics, divided.rows, classes)
        planned = self._vary_losses(statistics, fit, divided.rows.training)
        more = len(planned) - len(self.candidates)
        for number, (draft, plan, varied) in enumerate(planned, 1):
            if limit is not None and not limit.allows_fit(len(candidates), words):
                break
            try:
                fitted = fit.fit_columns(plan)
                job = fitted.training.vary(varied)
            except SQLFlowError as error:
                failed.append(error)
                continue
            job = msgspec.structs.replace(job, statement=writer.write(draft, job.model.name, number))
            candidates.append(spec.Candidate(draft.name(draft.model or job.model.name), job, draft.point))
            columns.append(fitted.columns)
            tried_first += bool(self.ordered) and number <= self.ordered + more
            words += fitted.words
        partly = {
            decision.note: "" if self.texts.issuperset(decision.columns) else decision.note_of(columns)
            for decision in self.decisions
            if decision.fitted is None
        }
        notes = (note for plan in self.plans for note in plan.notes if labels.CHOSEN not in note)
        self.notes.extend(dict.fromkeys(filter(None, (partly.get(note, note) for note in notes))))
        if not candidates:
            raise failed[0]
        if len(candidates) + len(failed) < self.candidate_count + more:
            self.notes.append(note_on_candidates(len(candidates), self.candidate_count + more))
        if self.reduction is not None:
            self.notes.extend(self.reduction.notes())
        trials = self.trials if settings.TRIALS in self.written else self.trials + more
        return self._spec(candidates, divided, tried_first, trials)

    def generate_features(
        self, read: Callable[[int, list[str]], Iterable[pa.RecordBatch]], count: int
    ) -> SearchPlan:
        """Return the plan with the generated features of its candidates; without those that have none of their own.

        Parts of texts are features of all candidates but the first, which surely ends. read: returns at most so many
        training rows, with the columns of these names. count: of all training rows; 0: not known.
        """
        if not any(candidate.draft.generates for candidate in self.candidates):
            return self
        generated, names = Generated(), self._free_columns()
        if 0 < len(names) <= WIDE and (batches := list(read(ROWS, [*names, self.label]))):
            generated = generate_features(pa.Table.from_batches(batches), self.label, names, count)
        planner = CandidatePlanner(self.query, self.schema, self.models, self.task)
        adder = FeatureAdder(generated, self.query.dialect)
        candidates: list[PlannedCandidate] = []
        ordered, left_out = self.ordered, 0
        for number, candidate in enumerate(self.candidates):
            if candidate.draft.generates and not generated.pairs:
                ordered -= number < self.ordered
                left_out += 1
                continue
            adds = candidates and (generated.of_texts or candidate.draft.generates)
            candidates.append(planner.plan(adder.add_to(candidate.draft)) if adds else candidate)
        if not candidates:
            return self
        if generated.is_strong:
            candidates[1:] = sorted(candidates[1:], key=lambda candidate: not candidate.draft.generates)
        computed = {name: source for one in candidates for name, source in one.plan.computed.items()}
        for feature in generated.of_texts:
            self.notes.append(f"{feature.words} are features of all candidates but the first")
        return replace(
            self,
            candidates=tuple(candidates),
            ordered=ordered,
            computed=computed,
            candidate_count=self.candidate_count - left_out,
            texts=frozenset(feature.first for feature in generated.of_texts),
        )

    def _free_columns(self) -> list[str]:
        """Return the columns of single values that no clause and no attribute names."""
        plan = self.first_plan
        reserved = {*plan.needed_columns, plan.splitting.group, plan.splitting.mark, plan.splitting.time}
        return [
            name
            for name in self.schema.names
            if name not in reserved and not self.schema.items(name) and not is_named_as_id(name)
        ]

    def query_part(self, query: spec.Query) -> spec.Query:
        """Return the query with the part of it that is read."""
        parts = 1 if self.reduction is None else self.reduction.parts
        columns = tuple(self.schema.names) if self.schema.left_out else ()
        if parts == 1 and not columns:
            return query
        return msgspec.structs.replace(query, part=spec.QueryPart(parts, columns))

    def reduce_to(self, reduction: Reduction) -> SearchPlan:
        """Return the plan that reads the rows of the reduction."""
        return replace(self, reduction=reduction, sample=reduction.condition)

    def reduce_after_pinning(self, rows: int, seconds: float) -> SearchPlan | None:
        """Return the plan that reads fewer rows, if the pinning shows that there is no time for all it has pinned.

        rows, seconds: that pinning has pinned and taken.
        """
        again = self.reduction.sample_again(rows, seconds) if self.reduction is not None else None
        return None if again is None else self.reduce_to(again)

    def _vary_losses(self, statistics: Statistics, fit: _ColumnFitter, rows: int) -> list[PlannedCandidate]:
        """Return the candidates as they suit so many training rows, and some again with losses that suit the label."""
        candidates = list(self._encode_texts(statistics))
        variants = [candidate.draft.variant for candidate in candidates]
        candidates = [candidates[place] for place in places_by_leaves(variants, rows)]
        setting = self.written.get(settings.LOSSES)
        try:
            label = fit.fit_columns(candidates[0].plan).training.job.label
        except SQLFlowError:
            return candidates  # `fit` raises it, unless other candidates can be trained
        if self.statement.kind != "auto" or (setting is None and not label.is_number):
            return candidates
        losses = choose_losses(label, statistics[self.label], setting)
        if not losses.names:
            return candidates
        if losses.why:
            self.notes.append(losses.note())
        planner = CandidatePlanner(self.query, self.schema, self.models, self.task)
        return list(vary_losses(candidates, losses, planner, self.ordered or len(candidates)))

    def _encode_texts(self, statistics: Statistics) -> Iterable[PlannedCandidate]:
        """Return the candidates; those that encode texts leave out the columns of texts that others leave out."""
        encoding = [candidate for candidate in self.candidates if candidate.draft.encoded]
        if not encoding:
            return self.candidates
        columns = encoding[0].draft.encoded
        converts = encoding[0].settings.get(TEXT_NUMBERS) == "convert"
        useful = [
            column
            for column in columns
            if not (
                _is_useless(column, statistics[column])
                or (converts and decimal_mark(statistics[column].counts))
            )
        ]
        if len(useful) == len(columns):
            return self.candidates
        planner = CandidatePlanner(self.query, self.schema, self.models, self.task)
        drafts = encode_texts((candidate.draft for candidate in self.candidates), useful, self.query.dialect)
        pairs = zip(drafts, self.candidates, strict=True)
        return (planner.plan(draft) if draft.encodes else planned for draft, planned in pairs)

    def _too_few(self, rows: int) -> SemanticError:
        if not rows:
            return labels.no_rows(self.statement)
        few = "1 row leaves" if rows == 1 else f"{rows:,} rows leave"
        return SemanticError(
            f"a search needs validation rows, and {few} none",
            span=self.statement.select_span,
            hint="select more rows, or name a model: TO TRAIN Linear",
        )

    def _spec(
        self, candidates: list[spec.Candidate], divided: Division, ordered: int, trials: int
    ) -> spec.JobSpec:
        first = candidates[0].spec
        metric = self._metric(first.label)
        usual = 0.0 if self.is_in_folds else default_seconds(divided.rows.total, len(self.columns))
        return msgspec.structs.replace(
            first,
            statement=self.statement.text,
            rows=divided.rows,
            framework=spec.ENSEMBLE,
            model=spec.Component(MODEL),
            inputs={},
            optimizer=spec.Component("none"),
            loss=spec.Component(first.loss.name),
            schedule=None,
            own=None,
            training=spec.Training(
                epochs=1,
                seed=self.seed,
                validation_fraction=first.training.validation_fraction,
                calibration=first.training.calibration,
                threshold=first.training.threshold,
            ),
            output=spec.Output(str(self.statement.into[0]) if self.statement.into else ""),
            batch_size=spec.BLOCK,
            search=spec.Search(
                tuple(candidates),
                metric,
                float(value_of(self.written, settings.TIME_LIMIT) or usual),
                value_of(self.written, settings.MEMBERS) or (5 if self.statement.kind == "auto" else 1),
                divided.test,
                divided.folds,
                self._refit(divided),
                trials if trials < len(candidates) else 0,
                self._screening(divided),
                ordered,
            ),
        )

    def _screening(self, divided: Division) -> int:
        """Return the training rows on which candidates are compared first; 0 if all are trained on all rows."""
        rows, setting = divided.rows.training, value_of(self.written, settings.HALVING)
        if divided.folds > 1 or setting is False:
            return 0
        pays = self.statement.kind != "auto" and rows >= SCREENED_ROWS and self.trials >= LEAST_TRIALS
        return rows // SCREENING if setting or pays else 0

    def _metric(self, label: spec.Label) -> str:
        """Return the metric that chooses. Raises SemanticError if it does not suit the label."""
        attribute = self.written.get(settings.METRIC)
        if attribute is None:
            return "log_loss" if label.has_classes else "rmse"
        with set_missing_spans(attribute.span):
            return metrics.by_name(str(attribute.value), metrics.kind_of(label)).name

    def _refit(self, divided: Division) -> bool:
        """Return True if the chosen models are trained once more on all rows."""
        setting = value_of(self.written, settings.REFIT)
        if setting is not None:
            return bool(setting)
        if self.validates or self.held_out.query:
            return False
        if value_of(self.written, settings.ACTIVATE) == "better":
            return False  # the next version is compared with this one on rows that it must not know
        if divided.rows.blocks and divided.rows.blocks.is_forward:
            return True  # the models of the early folds have not learned from the late rows
        return self.is_in_folds or (self.statement.kind == "auto" and divided.folds == 1)

    @property
    def is_in_folds(self) -> bool:
        """True if one model, which the statement names, is trained in folds."""
        return self.statement.kind == "train" and not space.searched_items(self.statement)

    @property
    def names(self) -> set[str]:
        """Names of the written attributes, of the search and of its candidates."""
        rows = (settings.find(attribute.key) for attribute in self.statement.attributes)
        return {row.name for row in rows if row is not None} | set(self.written)

    @property
    def validates(self) -> bool:
        """True if the statement writes which rows validate."""
        return self.statement.validate is not None or FRACTION in self.names

    def _shares(self, divided: Division) -> Lines:
        """Return the attributes of the validation and test rows that the statement does not write."""
        if self.held_out.query or self.splitting.mark:
            return ()
        rows, names = divided.rows, self.names
        lines = []
        if not self.validates:
            share = rows.validation / rows.total if divided.folds > 1 or not divided.test else VALIDATION
            lines.append((FRACTION, f"{share:.4g}"))
        if TEST not in names and divided.test:
            lines.append((TEST, f"{TEST_SHARE:g}"))
        return tuple(lines)


@dataclass(frozen=True, slots=True)
class _FittedColumns:
    """Fitted columns of candidates. columns: of the query. words: categories that a program lists."""

    training: train.FittedTraining
    columns: frozenset[str]
    words: int


class _ColumnFitter:
    """Fitter of the columns of candidates, once for all of one plan."""

    def __init__(
        self, plan: SearchPlan, statistics: Statistics, rows: spec.Rows, classes: labels.Values
    ) -> None:
        self._plan, self._statistics, self._rows, self._classes = plan, statistics, rows, classes
        self._fitted: dict[int, _FittedColumns | SQLFlowError] = {}

    def fit_columns(self, plan: train.TrainingPlan) -> _FittedColumns:
        """Return the fitted columns of a candidate's plan. Raises its SQLFlowError, each time again."""
        if id(plan) not in self._fitted:
            self._fitted[id(plan)] = self._try_to_fit(plan)
        fitted = self._fitted[id(plan)]
        if isinstance(fitted, SQLFlowError):
            raise fitted
        return fitted

    def _try_to_fit(self, plan: train.TrainingPlan) -> _FittedColumns | SQLFlowError:
        search = self._plan
        held_out = replace(search.held_out, test=0.0)
        plan = replace(plan, held_out=held_out, splitting=search.splitting, validation=search.validation)
        try:
            fitted = plan.fit_columns(self._statistics, self._rows, self._classes)
        except SQLFlowError as error:
            return error
        job = fitted.job
        fitted = replace(fitted, job=msgspec.structs.replace(job, query=search.query_part(job.query)))
        return _FittedColumns(fitted, frozenset(job.columns), sum(map(_count_words, job.features)))


AnyPlan = train.TrainingPlan | SearchPlan  # of a TRAIN statement


def check_without_columns(statement: ast.Statement) -> None:
    """Check a search as far as possible without the columns of its query; raises all errors together."""
    errors: list[SQLFlowError] = []
    notes: list[str] = []
    try:
        drafts, _, _ = drafts_of(statement, notes, only_first=True)
        train.check_without_columns(drafts[0].statement)
    except SQLFlowError as error:
        errors.append(error)
    raise_all(errors)


def plan(
    statement: ast.Statement,
    query: spec.Query,
    schema: Schema,
    models: Models | None = None,
    clock: Clock | None = None,
    table: Table | None = None,
) -> SearchPlan:
    """Check the statement of a search against its query's columns; raises all errors of one candidate together.

    models: the models of FEATURES(m) in COLUMN. clock: of the statement, so that the plan fits into its time limit.
    table: the rows of the query, which are looked at for that.
    """
    notes: list[str] = []
    drafts, ordered, resolved = drafts_of(statement, notes, columns=len(schema.names))
    reduction = find_reduction(statement, resolved, schema, clock, table)
    before = clock.seconds if clock is not None else 0.0
    metric, task = value_of(resolved, settings.METRIC), ""
    if metric and statement.kind == "auto":
        task = "regression" if metric in metrics.names("regression") else "classification"
    planner = CandidatePlanner(query, schema, models, task)
    first = planner.plan(drafts[0]).plan
    planning = clock.seconds - before if clock is not None else 0.0
    if first.query.increment is not None:
        raise SemanticError(
            f"{INCREMENTAL} is for the trainings of one model, and a search trains several",
            span=first.settings.span(INCREMENTAL),
            hint="leave it out, or write one value for each attribute",
        )
    if (
        reduction is not None
        and (narrow := reduction.narrow(schema, first.label, first.needed_columns, planning, notes))
        is not None
    ):
        schema, planner = narrow, CandidatePlanner(query, narrow, models, task)
        first = planner.plan(drafts[0]).plan
    planned: list[PlannedCandidate] = []
    for draft in encode_texts(drafts, _texts(schema, first), query.dialect):
        if reduction is not None and not reduction.limit.allows_plan(len(planned)):
            break
        planned.append(planner.plan(draft))
    candidate_count, drafts = len(drafts), drafts[: len(planned)]
    trials = value_of(resolved, settings.TRIALS) or (len(drafts) if statement.kind == "auto" else TRIALS)
    folds = value_of(resolved, settings.FOLDS)
    if folds is None and statement.kind != "auto":
        folds = 1
    search_plan = SearchPlan(
        statement=statement,
        query=query,
        schema=schema,
        settings=first.settings,
        label=first.label,
        weight=first.weight,
        held_out=first.held_out,
        splitting=first.splitting,
        computed={name: source for one in planned for name, source in one.plan.computed.items()},
        candidates=tuple(planned),
        written=resolved,
        trials=trials,
        ordered=ordered if ordered < len(drafts) else 0,
        folds=folds,
        reduction=reduction,
        candidate_count=candidate_count,
        notes=notes,
        models=models,
        task=task,
    )
    _check_validation(search_plan)
    if folds != 1 and not (search_plan.held_out.query or search_plan.validates or search_plan.splitting.mark):
        test = search_plan.held_out.test if TEST in search_plan.names else 0.0
        gap = float(value_of(resolved, settings.GAP) or 0.0)
        columns = len(search_plan.columns)
        splitting = add_folds(first.splitting, folds, columns, label=first.label, test=test, gap=gap)
        search_plan = replace(search_plan, splitting=splitting)
    return search_plan if reduction is None else search_plan.reduce_to(reduction.sample(len(schema.names)))


def _check_validation(plan: SearchPlan) -> None:
    """Raise SemanticError for a refit, folds or a gap that the validation rows contradict."""
    has_query = bool(plan.held_out.query)
    if has_query and value_of(plan.written, settings.REFIT):
        raise _contradiction(
            plan.written[settings.REFIT], "trains on the validation rows, which a query of their own selects"
        )
    if plan.folds not in (None, 1) and (has_query or plan.validates or plan.splitting.mark):
        raise _contradiction(
            plan.written[settings.FOLDS], "divides the query's rows, and the validation rows are given"
        )
    gap, split = plan.written.get(settings.GAP), plan.splitting.split
    if gap is not None and (split is None or split.by != "time"):
        by = split.by if split is not None else "the order of the query"
        raise SemanticError(
            f"{settings.GAP} is a distance of times, and the validation rows are chosen by {by}",
            span=gap.written.span,
            hint="write validation.split = time, and the column: validation.column = order_date",
        )


def _contradiction(attribute: Resolved, why: str) -> SemanticError:
    return SemanticError(
        f"{attribute.written.key} {why}", span=attribute.written.span, hint="keep one of them"
    )


def _texts(schema: Schema, plan: train.TrainingPlan) -> list[str]:
    """Return the columns of texts that are features and that no COLUMN clause mentions."""
    reserved = {plan.label, plan.weight, plan.splitting.group, *plan.named_columns}
    return [
        column
        for column in schema.names
        if column not in reserved and schema.type(column) is ColumnType.TEXT and not schema.items(column)
    ]


def _count_words(feature: spec.Feature) -> int:
    """Return the number of categories that a feature lists."""
    return len(getattr(spec.category_of(feature), "values", ()))


def _is_useless(column: str, column_statistics: ColumnStatistics) -> bool:
    return (
        column_statistics.constant
        or column_statistics.nulls == column_statistics.rows
        or is_id(column, column_statistics)
    )
