"""Plan of a search: a TRAIN statement for each candidate, over the same pinned rows.

A candidate's JobSpec is that of its statement, which a user could run to train the model by itself.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import msgspec

from edl import metrics, spec
from edl.errors import SemanticError, Span, SQLFlowError, raise_all
from sqlflow_edl.analysis import expressions, labels, train
from sqlflow_edl.analysis.checks.data import DataChecks, is_id
from sqlflow_edl.analysis.columns.cells import Cells
from sqlflow_edl.analysis.columns.decisions import Decision
from sqlflow_edl.analysis.columns.drafts import Statistics
from sqlflow_edl.analysis.rows.splits import Splitting
from sqlflow_edl.analysis.rows.validation import FRACTION, TEST, HeldOut
from sqlflow_edl.analysis.schema import ColumnType, Schema
from sqlflow_edl.analysis.search import local, portfolio, space
from sqlflow_edl.analysis.search.candidates import CandidateDraft, Lines, of_portfolio, of_space
from sqlflow_edl.analysis.search.split import TEST as TEST_SHARE
from sqlflow_edl.analysis.search.split import VALIDATION, Division, divide
from sqlflow_edl.analysis.settings import search as settings
from sqlflow_edl.analysis.settings.attributes import TRAIN
from sqlflow_edl.analysis.settings.dictionary import Dictionary, Resolved
from sqlflow_edl.analysis.settings.kubernetes import KUBERNETES
from sqlflow_edl.analysis.statistics.fitting import ColumnStatistics, Want
from sqlflow_edl.errors.spans import at
from sqlflow_edl.syntax import ast

MODEL = "Ensemble"
SECONDS = ((1_000, 30.0), (10_000, 60.0), (100_000, 180.0))  # rows, and the time limit up to as many
MOST_SECONDS = 300.0
TRIALS = 20  # points of a search space by default
POOL = 4  # points of a search space for each trial, among which trials are chosen by the results of others
LEAST_TRIALS = 10  # for which that pays
SPREAD, LEAST_SPREAD = 1 / 3, 5  # share and least number of those trials that are spread over the space
MOST_COLUMNS = (
    100  # of the short form, up to which it goes on around the portfolio: each candidate is planned
)
SCREENED_ROWS, SCREENING = (
    50_000,
    9,
)  # training rows from which candidates are trained on a ninth of them first
SEED = next({row.name, *row.aliases} for row in TRAIN if row.name == "train.seed")


@dataclass(frozen=True, slots=True)
class SearchPlan:
    """Checked statement of a search that needs the statistics of its rows.

    plans: of the candidates' statements, in the order of the trials. written: the resolved attributes of the search.
    """

    statement: ast.Statement
    drafts: tuple[CandidateDraft, ...]
    plans: tuple[train.TrainingPlan, ...]
    held_out: HeldOut
    splitting: Splitting
    written: Mapping[str, Resolved]
    trials: int = 0  # at most
    ordered: int = 0  # candidates tried in their order, before others are chosen by the results; 0: all
    folds: int | None = None  # None for the default
    validation: spec.Query | None = None
    notes: list[str] = field(default_factory=list)

    @property
    def first(self) -> train.TrainingPlan:
        """Plan of the first candidate, which has the label and the query of all."""
        return self.plans[0]

    @property
    def query(self) -> spec.Query:
        return self.first.query

    @property
    def schema(self) -> Schema:
        return self.first.schema

    @property
    def settings(self) -> train.Settings:
        return self.first.settings

    @property
    def whole_numbers(self) -> list[str]:
        return self.first.whole_numbers

    @property
    def label(self) -> str:
        return self.first.label

    @property
    def weight(self) -> str:
        return self.first.weight

    @property
    def seed(self) -> int:
        return self.first.seed

    @property
    def shuffle(self) -> bool:
        return self.first.shuffle

    @property
    def named(self) -> set[str]:
        return self.first.named

    @property
    def decisions(self) -> list[Decision]:
        """Decisions of all candidates."""
        return [decision for plan in self.plans for decision in plan.decisions]

    def wants(self) -> dict[str, Want]:
        """Map columns to the statistics of the training rows that any candidate needs."""
        wants: dict[str, Want] = {}
        for plan in self.plans:
            for column, want in plan.wants().items():
                wants[column] = wants.get(column, Want.NONE) | want
        return wants

    @property
    def computed(self) -> dict[str, spec.Computed]:
        """Columns of expressions by name, of all candidates."""
        return {name: each for plan in self.plans for name, each in plan.computed.items()}

    @property
    def columns(self) -> list[str]:
        """Columns of the table that have statistics."""
        return [column for column in self.wants() if column not in self.computed]

    def checks(self) -> DataChecks:
        return self.first.checks()

    def lists(self) -> set[Cells]:
        return {cells for plan in self.plans for cells in plan.lists()}

    def fit(self, statistics: Statistics, rows: spec.Rows, classes: labels.Values) -> spec.JobSpec:
        """Return the JobSpec of the search. Raises the errors of the first candidate if none can be trained."""
        ordered = self.splitting.split is not None and self.splitting.split.by in ("time", "group")
        if ordered and self.folds not in (None, 1):
            raise self._not_at_random()
        divided = divide(
            rows,
            self.held_out.test_rows(rows.validation),
            written=TEST in self._names,
            folds=1 if ordered or self.held_out.query or self.validates else self.folds,
        )
        if not divided.rows.validation:
            raise self._too_few(rows.total)
        found: list[spec.Candidate] = []
        failed: list[SQLFlowError] = []
        tried_first = 0
        label = expressions.name(self.label, self.query.dialect)
        shares = self._shares(divided)
        held_out = replace(self.held_out, test=0.0)
        for number, (drafted, planned) in enumerate(zip(self.drafts, self.plans, strict=True), 1):
            draft, own = self._encoded(drafted, planned, statistics)
            plan = replace(own, held_out=held_out, splitting=self.splitting)
            try:
                fitted = replace(plan, validation=self.validation).fit(statistics, divided.rows, classes)
            except SQLFlowError as error:
                failed.append(error)
                continue
            text = draft.text(self.statement, self.query.dialect, fitted.model.name, label, shares, number)
            name = draft.name(draft.model or fitted.model.name)
            job = msgspec.structs.replace(fitted, statement=text)
            found.append(spec.Candidate(name, job, draft.point))
            tried_first += number <= self.ordered
        self.notes.extend(
            dict.fromkeys(note for plan in self.plans for note in plan.notes if labels.CHOSEN not in note)
        )
        if not found:
            raise failed[0]
        return self._spec(found, divided, tried_first)

    def _encoded(
        self, draft: CandidateDraft, own: train.TrainingPlan, statistics: Statistics
    ) -> tuple[CandidateDraft, train.TrainingPlan]:
        """Return a candidate that encodes texts without those that are left out of the others."""
        useful = [each for each in draft.encoded if not _is_useless(each, statistics[each])]
        if len(useful) == len(draft.encoded):
            return draft, own
        draft = draft.with_encodings(useful, self.query.dialect)
        return draft, train.plan(draft.statement, self.query, self.schema)

    def _too_few(self, rows: int) -> SemanticError:
        few = "1 row leaves" if rows == 1 else f"{rows:,} rows leave"
        return SemanticError(
            f"a search needs validation rows, and {few} none",
            span=self.statement.select_span,
            hint="select more rows, or name a model: TO TRAIN Linear",
        )

    def _not_at_random(self) -> SemanticError:
        split = self.splitting.split
        by = f"{split.by} ({split.column})" if split is not None else "time"
        return SemanticError(
            f"folds are drawn at random, and the validation rows are chosen by {by}",
            span=self.written[settings.FOLDS].written.span,
            hint="keep one of them: leave the folds out, or write validation.split = random",
        )

    def _spec(self, found: list[spec.Candidate], divided: Division, ordered: int) -> spec.JobSpec:
        first = found[0].spec
        metric = self._metric(first.label)
        usual = 0.0 if self._is_in_folds else default_seconds(divided.rows.total)
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
                tuple(found),
                metric,
                float(_given(self.written, settings.TIME_LIMIT) or usual),
                _given(self.written, settings.MEMBERS) or (5 if self.statement.kind == "auto" else 1),
                divided.test,
                divided.folds,
                self._refit(divided.folds),
                self.trials if self.trials < len(found) else 0,
                self._screening(divided),
                ordered,
            ),
        )

    def _screening(self, divided: Division) -> int:
        """Return the training rows on which candidates are compared first; 0 if all are trained on all rows."""
        rows, given = divided.rows.training, _given(self.written, settings.HALVING)
        if divided.folds > 1 or given is False:
            return 0
        pays = self.statement.kind != "auto" and rows >= SCREENED_ROWS and self.trials >= LEAST_TRIALS
        return rows // SCREENING if given or pays else 0

    def _metric(self, label: spec.Label) -> str:
        """Return the metric that chooses. Raises SemanticError if it does not suit the label."""
        given = self.written.get(settings.METRIC)
        if given is None:
            return "log_loss" if isinstance(label, spec.ClassLabel) else "rmse"
        with at(given.written.value.span):
            return metrics.by_name(str(given.value), metrics.kind_of(label)).name

    def _refit(self, folds: int) -> bool:
        """Return True if the chosen models are trained once more on all rows."""
        given = _given(self.written, settings.REFIT)
        if given is not None:
            return bool(given)
        if self.validates or self.held_out.query:
            return False
        return self._is_in_folds or (self.statement.kind == "auto" and folds == 1)

    @property
    def _is_in_folds(self) -> bool:
        """True if one model, which the statement names, is trained in folds."""
        return self.statement.kind == "train" and not space.searched(self.statement)

    @property
    def _names(self) -> set[str]:
        """Names of the written attributes, of the search and of its candidates."""
        rows = (settings.find(each.key) for each in self.statement.attributes)
        return {row.name for row in rows if row is not None} | set(self.written)

    @property
    def validates(self) -> bool:
        """True if the statement writes which rows validate."""
        return self.statement.validate is not None or FRACTION in self._names

    def _shares(self, divided: Division) -> Lines:
        """Return the attributes of the validation and test rows that the statement does not write."""
        if self.held_out.query:
            return ()
        rows, names = divided.rows, self._names
        found = []
        if not self.validates:
            share = rows.validation / rows.total if divided.folds > 1 or not divided.test else VALIDATION
            found.append((FRACTION, f"{share:.4g}"))
        if TEST not in names and divided.test:
            found.append((TEST, f"{TEST_SHARE:g}"))
        return tuple(found)


TrainPlan = train.TrainingPlan | SearchPlan


def is_search(statement: ast.Statement) -> bool:
    """Return True for the short form of TRAIN, for attributes or items of COLUMN with several values, and for folds.

    A model that is trained in folds is the only candidate of its search.
    """
    if statement.kind != "train":
        return statement.kind == "auto"
    return bool(space.searched(statement)) or _folds(statement) is not None


def _folds(statement: ast.Statement) -> ast.Attribute | None:
    """Return the attribute that divides the rows into several folds, or None."""
    for each in statement.attributes:
        is_one = isinstance(each.value, ast.Constant) and each.value.value == 1
        if settings.is_folds(each.key) and not is_one:
            return each
    return None


def check_without_columns(statement: ast.Statement) -> None:
    """Check a search as far as possible without the columns of its query; raises all errors together."""
    errors: list[SQLFlowError] = []
    notes: list[str] = []
    try:
        drafts, _, _ = _drafts(statement, notes)
        train.check_without_columns(drafts[0].statement)
    except SQLFlowError as error:
        errors.append(error)
    raise_all(errors)


def plan(statement: ast.Statement, query: spec.Query, schema: Schema) -> SearchPlan:
    """Check the statement of a search against its query's columns; raises all errors of one candidate together."""
    notes: list[str] = []
    drafts, ordered, written = _drafts(statement, notes, columns=len(schema.names))
    plans = [train.plan(each.statement, query, schema) for each in drafts]
    texts = _texts(schema, plans[0])
    drafts = tuple(each.with_encodings(texts, query.dialect) for each in drafts)
    plans = [
        train.plan(draft.statement, query, schema) if draft.encoded else plan
        for draft, plan in zip(drafts, plans, strict=True)
    ]
    trials = _given(written, settings.TRIALS) or (len(drafts) if statement.kind == "auto" else TRIALS)
    own, folds = plans[0].held_out, _given(written, settings.FOLDS)
    if folds is None and statement.kind != "auto":
        folds = 1
    found = SearchPlan(
        statement, drafts, tuple(plans), own, plans[0].splitting, written, trials, ordered, folds, notes=notes
    )
    if own.query and _given(written, settings.REFIT):
        raise SemanticError(
            f"{settings.REFIT} trains on the validation rows, and a query of their own selects them",
            span=written[settings.REFIT].written.span,
            hint="keep one of them",
        )
    if folds not in (None, 1) and (own.query or found.validates):
        raise SemanticError(
            f"{settings.FOLDS} divides the query's rows, and the validation rows are given",
            span=written[settings.FOLDS].written.span,
            hint="keep one of them",
        )
    return found


