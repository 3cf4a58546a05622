"""Settings of a TRAIN statement: model, optimizer, schedule, loss and attributes, checked without the database."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from edl import metrics, spec
from edl.errors import SemanticError, Span, SQLFlowError
from sqlflow_edl.analysis import catalog, user_model, warm_start
from sqlflow_edl.analysis.choice import Choice, choose, with_loss
from sqlflow_edl.analysis.entries import NETWORKS, Entry
from sqlflow_edl.analysis.losses import LOSSES
from sqlflow_edl.analysis.models import forecast, transform
from sqlflow_edl.analysis.models.base import Model
from sqlflow_edl.analysis.schema import Schema
from sqlflow_edl.analysis.settings import search, trees
from sqlflow_edl.analysis.settings.attribute_dictionary import AttributeRow, Dictionary, Resolved
from sqlflow_edl.analysis.settings.attributes import TRAIN
from sqlflow_edl.analysis.settings.kubernetes import KUBERNETES
from sqlflow_edl.analysis.settings.values import Setting
from sqlflow_edl.syntax import ast


@dataclass(frozen=True, slots=True)
class TrainSettings:
    """Checked attributes of the statement, before the rows are known."""

    choice: Choice
    framework: spec.job.Framework
    optimizer: Entry
    schedule: Entry | None
    loss: str | None
    resolved: Mapping[str, Resolved]
    functions: tuple[str, ...]  # functions of the contract from the model's module
    dictionary: Dictionary  # of the attributes of the statement
    is_trees: bool
    workers: int | None = None  # of the session, which override the statement's
    task: str = ""  # of a label of whole numbers, by the metric of a search; empty: the rows decide

    @property
    def model(self) -> Model | None:
        """Model, or None if the label chooses it."""
        return self.choice.entry

    @property
    def only_fits(self) -> bool:
        """True of a transform: it fits columns and trains nothing."""
        return self.choice.example.task == transform.TASK

    def vary(
        self, varied: Mapping[str, Resolved], others: Mapping[str, Resolved], errors: list[SQLFlowError]
    ) -> TrainSettings:
        """Return the settings with other parameters of the model and its optimizer, and another length.

        others: attributes that stay.
        """
        if self.is_trees:
            trees.check(varied, self.framework, errors)
        return replace(self, resolved={**others, **varied})

    def get(self, name: str) -> Setting:
        return self.resolved[name].value if name in self.resolved else None

    def span(self, name: str) -> Span | None:
        return self.resolved[name].span if name in self.resolved else None

    def column(
        self,
        attribute: str,
        schema: Schema,
        others: Collection[str],
        taken: str,
        hint: str | None = "name another column",
        name: str | None = None,
    ) -> tuple[str, SemanticError | None]:
        """Return the column that an attribute names, empty for an unknown one, and the error of an unusable one.

        taken: why it cannot be one of `others`. name: one of several that the attribute names.
        """
        name, span = str(self.get(attribute)) if name is None else name, self.span(attribute)
        column_found = schema.find(name)
        if column_found is None:
            return "", SemanticError(f"unknown column {name}", span=span, hint=schema.suggest_columns(name))
        return column_found, SemanticError(
            f"{column_found} {taken}", span=span, hint=hint
        ) if column_found in others else None

    def own_function(self, function: str) -> spec.Component | None:
        """Return a function of the model's module by its dotted name, or None if it is not taken from there."""
        user_code = self.choice.own
        return (
            spec.Component(f"{user_code.module}.{function}")
            if user_code and function in self.functions
            else None
        )


class CheckedSettings(NamedTuple):
    """Settings with their errors, which are raised together with those of the columns, and notes."""

    settings: TrainSettings
    errors: tuple[SQLFlowError, ...]
    notes: tuple[str, ...]


def check_settings(statement: ast.Statement, parent: warm_start.Parent | None = None) -> CheckedSettings:
    """Check model, optimizer, loss and attributes, which need no database.

    Raises SemanticError for a parent that cannot be trained further.
    """
    errors: list[SQLFlowError] = []
    notes: list[str] = []
    settings = _resolve_settings(statement, parent, errors, notes)
    return CheckedSettings(settings, tuple(errors), tuple(notes))


def _resolve_settings(
    statement: ast.Statement, parent: warm_start.Parent | None, errors: list[SQLFlowError], notes: list[str]
) -> TrainSettings:
    choice = choose(statement, errors)
    if parent:
        choice = warm_start.choice(parent, choice, statement, errors)
    shared = Dictionary(TRAIN)
    optimizer = _optimizer(choice, shared, statement, errors)
    loss = catalog.written_entry(LOSSES, shared, statement.attributes, "loss", errors)
    choice = with_loss(choice, loss)
    schedule = catalog.written_entry(
        catalog.SCHEDULES, shared, statement.attributes, "optimizer.schedule", errors
    )
    if schedule is None and (usual := choice.example.defaults.get("optimizer.schedule")):
        schedule = catalog.SCHEDULES.entries[str(usual)]
    usual_loss = None if choice.own else LOSSES.entries["cross_entropy"]  # of classes
    chosen = [choice.example, optimizer, *(entry for entry in (loss or usual_loss, schedule) if entry)]
    dictionary = _dictionary(choice, chosen)
    attributes = statement.attributes
    resolved = dictionary.resolve(attributes, errors, notes)
    _check_metrics(statement, resolved, errors)
    framework = parent.spec.framework if parent else _framework(choice, resolved, loss, errors)
    if choice.is_trees:
        trees.check(resolved, framework, errors, loss.name if loss else "")
    if choice.is_forest and statement.model:
        notes.append(
            f"{statement.model} is one round of XGBoost with many trees, each from a sample of the rows"
        )
    if parent:
        warm_start.check_parameters(parent, resolved, errors)
    if choice.own and statement.model:
        user_model.check(choice.own, written_parameters(choice, resolved), statement.model.span, errors)
    if framework in NETWORKS and framework not in optimizer.frameworks:
        names = [
            candidate.name
            for candidate in catalog.OPTIMIZERS.entries.values()
            if framework in candidate.frameworks
        ]
        message, hint = f"{framework} has no optimizer {optimizer.name}", f"there are {', '.join(names)}"
        errors.append(SemanticError(message, span=resolved["optimizer"].span, hint=hint))
    errors += _find_missing(statement)
    named_loss = loss.name if loss else None
    functions = user_model.functions(choice.own, framework, resolved) if choice.own else ()
    is_trees = framework in spec.TREES
    return TrainSettings(
        choice, framework, optimizer, schedule, named_loss, resolved, functions, dictionary, is_trees
    )


