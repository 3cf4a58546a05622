"""Parts that built-in models share: parameters, forms of features, and sizes of layers."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from edl import spec
from edl.errors import SemanticError, Span
from edl.spec.features import with_tables
from sqlflow_edl.analysis.columns.inputs import Fitted, ModelInputs, Placed, embed, one_hot
from sqlflow_edl.analysis.models.base import Assembler, Parameters
from sqlflow_edl.analysis.settings.attribute_dictionary import AttributeRow

HIDDEN_UNITS = AttributeRow(
    "model.hidden_units",
    "integers",
    "Units of the hidden layers, first to last.",
    (100, 50),
    low=1,
    high=65_536,
    aliases=(
        "hidden_units",
        "hidden_layers",
        "model.hidden_layers",
        "model.dnn_hidden_units",
        "layers",
        "model.layers",
    ),
)
ACTIVATION = AttributeRow(
    "model.activation",
    "text",
    "Activation of the hidden layers.",
    "relu",
    choices=("relu", "elu", "selu", "gelu", "silu", "mish", "tanh", "sigmoid"),
    aliases=("activation", "model.activation_fn", "activation_fn", "model.dnn_activation_fn"),
)
DROPOUT = AttributeRow(
    "model.dropout",
    "number",
    "Share of hidden units dropped in training.",
    0.0,
    low=0,
    high=0.95,
    aliases=("dropout", "model.dnn_dropout"),
)
BATCH_NORM = AttributeRow(
    "model.batch_norm",
    "boolean",
    "Normalise each hidden layer over the minibatch.",
    False,
    aliases=("batch_norm",),
)
HIDDEN_LAYERS = (HIDDEN_UNITS, ACTIVATION, DROPOUT, BATCH_NORM)
CLASSES = AttributeRow(
    "model.n_classes",
    "integer",
    "Number of classes of the label; by default counted.",
    low=2,
    high=100_000,
    aliases=(
        "n_classes",
        "model.n_class",
        "n_class",
        "num_classes",
        "model.num_classes",
        "num_class",
        "model.num_class",
        "train.num_class",
    ),
)

SCALE = "scale_features"  # parameter of models without a label

# Ids of a one-hot category; larger ones are embeddings.
LARGEST_ONE_HOT_LINEAR = 1000
LARGEST_ONE_HOT_DEEP = 16


def one_input(feature: Callable[[Fitted, spec.Label], spec.Feature]) -> Assembler:
    """Return an assembler that gives each column the form of `feature`, in the only input."""

    def assemble(
        columns: Sequence[Placed], label: spec.Label, parameters: Parameters, span: Span | None
    ) -> ModelInputs:
        return {"features": tuple(feature(placed.column, label) for placed in columns)}

    return assemble


def deep_feature(column: Fitted, label: spec.Label) -> spec.Feature:
    """Make a category one-hot while it is small, and a part of a date always; else an embedding."""
    if not spec.is_category(column):
        return column
    ids = spec.num_ids(column)
    if ids <= LARGEST_ONE_HOT_DEEP or column.part:
        return one_hot(column)
    combiner = "mean" if column.n else "sum"  # whatever the length of the text
    return embed(column, combiner=combiner)


def linear_feature(column: Fitted, label: spec.Label) -> spec.Feature:
    """Give a category a weight for each id and output: as one-hot while it is small, else as an embedding."""
    if not spec.is_category(column):
        return column
    few = spec.num_ids(column) <= LARGEST_ONE_HOT_LINEAR
    return one_hot(column) if few else embed(column, label.outputs)


def assemble_unlabelled(
    columns: Sequence[Placed], label: spec.Label, parameters: Parameters, span: Span | None
) -> ModelInputs:
    """Make categories one-hot; numbers are not scaled if the parameters say so.

    Raises SemanticError for features of a form that is learned from a label.
    """
    features = tuple(map(_unlabelled_feature, columns))
    if parameters.get(SCALE, True):
        return {"features": features}
    is_angle = parameters.get("distance") == "cosine"  # of rows as seen from 0, not from their mean
    return {"features": tuple(_unscale(feature, {"mean": 0.0} if is_angle else {}) for feature in features)}


def _unscale(feature: spec.Feature, changed: Mapping[str, float]) -> spec.Feature:
    """Return a standardised number less its mean alone, or less another mean."""
    has_unit = getattr(feature, "std", 0)
    return msgspec.structs.replace(feature, std=1.0, **changed) if has_unit else feature


def _unlabelled_feature(placed: Placed) -> spec.Feature:
    column, names = placed.column, ", ".join(map(str, spec.sources(placed.column)))
    if column.needs_label:
        raise SemanticError(
            f"this form of {names} is learned from a label, and the model has none",
            span=placed.span,
            hint="use the number itself, or a category of few values",
        )
    if not spec.is_category(column):
        return column
    if (ids := spec.num_ids(column)) > LARGEST_ONE_HOT_LINEAR:
        raise SemanticError(
            f"{names} is a category of {ids:,} ids, and without a label it has at most {LARGEST_ONE_HOT_LINEAR:,}",
            span=placed.span,
            hint="leave it out of the SELECT, or group its values there",
        )
    return one_hot(column)


def linear_size(features: Iterable[spec.Feature]) -> int:
    """Count the weights of a linear sum over the numbers and the ids, for one output."""
    features = list(features)
    embedded = sum(spec.num_ids(embedding.category) for embedding in with_tables(features))
    return embedded + sum(spec.width(feature) for feature in features if not feature.dim)


def deep_size(job: spec.JobSpec, features: Sequence[spec.Feature]) -> int:
    """Count embeddings and the dense layers over them, normalised or not; without hidden layers, a linear model."""
    units = job.model.params.get("hidden_units")
    hidden = [number for number in units if isinstance(number, int)] if isinstance(units, tuple) else []
    widths = [sum(map(spec.width, features)), *hidden, job.label.outputs]
    *layers, last = [(inputs + 1) * outputs for inputs, outputs in itertools.pairwise(widths)]
    scales = 2 * sum(hidden) if job.model.params.get("batch_norm") else 0
    members = int(job.model.params.get("members") or 1)  # type: ignore[arg-type]
    of_members = last if members == 1 else members * (widths[0] + last)
    return _embeddings_size(features) + sum(layers) + of_members + scales


def _embeddings_size(features: Iterable[spec.Feature]) -> int:
    """Count the vectors of ids, and the frequencies and linear functions of periodic embeddings."""
    features = list(features)
    periodic = (feature.width for feature in features if feature.array == "periodic")
    vectors = sum(spec.num_ids(embedding.category) * embedding.dim for embedding in with_tables(features))
    return vectors + sum(2 * frequencies * (frequencies + 1) for frequencies in periodic)