def _texts(schema: Schema, plan: train.TrainingPlan) -> list[str]:
    """Return the columns of texts that are features and that no COLUMN clause mentions."""
    reserved = {plan.label, plan.weight, plan.splitting.group, *plan.named}
    return [
        column
        for column in schema.names
        if column not in reserved and schema.type(column) is ColumnType.TEXT and not schema.items(column)
    ]


def _is_useless(column: str, found: ColumnStatistics) -> bool:
    return found.constant or found.nulls == found.rows or is_id(column, found)


class _Drafts(NamedTuple):
    """Candidates, the number of those that are tried in their order (0: all), and the attributes of the search."""

    candidates: tuple[CandidateDraft, ...]
    ordered: int
    written: dict[str, Resolved]


def _drafts(statement: ast.Statement, notes: list[str], columns: int = 0) -> _Drafts:
    """Return the candidates and the checked attributes of the search; raises all errors together."""
    errors: list[SQLFlowError] = []
    if statement.kind != "auto":
        return _points(statement, notes, errors, columns)
    if several := space.searched(statement):
        raise SemanticError(
            "without a model, a search has candidates of its own",
            span=several[0].value.span,
            hint="name the model that is to be tried with several values: TO TRAIN BoostedTrees …",
        )
    dictionary = Dictionary((*settings.ROWS, *KUBERNETES), settings.ELSEWHERE)
    written = dictionary.resolve(statement.attributes, errors, notes)
    raise_all(errors)
    models, trials = (_given(written, name) for name in (settings.MODELS, settings.TRIALS))
    variants, missing = portfolio.variants(models or (), trials or 0)
    if not trials and columns > portfolio.WIDE:
        variants = variants[: portfolio.FEWER]
    if missing:
        notes.append(
            f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} not installed, and not tried"
        )
    if not variants:
        raise SemanticError(
            "none of the models to try is installed",
            span=statement.span,
            hint="pip install 'sqlflow-edl[lightgbm,torch]'",
        )
    further: list[portfolio.Variant] = []
    if columns <= MOST_COLUMNS and (not trials or trials > len(variants)):
        further = local.points(variants, POOL * (trials - len(variants)) if trials else local.COUNT)
    drafts = tuple(of_portfolio(statement, [*variants, *further], written))
    return _Drafts(drafts, len(variants) if further else 0, written)


