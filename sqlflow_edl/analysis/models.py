"""The model that a TRAIN statement names: a built-in one, a family of them, or the user's own."""

from __future__ import annotations

from dataclasses import dataclass

from edl.errors import SemanticError, SQLFlowError, did_you_mean
from edl.program.own import OwnModel
from sqlflow_edl.analysis import catalog, own
from sqlflow_edl.syntax import ast


@dataclass(frozen=True, slots=True)
class Choice:
    """entry: the model; None means that of `family` which suits the label. own: the user's own, as its source tells."""

    entry: catalog.Entry | None
    family: str = ""
    own: OwnModel | None = None

    @property
    def example(self) -> catalog.Entry:
        """The model, or one of its family: they have the same inputs and parameters."""
        return self.entry or catalog.MODELS.entries[f"{self.family}Classifier"]

    @property
    def framework(self) -> str:
        """The framework without WITH model.framework."""
        return (self.own and self.own.framework) or "keras"


def choose(statement: ast.Statement, errors: list[SQLFlowError]) -> Choice:
    """The model that the statement names; where that is none, an error, and a choice to look on with."""
    if statement.model is None:
        return Choice(None, "DNN")
    name = statement.model.text
    if found := catalog.MODELS.find(name):
        return Choice(found)
    if family := catalog.family(name):
        return Choice(None, family)
    try:
        return _own(statement.model, statement)
    except SQLFlowError as error:
        errors.append(error)
        return Choice(own.unseen(statement)) if "." in name else Choice(None, "DNN")


def _own(name: ast.Name, statement: ast.Statement) -> Choice:
    if "." in name.text:
        found = own.look_up(name)
        return Choice(own.entry(str(name), found, statement.attributes), own=found)
    if name.text in catalog.PLANNED_MODELS:
        hint = "there are " + ", ".join(catalog.MODELS.entries)
        raise SemanticError(f"the model {name.text} is not there yet", span=name.span, hint=hint)
    hint = did_you_mean(name.text, (*catalog.MODELS.entries, *catalog.FAMILIES)) or (
        "a model of your own is written with its module: my_module.MyModel"
    )
    raise SemanticError(f"unknown model {name.text}", span=name.span, hint=hint)
