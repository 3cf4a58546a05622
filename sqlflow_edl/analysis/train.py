"""Analysis of TRAIN: from a statement and its query's columns to a JobSpec, before and after the pass over the rows.

`plan` checks everything that needs no rows (model, attributes, columns, label) and returns the wanted statistics;
`TrainingPlan.fit` turns these into the JobSpec. Both collect their errors and raise them together.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TYPE_CHECKING

import msgspec

from edl import spec
from edl.errors import SemanticError, Span, SQLFlowError, raise_all
from edl.spec.computed import TO_NUMBER, table_columns
from sqlflow_edl.analysis import (
    catalog,
    forecasts,
    labels,
    several_labels,
    uncertainty,
    user_model,
    warm_start,
)
from sqlflow_edl.analysis.checks.data import DataChecks, is_id
from sqlflow_edl.analysis.checks.text_readings import read_texts
from sqlflow_edl.analysis.columns import computed as expressions
from sqlflow_edl.analysis.columns import reused
from sqlflow_edl.analysis.columns import trees as tree_columns
from sqlflow_edl.analysis.columns.cells import Cells
from sqlflow_edl.analysis.columns.decisions import Decision, decision
from sqlflow_edl.analysis.columns.derive import as_lists, left_out
from sqlflow_edl.analysis.columns.drafting import draft_other_columns, draft_written_columns
from sqlflow_edl.analysis.columns.drafts import Draft, Statistics
from sqlflow_edl.analysis.columns.encodings import of_label
from sqlflow_edl.analysis.columns.inputs import Fitted, ModelInputs, Placed, written_input
from sqlflow_edl.analysis.columns.items import Resolver, check_calls
from sqlflow_edl.analysis.columns.missing import list_null_indicators, separate_unseen
from sqlflow_edl.analysis.entries import Entry
from sqlflow_edl.analysis.inference.used_model import time_notes
from sqlflow_edl.analysis.models.base import Model
from sqlflow_edl.analysis.rows import increments
from sqlflow_edl.analysis.rows import row_weights as weights
from sqlflow_edl.analysis.rows.plan import RowPlan, plan_rows
from sqlflow_edl.analysis.rows.validation import held_out_rows
from sqlflow_edl.analysis.schema import ColumnType, Schema
from sqlflow_edl.analysis.settings import losses, running, trees
from sqlflow_edl.analysis.settings import optimizer as steps
from sqlflow_edl.analysis.settings import training_length as trainings
from sqlflow_edl.analysis.settings.values import Setting, read_device
from sqlflow_edl.analysis.statistics.fitting import ColumnStatistics, Want
from sqlflow_edl.analysis.train_settings import (
    CheckedSettings,
    TrainSettings,
    check_settings,
    written_parameters,
)
from sqlflow_edl.syntax import ast

if TYPE_CHECKING:
    import pyarrow as pa

    from edl.forecasting import ExamplesReader

_OF_LABEL = ("n_classes", "n_clusters")  # parameters of models that the label has


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingPlan(RowPlan):
    """Checked TRAIN statement that needs the statistics of its rows."""

    label_span: Span | None
    group: str  # the column of the groups of a ranking; empty without one
    drafts: tuple[Draft, ...]
    parent: warm_start.Parent | None = None  # the model that training starts from
    kept: ModelInputs = field(default_factory=dict)  # the parent's features, over the columns of this query
    # on columns that their type leaves out; `fit` adds its own, in the order of the features
    decisions: list[Decision] = field(default_factory=list)

    def wants(self) -> dict[str, Want]:
        """Map columns to the statistics of the training rows that `fit` needs."""
        wants: dict[str, Want] = {self.label: labels.label_wants(self.settings.model)} if self.label else {}
        wants |= dict.fromkeys(self.more_labels, labels.label_wants(self.settings.model))
        for draft in self.drafts:
            for part in draft.leaves:
                for column in part.columns:
                    wants[column] = wants.get(column, Want.NONE) | part.wants | Want.UNIQUE
        for column, want in warm_start.list_wants(self.kept).items():
            wants[column] = wants.get(column, Want.NONE) | want
        for source in self.computed.values():
            for column, want in expressions.list_wants(source, self.schema):
                wants[column] = wants.get(column, Want.NONE) | want
        if self.weight:
            wants[self.weight] = wants.get(self.weight, Want.NONE) | Want.MOMENTS
        if mark := self.splitting.mark:
            wants[mark] = wants.get(mark, Want.NONE) | Want.COUNTS
        if self.group:
            wants[self.group] = wants.get(self.group, Want.NONE)
        return wants

    @property
    def columns(self) -> list[str]:
        """Columns of the table that have statistics."""
        return [column for column in self.wants() if column not in self.computed]

    @property
    def _operands(self) -> set[str]:
        """Columns of the table that written expressions read."""
        derived = {column for draft in self.drafts if draft.why for column in draft.columns}
        of_user = (source for name, source in self.computed.items() if name not in derived)
        return {column for source in of_user for column in table_columns(source)}

    def unread_columns(self, statistics: Statistics) -> set[str]:
        """Return the computed columns of derived features that these statistics rule out."""
        derived = [draft for draft in self.drafts if draft.why and draft.columns[0] in self.computed]
        return {draft.columns[0] for draft in derived} - {
            draft.columns[0] for draft in derived if draft.applies(statistics)
        }

    def checks(self) -> DataChecks:
        """Return the checks of the rows, before any row is read."""
        others = (self.label, *self.more_labels, self.weight, self.group, self.splitting.mark)
        # a row is in several examples, so that comparisons of rows would mislead
        columns = [] if self.forecast else [column for column in self.columns if column not in others]
        return DataChecks(self.label, columns, self.schema, self.seed, self.more_labels)

    @property
    def named_columns(self) -> set[str]:
        """Columns that COLUMN names, or that the parent model reads."""
        named_columns = {column for draft in self.drafts if not draft.why for column in draft.columns}
        kept = (feature for features in self.kept.values() for feature in features)
        return (
            named_columns
            | self._operands
            | {column for feature in kept for column in spec.source_columns(feature)}
        )

    @property
    def needed_columns(self) -> set[str]:
        """Columns without which the statement has another meaning."""
        split = self.splitting.split
        of_split = [split.column] if split is not None else []
        return {*self.all_labels, self.weight, self.group, *self.named_columns, *of_split}

    @property
    def whole_numbers(self) -> list[str]:
        """Columns of derived features that are whole numbers."""
        derived = dict.fromkeys(column for draft in self.drafts if draft.why for column in draft.columns)
        return [
            column
            for column in derived
            if column not in self.computed
            and self.schema.type(column) is ColumnType.NUMBER
            and self.schema.is_integer(column)
            and not self.schema.is_null(column)
        ]

    def lists(self) -> set[Cells]:
        """Return the cells of several values for which `fit` needs statistics."""
        return {cells for draft in self.drafts for cells in draft.lists}

    def fit_series(self, rows: Iterable[pa.RecordBatch]) -> tuple[TrainingPlan, ExamplesReader]:
        """Return the plan of a forecast with the steps and the season of its rows, and their examples.

        Raises SemanticError, at the place of an attribute, for rows that are no regular series.
        """
        if self.forecast is None:
            raise RuntimeError("the plan is that of a forecast")
        fitted = forecasts.fit_series(self.forecast, self.settings, self.schema, self.label, rows)
        for note in fitted.notes:
            self._note(note)
        return replace(
            self, forecast=fitted.forecast, drafts=fitted.keep_drafts(self.drafts)
        ), fitted.examples

    def fit(self, statistics: Statistics, rows: spec.Rows, classes: labels.Values) -> spec.JobSpec:
        """Return the JobSpec. classes: the distinct labels of *all* rows, validation rows included."""
        return self.fit_columns(statistics, rows, classes).job

    def fit_columns(self, statistics: Statistics, rows: spec.Rows, classes: labels.Values) -> FittedTraining:
        """Return the JobSpec and its model, to which other settings can be given. classes: as of `fit`."""
        errors: list[SQLFlowError] = []
        test = self.held_out.test_rows(rows.validation)
        rows = msgspec.structs.replace(rows, validation=rows.validation - test)
        choice = self.settings.choice
        label_statistics = statistics.get(self.label, ColumnStatistics())
        model, label = self._choose_model(statistics, rows, classes)
        if self.parent:
            label = warm_start.label(self.parent, label, self.label_span)
        inputs = self._inputs(statistics, model, label, errors)
        if self.settings.is_trees and inputs:
            booster = self.settings.get("model.booster") or self.settings.choice.params.get("booster")
            features = chain.from_iterable(inputs.values())
            errors += trees.check_columns(self.settings.resolved, features, label, booster)
        if self.settings.only_fits:
            raise_all(errors)
            return FittedTraining(self._transform(rows, model, inputs, label), model, self.settings.optimizer)
        loss = losses.loss(self.settings, model, label, label_statistics, errors)
        own_functions = self.settings.functions
        metrics = (
            labels.metric_names(self.settings, label, errors)
            if "eval_metrics_fn" not in own_functions
            else ()
        )
        uncertainty.check_training(self.settings.resolved, label, errors)
        training = trainings.training(
            self.settings, rows, inputs, errors, own_query=self.validation is not None
        )
        row_weights = weights.of_rows(self.settings, self.weight, statistics, errors)
        raise_all(errors)
        defaults = model.defaults_of_width(chain.from_iterable(inputs.values()))
        model, optimizer = model.with_defaults(defaults), self._optimizer(defaults)
        optimizer_of_job, schedule = steps.read_steps(self.settings, optimizer, training, rows.training)
        job = spec.JobSpec(
            kind="train",
            statement=self.statement.text,
            query=self.query,
            rows=rows,
            framework=self.settings.framework,
            model=spec.Component(
                model.name, model_parameters(self.settings, model, label, rows.training, self.parent)
            ),
            inputs=inputs,
            label=label,
            optimizer=optimizer_of_job,
            loss=loss,
            metrics=metrics,
            schedule=schedule,
            weights=row_weights,
            training=training,
            evaluation=running.evaluation(self.settings),
            checkpoints=running.checkpoints(self.settings),
            cluster=running.cluster(self.settings),
            split=self.splitting.split,
            forecast=self.forecast,
            validation=self.validation,
            own=user_model.store_model(
                choice.own, written_parameters(choice, self.settings.resolved), own_functions
            )
            if choice.own
            else None,
            trained_model=self.parent.reference if self.parent else "",
            output=spec.Output(str(self.statement.into[0]) if self.statement.into else ""),
            batch_size=trees.BLOCK if self.settings.is_trees else spec.BLOCK,
            device=read_device(self.settings.get("train.device")),
            precision=self.settings.get("train.precision") or "float32",  # type: ignore[arg-type]  # of the choices
            keep_rows="none" if self.settings.get("model.keep_rows") == "none" else msgspec.UNSET,
        )
        raise_all(running.unused_limits(self.settings, job))
        if model.name in steps.SOLVABLE:
            job = steps.solve_exactly(job, self.settings)
        if model.finish is not None:
            job = model.finish(job)
        return FittedTraining(job, model, optimizer)

    def _transform(
        self, rows: spec.Rows, model: Model, inputs: ModelInputs, label: spec.Label
    ) -> spec.JobSpec:
        """Return the JobSpec of features without a model, which no job runs."""
        nothing = spec.Component(spec.NO_FRAMEWORK)
        return spec.JobSpec(
            "train",
            self.statement.text,
            self.query,
            rows,
            spec.NO_FRAMEWORK,
            spec.Component(model.name),
            inputs,
            label,
            optimizer=nothing,
            loss=nothing,
            metrics=(),
            training=spec.Training(seed=self.seed),
            split=None,
            output=spec.Output(str(self.statement.into[0])),
        )

    def _choose_model(
        self, statistics: Statistics, rows: spec.Rows, classes: labels.Values
    ) -> tuple[Model, spec.Label]:
        """Return the model and the typed label."""
        settings, statement = self.settings, self.statement
        if not self.label:
            return labels.choose_without_label(settings, statement, rows)
        label = labels.WrittenLabel(
            self.label,
            self.label_span,
            statement,
            settings,
            self.schema,
            self.notes,
            self.group,
            self.forecast,
        )
        if self.more_labels:
            by_label = {self.label: classes, **self.more_classes}
            return several_labels.choose(label, self.more_labels, statistics, by_label)
        return labels.choose(label, statistics.get(self.label, ColumnStatistics()), classes)

    def _optimizer(self, defaults: Mapping[str, Setting]) -> Entry:
        """Return the optimizer with the defaults for so many columns, unless it is written."""
        if "optimizer" in self.settings.resolved:
            return self.settings.optimizer
        return self.settings.optimizer.with_defaults(defaults)

    def _inputs(
        self, statistics: Statistics, model: Model, label: spec.Label, errors: list[SQLFlowError]
    ) -> ModelInputs:
        if self.parent:
            return self._parent_inputs(self.parent, statistics, errors)
        fitted = self._fit_columns(statistics, label, errors)
        if not fitted and not errors and not self.forecast:
            reasons = [one_decision.note for one_decision in self.decisions if one_decision.fitted is None]
            errors.append(
                SemanticError(
                    "no feature is left to learn from",
                    span=self.statement.select_span,
                    hint="\n".join(
                        [*reasons[:5], "select columns beside the label that differ between rows"]
                    ),
                )
            )
            return {}
        name = self.statement.model
        try:
            parameters = catalog.parameters(model, self.settings.resolved)
            assembled = model.architecture.assemble(fitted, label, parameters, name.span if name else None)
            return forecasts.inputs(self.forecast, assembled, label) if self.forecast else assembled
        except SQLFlowError as error:
            errors.append(error)
            return {}

    def _parent_inputs(
        self, parent: warm_start.Parent, statistics: Statistics, errors: list[SQLFlowError]
    ) -> ModelInputs:
        """Return the parent's features; written columns must be among them."""
        form = tree_columns.fit_column if self.settings.is_trees else None
        errors += warm_start.check_written(parent, self.drafts, self.kept, statistics, form)
        self.notes.extend(warm_start.warm_start_notes(parent, self.kept, statistics))
        for features in self.kept.values():
            whose = (
                Decision(tuple(spec.source_columns(feature)), f"of {parent.reference}", feature)
                for feature in features
            )
            self.decisions.extend(whose)
        return self.kept

    def _fit_columns(
        self, statistics: Statistics, label: spec.Label, errors: list[SQLFlowError]
    ) -> list[Placed]:
        fitted: list[Placed] = []
        marked: dict[str, ColumnStatistics] = {}
        for draft, left in self._left_out(statistics):
            if left:
                without = Decision((left[0],), left[1])
                if self._note(without.note):  # once: a date becomes several features
                    self.decisions.append(without)
                continue
            try:
                column, decided = self._column(draft, statistics, label)
                self.decisions.append(decided)
                if decided.fitted is None:
                    self._note(decided.note)
                    continue
                fitted.append(Placed(column, draft.input, draft.span))
                if self._marks_nulls(draft):
                    marked |= {str(source): statistics[draft.columns[0]] for source in spec.sources(column)}
            except SQLFlowError as error:
                same = ((earlier.message, earlier.span) == (error.message, error.span) for earlier in errors)
                if not any(same):  # an item that makes several features
                    errors.append(error)
        for place, indicator, why in reversed(list(list_null_indicators(fitted, marked))):
            fitted.insert(place + 1, indicator)
            self.decisions.append(why)
        return fitted

    def _column(self, draft: Draft, statistics: Statistics, label: spec.Label) -> tuple[Fitted, Decision]:
        """Fit a draft, in the form that the model takes. The decision may be to leave it out."""
        column = of_label(draft.fit(statistics), label, draft.span)
        if column.array == "sequence" and not self.settings.choice.example.reads_sequences:
            user_model.check_sequence(self.settings.choice.own, column, draft.span)
        if self.settings.is_trees and draft.why and (wide := tree_columns.wide_decision(column)) is not None:
            return column, wide
        for note in as_lists(draft, column):
            self._note(note)
        if draft.origin:
            column = reused.form(column, draft, trees=self.settings.is_trees)
        else:
            column = separate_unseen(column, statistics, trees=self.settings.is_trees)
        if self.settings.is_trees:
            column, draft = tree_columns.fit_column(column, draft.span), tree_columns.describe_draft(draft)
        self._note_on_texts(draft, statistics)
        return column, decision(draft, column)

    def _marks_nulls(self, draft: Draft) -> bool:
        """Return True if NULL in a number is a feature of its own.

        Trees take it as it is; distances between rows, a series and a written feature of a user's own layers do not.
        """
        own = self.settings.choice.own is not None and not draft.why
        return bool(self.label) and not (self.settings.is_trees or own or draft.origin or self.forecast)

    def _note_on_texts(self, draft: Draft, statistics: Statistics) -> None:
        """Say that the numbers in texts are the feature, and which texts are NULL."""
        source = self.computed.get(draft.columns[0])
        if not draft.why or source is None or source.operator != TO_NUMBER:
            return
        [column] = table_columns(source)
        reading = read_texts(statistics[column].counts)
        others = ", ".join(map(repr, reading.others)) if reading else ""
        self._note(f"{column}, a text, is read as numbers" + (f"; NULL is {others}" if others else ""))

    def _left_out(self, statistics: Statistics) -> list[tuple[Draft, tuple[str, str] | None]]:
        """Return each draft with the reason to leave it out, or None.

        A number that is an id stays if nothing else does.
        """
        drafts = [draft for draft in self.drafts if draft.applies(statistics)]
        reasons = [left_out(draft, statistics, self.schema) if draft.why else None for draft in drafts]
        if all(reasons):
            reasons = [
                None
                if statistics[draft.columns[0]].span and is_id(draft.columns[0], statistics[draft.columns[0]])
                else why
                for draft, why in zip(drafts, reasons, strict=True)
            ]
        return list(zip(drafts, reasons, strict=True))

    def _note(self, note: str) -> bool:
        """Add a note; true if it is new."""
        if note in self.notes:
            return False
        self.notes.append(note)
        return True


