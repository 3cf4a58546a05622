"""Bidirectional LSTM and attention pooling over sequences of ids, beside other features, before dense layers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import msgspec

from edl import spec
from edl.errors import SemanticError, Span
from sqlflow_edl.analysis.columns.inputs import Fitted, ModelInputs, Placed
from sqlflow_edl.analysis.models.base import Architecture, Length, Model, Parameters
from sqlflow_edl.analysis.models.parts import CLASSES, DROPOUT, HIDDEN_UNITS, deep_feature
from sqlflow_edl.analysis.settings.attribute_dictionary import AttributeRow
from sqlflow_edl.analysis.settings.values import Setting

_PARAMETERS = (
    AttributeRow(
        "model.sequence_layer",
        "text",
        "Layer that reads a sequence: stacked bidirectional LSTMs, or attention, a mean with learned weights.",
        "bilstm",
        choices=("bilstm", "attention"),
        aliases=("sequence_layer",),
    ),
    AttributeRow(
        "model.stack_units",
        "integers",
        "Units of the LSTMs in one direction, first to last.",
        (64,),
        low=1,
        high=4096,
        aliases=("stack_units", "model.lstm_units", "lstm_units", "model.units"),
    ),
    AttributeRow(
        "model.embedding_dim",
        "integer",
        "Length of the vector of each id, where COLUMN has no EMBEDDING that says it.",
        32,
        low=1,
        high=1024,
        aliases=("embedding_dim", "model.embedding_size", "embedding_size"),
    ),
    AttributeRow(
        "model.max_length",
        "integer",
        "Ids that are read of a longer sequence: the last ones.",
        100,
        low=1,
        high=10_000,
        aliases=("max_length", "model.max_len", "max_len", "model.sequence_length"),
    ),
    replace(HIDDEN_UNITS, aliases=(*HIDDEN_UNITS.aliases, "hidden_size", "model.hidden_size")),
    DROPOUT,
)
_DEFAULTS: Mapping[str, Setting] = {
    "model.hidden_units": (64,),
    "optimizer": "adam",
    "optimizer.learning_rate": 0.002,
    "optimizer.schedule": "cosine",
}
_LENGTH = Length(2000, (3, 60), 8, ((1_000, 32), (10_000, 64), (100_000, 128)), 256)


def _assemble(
    columns: Sequence[Placed], label: spec.Label, parameters: Parameters, span: Span | None
) -> ModelInputs:
    """Return the sequences behind the other features. Raises SemanticError without any list of ids."""
    length = int(parameters["max_length"])  # type: ignore[arg-type]  # an integer
    sequences: list[spec.Feature] = []
    others: list[spec.Feature] = []
    for placed in columns:
        ids = _list_of_ids(placed.column)
        if placed.column.array == "sequence":
            sequences.append(placed.column)  # type: ignore[arg-type]  # an array, so a feature
        elif ids is None:
            others.append(deep_feature(placed.column, label))
        else:
            sequences.append(spec.Sequence(ids, length, placed.column.dim or msgspec.UNSET))  # type: ignore[arg-type]
    if not sequences:
        raise SemanticError(
            "the model reads sequences of ids, and no column is one",
            span=span,
            hint='make one with SEQ_CATEGORY_ID(x, 1000), or VOCABULARIZE(x, delimiter=" ")',
        )
    return {"features": (*others, *sequences)}


def _list_of_ids(column: Fitted) -> spec.Category | None:
    """Return the lists of ids of a column, also of their vectors; None of others, and of lists with weights."""
    category = column if spec.is_category(column) else spec.category_of(column) if column.dim else None
    has_order = category is not None and category.has_lists and "sequence" in category.places
    return category if has_order and not category.weights else None  # type: ignore[union-attr,return-value]


def _values(job: spec.JobSpec) -> Mapping[str, object]:
    layer, dim, units = (
        job.model.params[name] for name in ("sequence_layer", "embedding_dim", "stack_units")
    )
    return {"reader": f'"{layer}", {dim}, [{", ".join(map(str, units))}]'}  # type: ignore[arg-type]  # integers


_ARCHITECTURE = Architecture("sequence", _assemble, values=_values)

MODELS = (
    Model(
        "SequenceClassifier",
        "Stacked bidirectional LSTMs, or attention, over ids in their order, and dense layers; a logit per class.",
        (*_PARAMETERS, CLASSES),
        aliases=("StackedBiLSTMClassifier", "BiLSTMClassifier", "StackedRNNClassifier", "RNNClassifier"),
        task="classification",
        architecture=_ARCHITECTURE,
        defaults=_DEFAULTS,
        length=_LENGTH,
        reads_sequences=True,
    ),
    Model(
        "SequenceRegressor",
        "The same with one output.",
        _PARAMETERS,
        aliases=("StackedBiLSTMRegressor", "BiLSTMRegressor"),
        task="regression",
        architecture=_ARCHITECTURE,
        defaults=_DEFAULTS,
        length=_LENGTH,
        reads_sequences=True,
    ),
)
