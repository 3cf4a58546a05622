"""Contract of a built-in model: one module beside this one, named in `sqlflow_edl.analysis.catalog`.

The module has the entries of the model, for classification and regression, over one architecture. The architecture
in a program is a Jinja template per framework, over the values that `sqlflow_edl.codegen.program` has for each model
and those of `Architecture.values`. A text of a user enters it through the filter `literal`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from edl import spec
from edl.errors import Span
from sqlflow_edl.analysis.columns.inputs import ONE_INPUT, InputNames, ModelInputs, Placed
from sqlflow_edl.analysis.entries import Entry
from sqlflow_edl.analysis.settings.values import Setting

Parameters = Mapping[str, Setting]  # of the model, by their names without the prefix `model.`
Assembler = Callable[[Sequence[Placed], spec.Label, Parameters, Span | None], ModelInputs]


@dataclass(frozen=True, slots=True)
class Architecture:
    """Inputs, program and size of a model.

    name: of the templates `NAME_keras.py.jinja` and `NAME_torch.py.jinja` in codegen_templates. assemble: returns the
    features of each input from the fitted columns; it may raise SemanticError at the span of the model's name. inputs:
    their names in COLUMN … FOR. size: the number of trainable numbers, None if only the framework knows. values: of
    the templates. templates: their sources by framework, for a model without files in codegen_templates.
    """

    name: str
    assemble: Assembler
    inputs: InputNames = field(default_factory=lambda: ONE_INPUT)
    size: Callable[[spec.JobSpec], int | None] = lambda job: None
    values: Callable[[spec.JobSpec], Mapping[str, object]] = lambda job: {}
    templates: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Model(Entry):
    """Model of the catalog. most_classes: limit of a classifier; 0 for none."""

    architecture: Architecture
    most_classes: int = 0