@dataclass(frozen=True, slots=True)
class FittedTraining:
    """JobSpec of a training. model, optimizer: with the defaults for its columns."""

    job: spec.JobSpec
    model: Model
    optimizer: Entry

    def vary(self, settings: TrainSettings) -> spec.JobSpec:
        """Return the JobSpec with other values of `VARIED`; the columns, the label and the loss stay."""
        job, errors = self.job, list[SQLFlowError]()
        rows = job.rows
        training = trainings.training(
            settings, rows, job.inputs, errors, own_query=job.validation is not None
        )
        if errors:
            raise_all(errors)
        parameters = model_parameters(settings, self.model, job.label, rows.training)
        optimizer, schedule = steps.read_steps(settings, self.optimizer, training, rows.training)
        varied = msgspec.structs.replace(
            job,
            model=spec.Component(self.model.name, parameters),
            optimizer=optimizer,
            schedule=schedule,
            training=training,
        )
        if self.model.name in steps.SOLVABLE:
            return steps.solve_exactly(varied, settings)
        return varied if self.model.finish is None else self.model.finish(varied)


def model_parameters(
    settings: TrainSettings,
    model: Model,
    label: spec.Label,
    rows: int,
    parent: warm_start.Parent | None = None,
) -> dict[str, spec.job.Parameter]:
    """Return the parameters of the model itself, without the parameters of its label.

    rows: number of training rows. parent: the model that training starts from.
    """
    choice, resolved = settings.choice, settings.resolved
    values = dict(choice.params)
    if choice.is_forest:
        values["num_parallel_tree"] = settings.get(trees.LENGTH.name) or trees.TREES_OF_FOREST
    for row in model.params:
        prefix, _, name = row.name.partition(".")
        value = resolved[row.name].value if row.name in resolved else row.default
        if prefix == "model" and value is not None and (choice.own or name not in _OF_LABEL):
            values[name] = value
    if not choice.own and (values.get("batch_norm") or label.labels):
        values.pop("members", None)  # a single network
    if parent:
        values = warm_start.parameters(parent, values, resolved)
    return trees.parameters(values, settings.framework, rows) if settings.is_trees else values