def _points(statement: ast.Statement, notes: list[str], errors: list[SQLFlowError], columns: int) -> _Drafts:
    """Return a candidate for each point of the statement's search space, or for as many as are tried."""
    why = _why(statement)
    if statement.using is not None:
        errors.append(
            SemanticError(
                f"{why.words} trains new models, and USING starts from a trained one",
                span=statement.using.span,
                hint=f"leave USING out, or {why.instead}",
            )
        )
    own = (each for each in statement.attributes if settings.is_of_search(each.key))
    written = Dictionary(settings.OF_SPACE).resolve(own, errors, notes)
    found = space.dimensions(statement, errors)
    raise_all(errors)
    seed = next((each.value for each in statement.attributes if each.key.casefold() in SEED), None)
    first = seed.value if isinstance(seed, ast.Constant) and isinstance(seed.value, int) else 0
    trials = _given(written, settings.TRIALS) or TRIALS
    chooses = trials >= LEAST_TRIALS and columns <= portfolio.WIDE
    drafts = tuple(of_space(statement, found, trials, POOL * trials if chooses else trials, first))
    _refuse_other_tasks(drafts[0].statement, why)
    spread = max(LEAST_SPREAD, math.ceil(SPREAD * trials))
    return _Drafts(drafts, spread if len(drafts) > trials else 0, written)


