"""Plan of a search: a TRAIN statement for each candidate, over the same pinned rows.

A candidate's JobSpec is that of its statement, which a user could run to train the model by itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from edl import metrics, spec
from edl.errors import SemanticError, Span, SQLFlowError, raise_all
from sqlflow_edl.analysis import expressions, labels, train
from sqlflow_edl.analysis.checks.data import DataChecks
from sqlflow_edl.analysis.columns.cells import Cells
from sqlflow_edl.analysis.columns.decisions import Decision
from sqlflow_edl.analysis.columns.drafts import Statistics
from sqlflow_edl.analysis.schema import Schema
from sqlflow_edl.analysis.search import portfolio
from sqlflow_edl.analysis.settings import search as settings
from sqlflow_edl.analysis.settings.dictionary import Dictionary, Resolved
from sqlflow_edl.analysis.settings.kubernetes import KUBERNETES
from sqlflow_edl.analysis.statistics import Want
from sqlflow_edl.analysis.validation import HeldOut
from sqlflow_edl.errors.spans import at
from sqlflow_edl.syntax import ast

MODEL = "Ensemble"
SECONDS = (
    (1_000, 30.0),
    (10_000, 60.0),
    (100_000, 180.0),
)  # rows, and the time limit by default up to as many
MOST_SECONDS = 300.0
FOLDS = ((5_000, 5), (20_000, 3))  # rows, and the folds by default up to as many
LARGE = 100_000  # rows from which a twentieth is tested on


@dataclass(frozen=True, slots=True)
class SplitOfSearch(HeldOut):
    """Validation and test rows of a search, which needs more of them than one training. folds: None for the default."""

    folds: int | None = None

    def number_of_folds(self, total: int) -> int:
        """Return the number of folds for so many rows; 1 where the validation rows are written."""
        if self.folds is not None:
            return self.folds
        if self.query or self.fraction is not None:
            return 1
        return next((folds for most, folds in FOLDS if total <= most), 1)

    def rows(self, total: int) -> int:
        """Return the number of rows that are not trained on; all folds have as many."""
        folds, test = self.number_of_folds(total), self.test_rows(total)
        return (total - test) // folds + test if folds > 1 else HeldOut.rows(self, total)

    def shares(self, total: int) -> tuple[float, float]:
        """Return the shares of validation rows and of test rows among `total`."""
        if self.query:
            return 0.0, 0.0
        test, folds = self.test, self.number_of_folds(total)
        if test is None:
            test = 0.0 if total <= FOLDS[0][0] else 0.1 if total < LARGE else 0.05
        if folds > 1:
            return (1 - test) / folds, test
        return 0.1 if self.fraction is None else self.fraction, test


@dataclass(frozen=True, slots=True)
class SearchPlan:
    """Checked statement of a search that needs the statistics of its rows.

    plans: of the candidates' statements, in the order of the trials. written: the resolved attributes.
    """

    statement: ast.Statement
    variants: tuple[portfolio.Variant, ...]
    plans: tuple[train.TrainingPlan, ...]
    held_out: SplitOfSearch
    written: Mapping[str, Resolved]
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
    def label(self) -> str:
        return self.first.label

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

    def checks(self) -> DataChecks:
        return self.first.checks()

    def lists(self) -> set[Cells]:
        return {cells for plan in self.plans for cells in plan.lists()}

    def fit(self, statistics: Statistics, rows: spec.Rows, classes: labels.Values) -> spec.JobSpec:
        """Return the JobSpec of the search. Raises the errors of the first candidate if none can be trained."""
        if not rows.validation:
            raise SemanticError(
                f"a search needs validation rows, and {rows.total:,} rows leave none",
                span=self.statement.select_span,
                hint="select more rows, or name a model: TO TRAIN LinearClassifier",
            )
        found: list[spec.Candidate] = []
        failed: list[SQLFlowError] = []
        for number, (variant, plan) in enumerate(zip(self.variants, self.plans, strict=True), 1):
            try:
                fitted = replace(plan, validation=self.validation).fit(statistics, rows, classes)
            except SQLFlowError as error:
                failed.append(error)
                continue
            name = _name(variant, fitted.model.name)
            text = self._statement_of(variant, fitted.model.name, number, rows.total)
            found.append(spec.Candidate(name, msgspec.structs.replace(fitted, statement=text)))
        self.notes.extend(
            dict.fromkeys(note for plan in self.plans for note in plan.notes if "is chosen" not in note)
        )
        if not found:
            raise failed[0]
        return self._spec(found, rows)

    def _spec(self, found: list[spec.Candidate], rows: spec.Rows) -> spec.JobSpec:
        first = found[0].spec
        metric = str(_given(self.written, settings.METRIC) or _metric(first.label))
        with at(
            self.written[settings.METRIC].written.value.span if settings.METRIC in self.written else None
        ):
            metrics.by_name(metric, metrics.kind_of(first.label))
        test = self.held_out.test_rows(rows.total)
        limit = _given(self.written, settings.TIME_LIMIT)
        return msgspec.structs.replace(
            first,
            statement=self.statement.text,
            rows=msgspec.structs.replace(rows, validation=rows.validation - test),
            framework=spec.ENSEMBLE,
            model=spec.Component(MODEL),
            inputs={},
            optimizer=spec.Component("none"),
            loss=spec.Component(first.loss.name),
            schedule=None,
            training=spec.Training(
                epochs=1, seed=self.seed, validation_fraction=first.training.validation_fraction
            ),
            output=spec.Output(str(self.statement.into[0]) if self.statement.into else ""),
            batch_size=spec.BLOCK,
            search=spec.Search(
                tuple(found),
                metric,
                float(limit) if limit is not None else default_seconds(rows.total),
                int(_given(self.written, settings.MEMBERS) or 5),
                test,
                self.held_out.number_of_folds(rows.total),
            ),
        )

    def _statement_of(self, variant: portfolio.Variant, model: str, number: int, total: int) -> str:
        """Return the statement that trains a candidate by itself."""
        statement, start = self.statement, self.statement.span.start
        shared = [each.written for name, each in self.written.items() if name in settings.SHARED]
        lines = [statement.text[each.span.start - start : each.span.end - start] for each in shared]
        names = {name for name in self.written if name in settings.SHARED}
        if not self.held_out.query:
            validation, test = self.held_out.shares(total)
            if "validation.fraction" not in names and statement.validate is None:
                lines.append(f"validation.fraction = {validation:g}")
            if "validation.test_fraction" not in names and test:
                lines.append(f"validation.test_fraction = {test:g}")
        lines.append(f"model.framework = {variant.framework}")
        lines += [f"{name} = {_written(value)}" for name, value in variant.attributes.items()]
        clauses = [
            statement.text[each.span.start - start : each.span.end - start] for each in statement.columns
        ]
        if statement.validate is not None:
            clauses.append(
                statement.text[statement.validate.span.start - start : statement.validate.span.end - start]
            )
        label = expressions.name(self.label, self.query.dialect)
        into = f"{statement.into[0].text}_{number}" if statement.into else ""
        return " ".join(
            [
                statement.select,
                f"TO TRAIN {model}",
                "WITH " + ", ".join(lines),
                *clauses,
                f"LABEL {label}",
                *([f"INTO {into}"] if into else []),
            ]
        )


TrainPlan = train.TrainingPlan | SearchPlan


def check_without_columns(statement: ast.Statement) -> None:
    """Check a search as far as possible without the columns of its query; raises all errors together."""
    errors: list[SQLFlowError] = []
    written = check(statement, errors, [])
    try:
        train.check_without_columns(statement_of(statement, portfolio.PORTFOLIO[0], written))
    except SQLFlowError as error:
        errors.append(error)
    raise_all(errors)


def check(statement: ast.Statement, errors: list[SQLFlowError], notes: list[str]) -> dict[str, Resolved]:
    """Return the checked attributes of a search; errors and notes are appended."""
    dictionary = Dictionary((*settings.ROWS, *KUBERNETES), settings.ELSEWHERE)
    return dictionary.resolve(statement.attributes, errors, notes)


def plan(statement: ast.Statement, query: spec.Query, schema: Schema) -> SearchPlan:
    """Check the statement of a search against its query's columns; raises all its errors together."""
    errors: list[SQLFlowError] = []
    notes: list[str] = []
    written = check(statement, errors, notes)
    raise_all(errors)
    models, trials = (_given(written, name) for name in (settings.MODELS, settings.TRIALS))
    variants, missing = portfolio.variants(models or (), trials or 0)
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
    plans = [train.plan(statement_of(statement, variant, written), query, schema) for variant in variants]
    own = plans[0].held_out
    folds = _given(written, settings.FOLDS)
    if folds is not None and folds > 1 and (own.query or own.fraction is not None):
        raise SemanticError(
            f"{settings.FOLDS} divides the query's rows, and the validation rows are given",
            span=written[settings.FOLDS].written.span,
            hint="keep one of them",
        )
    held_out = SplitOfSearch(own.query, own.fraction, own.span, own.in_text, own.test, folds)
    plans = [replace(each, held_out=held_out) for each in plans]
    return SearchPlan(statement, tuple(variants), tuple(plans), held_out, written, notes=notes)