def plan(
    statement: ast.Statement,
    query: spec.Query,
    schema: Schema,
    checked: CheckedSettings,
    parent: warm_start.Parent | None = None,
    workers: int | None = None,
    last: spec.Query | None = None,
    models: reused.Models | None = None,
) -> TrainingPlan:
    """Check the statement against the query's columns; raises all its errors together.

    checked: the settings of the statement. parent: the model that TRAIN … USING starts from. workers: of the session,
    which overrides the statement. last: the query of the model's last training, for a training on the rows that are new
    since then. models: the models of FEATURES(m) in COLUMN.
    """
    settings, errors, notes = checked.settings, list(checked.errors), [*statement.warnings, *checked.notes]
    errors += running.problems(settings, workers)
    settings = replace(settings, workers=workers)
    rows = plan_rows(statement, settings, schema, errors)
    if parent:
        errors += (reused.with_parent(name, parent.reference) for name in statement.reused_models)
    resolver = Resolver(schema, rows.reserved_columns, errors, notes, models)
    drafts, decisions = draft_written_columns(statement, settings, resolver), list[Decision]()
    if not parent:
        drafts += draft_other_columns(
            statement, settings, resolver, drafts, rows.groups, rows.forecast, decisions
        )
    if parent:
        notes += time_notes(parent.spec, query)
    kept = warm_start.inputs(parent, statement, schema, errors) if parent else {}
    raise_all(errors)
    label = rows.label
    return TrainingPlan(
        statement=statement,
        query=increments.select_new_rows(query, rows.growing, last),
        schema=schema,
        settings=settings,
        label=label,
        label_span=rows.labels.get(label),
        weight=rows.weight,
        group=rows.group,
        drafts=tuple(drafts),
        held_out=rows.held_out,
        splitting=rows.splitting,
        forecast=rows.forecast,
        parent=parent,
        kept=kept,
        computed=resolver.computed | warm_start.computed_columns(kept),
        more_labels={column: span for column, span in rows.labels.items() if column != label},
        notes=notes,
        decisions=decisions,
    )


def check_without_columns(
    statement: ast.Statement, parent: warm_start.Parent | None = None, workers: int | None = None
) -> None:
    """Check a TRAIN statement as far as possible without the columns of its query; raises all errors together.

    parent, workers: as for `plan`.
    """
    checked = check_settings(statement, parent)
    settings, errors = checked.settings, list(checked.errors)
    errors += running.problems(settings, workers)
    label_names = labels.read_labels(statement, settings.model, errors)
    several_labels.check(statement, settings, {str(name): name.span for name in label_names}, errors)
    held_out_rows(
        statement,
        settings.resolved,
        errors,
        none=settings.only_fits,
        usual=settings.choice.example.usual_fraction,
    )
    for clause in statement.columns:
        written_input(clause, settings.choice.example.architecture.inputs, errors)
        errors += check_calls(clause.items)
    raise_all(errors)
