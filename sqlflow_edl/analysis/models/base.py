"""Contract of a built-in model: one module beside this one, named in `sqlflow_edl.analysis.catalog`.

The module has the entries of the model, for classification and regression, over one architecture. The architecture
in a program is a Jinja template per framework, over the values that `sqlflow_edl.codegen.program` has for each model
and the values of `Architecture.values`. A text of a user enters it through the filter `literal`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from edl import spec
from edl.errors import Span
from sqlflow_edl.analysis.columns.inputs import ONE_INPUT, InputNames, ModelInputs, Placed
from sqlflow_edl.analysis.entries import Entry
from sqlflow_edl.analysis.settings.attribute_dictionary import Resolved
from sqlflow_edl.analysis.settings.values import Setting

if TYPE_CHECKING:
    import pyarrow as pa

    ReadRows = Callable[
        [Sequence[str]], Iterable[pa.RecordBatch]
    ]  # all rows of the query, with these columns

MOST_EPOCHS, LEAST_STEPS = 200, 600  # of trainings with few rows
WIDE = 500  # columns above which a model may have other defaults


@dataclass(frozen=True, slots=True)
class Length:
    """Default length of a training: about so many steps, in an allowed number of epochs, which is larger for few rows.

    patience: epochs without a lower validation loss. batch_sizes: upper bounds of training rows, with the rows of a
    minibatch below each; `largest` for more rows. least_steps: of a training with few rows, within MOST_EPOCHS.
    """

    steps: int
    epochs: tuple[int, int]
    patience: int
    batch_sizes: tuple[tuple[int, int], ...]
    largest: int = 512
    least_steps: int = LEAST_STEPS

    def batch_size(self, rows: int) -> int:
        return next((size for limit, size in self.batch_sizes if rows < limit), self.largest)

    def number_of_epochs(self, rows: int, batch_size: int) -> int:
        fewest, most = self.epochs
        per_epoch = max(1, -(-rows // batch_size))
        most = max(most, min(MOST_EPOCHS, -(-self.least_steps // per_epoch)))
        return min(most, max(fewest, -(-self.steps // per_epoch)))


# Chosen on small real tables (iris, wine, breast cancer, diabetes), a made-up one and noise, four seeds each, by the
# loss on rows that no training used. Keeping the best epoch's weights instead of the last's lowered it on every table;
# a patience of 8 epochs was as good as any longer one, and iris, breast cancer and diabetes ended in a quarter to a
# half of the time.
USUAL_LENGTH = Length(2000, (2, 200), 8, ((1_000, 16), (10_000, 32), (100_000, 128)))


Parameters = Mapping[str, Setting]  # of the model, by their names without the prefix `model.`
Assembler = Callable[[Sequence[Placed], spec.Label, Parameters, Span | None], ModelInputs]


@dataclass(frozen=True, slots=True)
class Architecture:
    """Inputs, program and size of a model.

    name: of the templates `NAME_keras.py.jinja` and `NAME_torch.py.jinja` in codegen_templates/networks. assemble:
    returns the features of each input from the fitted columns; it may raise SemanticError at the span of the model's
    name. inputs: their names in COLUMN … FOR. size: the number of trainable numbers, None if only the framework knows.
    values: of the templates. templates: their sources by framework, for a model without files in codegen_templates.
    linear: the class of the hidden layers in PyTorch.
    """

    name: str
    assemble: Assembler
    inputs: InputNames = field(default_factory=lambda: ONE_INPUT)
    size: Callable[[spec.JobSpec], int | None] = lambda job: None
    values: Callable[[spec.JobSpec], Mapping[str, object]] = lambda job: {}
    templates: Mapping[str, str] = field(default_factory=dict)
    linear: str = "nn.Linear"


@dataclass(frozen=True, slots=True)
class MarkedRows:
    """Attribute that names a column, which marks rows and is no feature; empty for a model without one.

    fit: changes the JobSpec by the marked rows, None for none, and their number; not all are given of very many.
    """

    attribute: str = ""
    fit: Callable[[spec.JobSpec, pa.Table | None, int], spec.JobSpec] = lambda job, rows, count: job


@dataclass(frozen=True, slots=True, kw_only=True)
class Model(Entry):
    """Model of the catalog.

    most_classes: limit of a classifier; 0 for none. encodes: numbers that COLUMN does not mention are encoded in bins.
    defaults: of its own parameters, the optimizer and the schedule, where they differ from the usual ones. length: of a
    training without a written one. wide: defaults for more than WIDE columns, of its parameters and of an optimizer
    that is not written. solver: optimizer that finds all weights in one process and one pass; with one, attributes of a
    training in steps are errors. finish: changes the JobSpec when all of it is known. reads_sequences: it takes ids in
    their order. constant_label: attribute and value with which all labels may be equal. marked_rows: what it
    takes from rows that a column marks.
    """

    architecture: Architecture
    most_classes: int = 0
    encodes: bool = False
    defaults: Mapping[str, Setting] = field(default_factory=dict)
    length: Length = USUAL_LENGTH
    wide: Mapping[str, Setting] = field(default_factory=dict)
    solver: str = ""
    finish: Callable[[spec.JobSpec], spec.JobSpec] | None = None
    reads_sequences: bool = False
    constant_label: tuple[str, Setting] = ("", None)
    marked_rows: MarkedRows = field(default_factory=MarkedRows)

    def takes_constant_label(self, resolved: Mapping[str, Resolved]) -> bool:
        """Return True if there is something to learn where all labels are equal."""
        name, value = self.constant_label
        return name in resolved and resolved[name].value == value

    @property
    def usual_fraction(self) -> float | None:
        """Share of validation rows where none is written; None for the share of most models."""
        share = self.defaults.get("validation.fraction")
        return share if isinstance(share, float) else None

    def defaults_of_width(self, features: Iterable[spec.Feature]) -> Mapping[str, Setting]:
        """Return the defaults that follow from the number of columns; none in a narrow table."""
        return self.wide if count_columns(features) > WIDE else {}


def count_columns(features: Iterable[spec.Feature]) -> int:
    """Return the number of columns of the query that the features read."""
    return len({column for feature in features for column in spec.source_columns(feature)})