class _Why(NamedTuple):
    """What makes a TRAIN statement a search, for messages, and its place."""

    words: str
    span: Span
    instead: str


def _why(statement: ast.Statement) -> _Why:
    if several := space.searched(statement):
        one_each = "write one value for each attribute and column"
        return _Why("a search over values", several[0].value.span, one_each)
    folds = _folds(statement)
    if folds is None:
        return _Why("a search", statement.span, "name a model")
    return _Why("a training in folds", folds.span, f"leave {folds.key} out")


def _refuse_other_tasks(statement: ast.Statement, why: _Why) -> None:
    """Raise SemanticError if the candidates rank rows, whose groups a search cuts, have no label, or forecast."""
    model = train.check_settings(statement, [], []).model
    does = {"ranking": "ranks rows", "forecasting": "forecasts series"}
    does |= {"clustering": "finds clusters", "anomaly detection": "finds anomalies"}
    if model is not None and model.task in does:
        raise SemanticError(
            f"{why.words} is for numbers and classes, and {model.name} {does[model.task]}",
            span=why.span,
            hint=why.instead,
        )


def default_seconds(rows: int) -> float:
    """Return the time limit of a search by the number of its rows."""
    return next((seconds for most, seconds in SECONDS if rows <= most), MOST_SECONDS)


def _given(written: Mapping[str, Resolved], name: str) -> Any:
    return written[name].value if name in written else None