def statement_of(
    statement: ast.Statement, variant: portfolio.Variant, written: Mapping[str, Resolved]
) -> ast.Statement:
    """Return the TRAIN statement of a candidate, with the source spans of the search."""
    span = statement.labels[0].span if statement.labels else statement.span
    shared = [each.written for name, each in written.items() if name in settings.SHARED]
    own = {"model.framework": variant.framework, **variant.attributes}
    attributes = [ast.Attribute(name, _value(value, span), span) for name, value in own.items()]
    return replace(
        statement,
        kind="train",
        model=ast.Name((variant.family,), variant.family, span),
        attributes=(*shared, *attributes),
    )


def default_seconds(rows: int) -> float:
    """Return the time limit of a search by the number of its rows."""
    return next((seconds for most, seconds in SECONDS if rows <= most), MOST_SECONDS)


def _given(written: Mapping[str, Resolved], name: str) -> Any:
    return written[name].value if name in written else None


def _metric(label: spec.Label) -> str:
    return "log_loss" if isinstance(label, spec.ClassLabel) else "rmse"


def _name(variant: portfolio.Variant, model: str) -> str:
    """Return the model with its framework and the parameters by which the variant differs."""
    shown = (
        f"{name.rpartition('.')[2]} {_written(value)}"
        for name, value in variant.attributes.items()
        if not name.startswith("train.")
    )
    return ", ".join([f"{model} ({variant.framework})", *shown])


def _written(value: portfolio.Value) -> str:
    return f"[{', '.join(map(str, value))}]" if isinstance(value, tuple) else f"{value}"


def _value(value: portfolio.Value, span: Span) -> ast.Value:
    if isinstance(value, tuple):
        return ast.ListValue(tuple(ast.Constant(each, span) for each in value), span)
    return ast.Constant(value, span)