def _find_missing(statement: ast.Statement) -> Iterator[SQLFlowError]:
    """Yield errors for a query and a name of the model that the statement lacks."""
    if not statement.select:
        first = "LABEL" if statement.text.upper().startswith("LABEL") else "TO TRAIN"
        hint = f"write SELECT … FROM … before {first}, with no semicolon between them"
        yield SemanticError("there is no SELECT to learn from", span=statement.span, hint=hint)
    if not statement.into:
        end = Span(statement.span.end - 1, statement.span.end)
        yield SemanticError("the model has no name", span=end, hint="end the statement with INTO my_model")


def _check_metrics(
    statement: ast.Statement, resolved: Mapping[str, Resolved], errors: list[SQLFlowError]
) -> None:
    """Add an error for a metric of no kind of label; several labels have metrics under names of their own."""
    attribute = resolved.get("validation.metrics")
    if attribute is None or len(statement.labels) > 1 or not isinstance(attribute.value, tuple):
        return
    try:
        for name in attribute.value:
            metrics.by_name(str(name), None)
    except SemanticError as error:
        error.span = attribute.span
        errors.append(error)


def _optimizer(
    choice: Choice, shared: Dictionary, statement: ast.Statement, errors: list[SQLFlowError]
) -> Entry:
    """Return the written optimizer or the default; trees are boosted."""
    if choice.is_trees:
        return catalog.BOOSTING
    entry = catalog.written_entry(catalog.OPTIMIZERS, shared, statement.attributes, "optimizer", errors)
    defaults = choice.example.defaults
    return entry or catalog.OPTIMIZERS.entries[str(defaults.get("optimizer", "adam"))].with_defaults(defaults)


def _dictionary(choice: Choice, chosen: Sequence[Entry]) -> Dictionary:
    """Return the attributes of the statement. chosen: model, optimizer, loss and schedule."""
    rows = [row for entry in chosen for row in entry.params]
    elsewhere = {**catalog.parameters_of_others(chosen), **search.OF_SEARCHES}
    if choice.example.task == transform.TASK:
        fits = [row for row in TRAIN if row.name == "train.seed"]
        trains = (row.name for row in (*TRAIN, *KUBERNETES, *rows) if row not in fits)
        return Dictionary(fits, {**elsewhere, **dict.fromkeys(trains, transform.WHY_NOT)})
    shared: Sequence[AttributeRow] = TRAIN
    if choice.example.task == "forecasting":
        shared = [row for row in shared if row.name not in forecast.OF_ROWS]
        elsewhere |= dict.fromkeys(forecast.OF_ROWS, forecast.WHY_NOT)
    if not choice.is_trees:
        elsewhere[trees.DISK_CACHE.name] = "trees of XGBoost"
        return Dictionary((*shared, *KUBERNETES, *rows), elsewhere)
    shared = [row for row in shared if row.name not in trees.OF_NETWORKS]
    elsewhere |= dict.fromkeys(trees.OF_NETWORKS, "networks, such as DNNClassifier")
    return Dictionary((*shared, trees.DISK_CACHE, *KUBERNETES, *rows), elsewhere, trees.WITHOUT_EFFECT)


def _framework(
    choice: Choice, resolved: Mapping[str, Resolved], loss: Entry | None, errors: list[SQLFlowError]
) -> spec.job.Framework:
    """Return the framework: the written one, the one in the model's name, or the first one that has the loss."""
    name_found = choice.framework
    if loss and not choice.implied_framework:
        name_found = next(
            (candidate for candidate in choice.example.frameworks if candidate in loss.frameworks), name_found
        )
    if "model.framework" in resolved:
        name_found = str(resolved["model.framework"].value)
        model = choice.example
        fixed = choice.implied_framework or (model.frameworks[0] if len(model.frameworks) == 1 else "")
        if name_found not in ((fixed,) if fixed else model.frameworks):
            name, of = model.name.rpartition(".")[2], fixed or " and ".join(model.frameworks)
            name = choice.family or name
            errors.append(
                SemanticError(
                    f"{name} is written in {of}, not {name_found}",
                    span=resolved["model.framework"].span,
                    hint="leave model.framework out",
                )
            )
            name_found = choice.framework
    return name_found  # type: ignore[return-value]  # of the choices of the attribute


def written_parameters(choice: Choice, resolved: Mapping[str, Resolved]) -> list[str]:
    """Return the written parameters of the model."""
    return [
        name.removeprefix("model.")
        for name in resolved
        if name in {row.name for row in choice.example.params}
    ]
