"""Plans of a search's candidates: rows and columns are planned once for all candidates that differ in numbers alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from edl import spec
from edl.errors import SQLFlowError, raise_all
from sqlflow_edl.analysis import train
from sqlflow_edl.analysis.catalog import OPTIMIZERS
from sqlflow_edl.analysis.columns.reused import Models
from sqlflow_edl.analysis.models.dnn import MEMBERS
from sqlflow_edl.analysis.models.parts import HIDDEN_LAYERS
from sqlflow_edl.analysis.schema import Schema
from sqlflow_edl.analysis.search.candidates import CandidateDraft
from sqlflow_edl.analysis.settings import trees
from sqlflow_edl.analysis.settings.attribute_dictionary import Resolved
from sqlflow_edl.analysis.settings.attributes import TRAIN
from sqlflow_edl.analysis.train_settings import TrainSettings, check_settings
from sqlflow_edl.syntax import ast

_ROWS = (
    *HIDDEN_LAYERS,
    MEMBERS,
    trees.RATE,
    trees.LENGTH,
    # names decide more: the booster which workers can train, directions which columns must be there
    *(row for row in trees.ATTRIBUTES if row.type in ("integer", "number", "boolean")),
    *(row for entry in OPTIMIZERS.entries.values() for row in entry.params),
    *(row for row in TRAIN if row.name == "train.early_stopping"),
)
# Attributes that neither rows, columns nor the loss depend on: parameters of a model and its optimizer, the length.
VARIED = frozenset(row.name for row in _ROWS)
_SPELLINGS = frozenset(name.casefold() for row in _ROWS for name in (row.name, *row.aliases))


class PlannedCandidate(NamedTuple):
    """Candidate with its settings. plan: of its rows and columns, with the settings of the first candidate like it."""

    draft: CandidateDraft
    plan: train.TrainingPlan
    settings: TrainSettings


class CandidatePlanner:
    """Planner of the candidates of a search over the columns of its query.

    models: of FEATURES(m) in COLUMN. task: as of `TrainSettings`.
    """

    def __init__(self, query: spec.Query, schema: Schema, models: Models | None, task: str = "") -> None:
        self._query, self._schema, self._models, self._task = query, schema, models, task
        self._alike: dict[tuple[object, ...], _Alike] = {}

    def plan(self, draft: CandidateDraft) -> PlannedCandidate:
        """Return the plan of a candidate; raises all errors of its statement together."""
        others = [item for item in draft.lines if item[0].casefold() not in _SPELLINGS]
        key = (id(draft.shared), *others)
        alike = self._alike.get(key)
        if alike is not None and (settings := alike.vary(draft)) is not None:
            return PlannedCandidate(draft, alike.plan, settings)
        statement = draft.statement
        checked = check_settings(statement)
        checked = checked._replace(settings=replace(checked.settings, task=self._task))
        plan = train.plan(statement, self._query, self._schema, checked, models=self._models)
        if alike is None:
            self._alike[key] = _Alike(draft, statement, plan)
        return PlannedCandidate(draft, plan, plan.settings)


class _Alike:
    """Candidates that differ in attributes of `VARIED` alone, by the first of them."""

    def __init__(self, first: CandidateDraft, statement: ast.Statement, plan: train.TrainingPlan) -> None:
        self.plan = plan
        own_ids = {id(attribute) for attribute in statement.attributes[len(first.shared.attributes) :]}
        resolved = plan.settings.resolved.items()
        self._shared = {
            name: setting
            for name, setting in resolved
            if name not in VARIED or id(setting.written) not in own_ids
        }
        self._attributes = {name: setting.written for name, setting in resolved if name in VARIED}
        self._place = statement.model.span if statement.model is not None else statement.span
        self._first = first  # kept, so that its id, which is the key, is not used again

    def vary(self, draft: CandidateDraft) -> TrainSettings | None:
        """Return the settings of another candidate, or None if it differs in other attributes, too."""
        errors: list[SQLFlowError] = []
        values = self._read_values(draft, errors)
        settings = None
        if not errors and values.keys() <= VARIED:
            settings = self.plan.settings.vary(values, self._shared, errors)
        if errors:
            raise_all(errors)
        return settings

    def _read_values(self, draft: CandidateDraft, errors: list[SQLFlowError]) -> Mapping[str, Resolved]:
        """Return the candidate's own values. Those of the portfolio need no check."""
        if draft.variant is None:
            varied = [item for item in draft.attributes if item.key.casefold() in _SPELLINGS]
            return self.plan.settings.dictionary.resolve(varied, errors, [])
        values = {}
        for name, value in draft.variant.attributes.items():
            attribute = self._attributes.get(name)
            if attribute is None:
                attribute = ast.Attribute(name, ast.Constant(None, self._place), self._place)
                self._attributes[name] = attribute
            values[name] = Resolved(value, attribute)
        return values
