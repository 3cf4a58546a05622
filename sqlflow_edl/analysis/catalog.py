"""Catalog of models, optimizers, schedules and losses that a statement can name, each with its typed parameters.

The tables define the names and the meaning of the parameters. Their spelling in a framework belongs to the code
generator (`sqlflow_edl.codegen.frameworks`).
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping

from edl.errors import SQLFlowError, nearest
from edl.extension_loader import load, load_or
from edl.spec.job import COMPONENTS, FACTORS, LEAST_SQUARES, NEWTON
from sqlflow_edl.analysis.entries import Catalog, Entry, normalize_name
from sqlflow_edl.analysis.losses import LOSSES
from sqlflow_edl.analysis.models import boosted_trees, deepfm, dnn, forecast, real_mlp, transform, wide_deep
from sqlflow_edl.analysis.models.base import Model
from sqlflow_edl.analysis.settings import trees
from sqlflow_edl.analysis.settings.attribute_dictionary import AttributeRow, Dictionary, Resolved, check
from sqlflow_edl.analysis.settings.values import Setting, Type
from sqlflow_edl.syntax import ast

# module of an extension -> the models that it adds
OF_EXTENSIONS = {
    "sqlflow_edl.extensions.unsupervised.clusters": ("KMeans", "DeepEmbeddedClustering"),
    "sqlflow_edl.extensions.unsupervised.isolation_forest": ("IsolationForest",),
    "sqlflow_edl.extensions.decomposition.reductions": ("PCA", "Autoencoder"),
    "sqlflow_edl.extensions.sequences.models": ("SequenceClassifier", "SequenceRegressor"),
    "sqlflow_edl.extensions.decomposition.matrix_factorization": ("MatrixFactorization",),
}


def _check_extension(name: str) -> None:
    """Raise ExtensionError if the name belongs to a model of an extension that is not here."""
    for module, names in OF_EXTENSIONS.items():
        if normalize_name(name) in map(normalize_name, names):
            load(module, "MODELS")


def _load_extensions() -> Iterator[Model]:
    """Yield the models of the extensions that are here."""
    absent: tuple[Model, ...] = ()
    for module in OF_EXTENSIONS:
        yield from load_or(module, "MODELS", absent)


MODELS = Catalog(
    "model",
    (
        model.with_defaults(model.defaults)
        for model in (
            *dnn.MODELS,
            *wide_deep.MODELS,
            *deepfm.MODELS,
            *real_mlp.MODELS,
            *boosted_trees.MODELS,
            *_load_extensions(),
            *forecast.MODELS,
            *transform.MODELS,
        )
    ),
    _check_extension,
)


def family(name: str) -> str | None:
    """Return the family of models that the name means: a model's name without Classifier or Regressor."""
    key = normalize_name(name)
    for candidate in families():
        if normalize_name(candidate) == key:
            return candidate
    return None


def families() -> tuple[str, ...]:
    """Return the names without Classifier or Regressor: the label decides."""
    names = dict.fromkeys(map(_stem, MODELS.entries))
    pairs = [name for name in names if {f"{name}Classifier", f"{name}Regressor"} <= MODELS.entries.keys()]
    return tuple(pairs)


def nearest_model(name: str) -> str | None:
    """Return the model or family with the nearest name, or None if none is near.

    A common ending alone is not a match: the part before Classifier or Regressor must be near, too. Raises
    ExtensionError for a model of an extension that is not here.
    """
    _check_extension(name)
    spellings = [
        *families(),
        *(candidate for entry in MODELS.entries.values() for candidate in (entry.name, *entry.aliases)),
    ]
    near = nearest(name, spellings)
    if near is None or nearest(name[: len(_stem(near))], (_stem(near),)) is None:
        return None
    return near


@functools.cache
def _stem(model: str) -> str:
    return model.removesuffix("Classifier").removesuffix("Regressor").removesuffix("Ranker")


def _parameter(
    name: str,
    default: Setting,
    doc: str,
    *,
    type_: Type = "number",
    low: float | None = 0,
    high: float | None = None,
) -> AttributeRow:
    return AttributeRow(
        f"optimizer.{name}",
        type_,
        doc,
        default,
        low=low,
        high=high,
        aliases=(f"model.optimizer.{name}", name),
    )


def _rate(default: float) -> AttributeRow:
    return AttributeRow(
        "optimizer.learning_rate",
        "number",
        "Step size.",
        default,
        low=0,
        aliases=("learning_rate", "train.learning_rate", "optimizer.lr", "lr", "model.train_lr"),
    )


_EPSILON = _parameter(
    "epsilon", None, "Constant that keeps the division finite; by default the framework's own."
)
_BETAS = (
    _parameter("beta_1", 0.9, "Decay of the first moment.", high=0.999999),
    _parameter("beta_2", 0.999, "Decay of the second moment.", high=0.999999999),
)
_DECAY = _parameter("weight_decay", 0.004, "Decoupled weight decay.")
_AMSGRAD = _parameter("amsgrad", False, "Keep the largest second moment.", type_="boolean", low=None)
_MOMENTUM = _parameter("momentum", 0.0, "Share of the last update in the next one.", high=1)

OPTIMIZERS = Catalog(
    "optimizer",
    (
        Entry("adam", "Adam (Kingma and Ba, 2015).", (_rate(0.001), *_BETAS, _EPSILON, _AMSGRAD)),
        Entry(
            "adamw", "Adam with decoupled weight decay.", (_rate(0.001), *_BETAS, _EPSILON, _AMSGRAD, _DECAY)
        ),
        Entry(
            "sgd",
            "Gradient descent, optionally with momentum.",
            (
                _rate(0.01),
                _MOMENTUM,
                _parameter("nesterov", False, "Nesterov's form.", type_="boolean", low=None),
            ),
            aliases=("momentum", "GradientDescent"),
        ),
        Entry(
            "adagrad",
            "Adagrad (Duchi et al., 2011).",
            (
                _rate(0.01),
                _parameter("initial_accumulator_value", 0.1, "Start of the accumulator."),
                _EPSILON,
            ),
        ),
        Entry(
            "rmsprop",
            "RMSprop (Tieleman and Hinton, 2012).",
            (
                _rate(0.001),
                _parameter("rho", 0.9, "Decay of the squared gradients.", high=1),
                _MOMENTUM,
                _EPSILON,
                _parameter("centered", False, "Subtract the mean gradient.", type_="boolean", low=None),
            ),
        ),
        Entry(
            "adadelta",
            "Adadelta (Zeiler, 2012).",
            (_rate(1.0), _parameter("rho", 0.95, "Decay of the squared gradients.", high=1), _EPSILON),
        ),
        Entry("adamax", "Adam by the infinity norm.", (_rate(0.001), *_BETAS, _EPSILON)),
        Entry("nadam", "Adam with Nesterov momentum.", (_rate(0.001), *_BETAS, _EPSILON)),
        Entry(
            "ftrl",
            "Follow the regularised leader (McMahan et al., 2013).",
            (
                _rate(0.05),
                _parameter("l1_regularization_strength", 0.0, "L1 penalty."),
                _parameter("l2_regularization_strength", 0.0, "L2 penalty."),
            ),
            frameworks=("keras",),
        ),
        Entry(LEAST_SQUARES, "Exact solution of LinearRegressor, by a decomposition of all rows."),
        Entry(NEWTON, "Exact solution of LinearClassifier, by Newton's method over all rows."),
        Entry(COMPONENTS, "Exact solution of PCA, by a decomposition of all rows.", frameworks=("torch",)),
        Entry(
            FACTORS,
            "Solution of MatrixFactorization, user by user and item by item.",
            aliases=("als", "wals"),
            frameworks=("torch",),
        ),
    ),
    suffix="optimizer",
)


BOOSTING = Entry("boosting", "Gradient boosting.", (trees.RATE,), frameworks=tuple(trees.LIBRARIES))


def _schedule_parameter(
    name: str, default: Setting, doc: str, type_: Type, high: float | None = None
) -> AttributeRow:
    low = 1 if name in ("decay_steps", "cycles") else 0
    return AttributeRow(
        f"schedule.{name}",
        type_,
        doc,
        default,
        low=low,
        high=high,
        aliases=(f"optimizer.schedule.{name}", name),
    )


_WARMUP = _schedule_parameter(
    "warmup_steps", 0, "Steps over which the rate rises to the learning rate.", "integer"
)
_FALL = (
    _WARMUP,
    _schedule_parameter(
        "decay_steps", None, "Steps until the final rate; by default all steps after the warm-up.", "integer"
    ),
    _schedule_parameter("end", 0.0, "Final rate, as a share of the learning rate.", "number", 1),
)
_DECAY_RATE = _schedule_parameter("decay_rate", 0.1, "Factor of the rate over decay_steps.", "number", 1)

SCHEDULES = Catalog(
    "schedule",
    (
        Entry("constant", "Constant rate, optionally with a warm-up.", (_WARMUP,)),
        Entry("linear", "Linear decrease.", _FALL, aliases=("linear_decay", "polynomial")),
        Entry(
            "cosine",
            "Decrease along half a cosine (Loshchilov and Hutter, 2017).",
            _FALL,
            aliases=("cosine_decay",),
        ),
        Entry(
            "coslog",
            "Cosine waves from 0, each twice as long as the one before (Holzmüller et al., 2024).",
            (
                _WARMUP,
                _schedule_parameter(
                    "decay_steps",
                    None,
                    "Steps of all waves; by default all steps after the warm-up.",
                    "integer",
                ),
                _schedule_parameter("cycles", 4, "Number of waves.", "integer", 20),
            ),
            aliases=("coslog4",),
        ),
        Entry(
            "exponential",
            "Exponential decrease.",
            (
                _WARMUP,
                _DECAY_RATE,
                _schedule_parameter(
                    "decay_steps",
                    None,
                    "Steps of a decrease of the rate by decay_rate; by default all steps after the warm-up.",
                    "integer",
                ),
            ),
            aliases=("exponential_decay",),
        ),
        Entry(
            "step",
            "Decrease in steps, after each decay_steps steps.",
            (
                _WARMUP,
                _DECAY_RATE,
                _schedule_parameter(
                    "decay_steps",
                    None,
                    "Steps between two decreases; by default a third of the steps after the warm-up.",
                    "integer",
                ),
            ),
            aliases=("staircase", "step_decay"),
        ),
    ),
)


def parameters(entry: Entry, resolved: Mapping[str, Resolved]) -> dict[str, Setting]:
    """Return the entry's parameters: the written values, else the defaults; parameters with neither are omitted."""
    values: dict[str, Setting] = {}
    for row in entry.params:
        value = resolved[row.name].value if row.name in resolved else row.default
        if value is not None:
            values[row.name.rpartition(".")[2]] = value
    return values


def written_entry(
    catalog: Catalog[Entry],
    dictionary: Dictionary,
    attributes: Iterable[ast.Attribute],
    kind: str,
    errors: list[SQLFlowError],
) -> Entry | None:
    """Return the optimizer or loss that the attribute `kind` names, or None without one.

    This runs before the entry's parameters are resolved.
    """
    for attribute in attributes:
        row = dictionary.find(attribute.key)
        if row is None or row.name != kind:
            continue
        try:
            return catalog.get(str(check(row, attribute.value)), attribute.value.span)
        except SQLFlowError as error:
            errors.append(error)
    return None


def parameters_of_others(chosen: Iterable[Entry]) -> dict[str, str]:
    """Map parameters of models, optimizers and losses that are not chosen to the entries that have them."""
    names_here = {row.name for entry in chosen for row in entry.params}
    owners: dict[str, list[str]] = {}
    catalogs: tuple[Catalog[Entry], ...] = (MODELS, OPTIMIZERS, SCHEDULES, LOSSES)
    for catalog in catalogs:
        for entry in catalog.entries.values():
            for row in entry.params:
                if row.name not in names_here:
                    owner = f"optimizer.schedule = {entry.name}" if catalog is SCHEDULES else entry.name
                    owners.setdefault(row.name, []).append(owner)
    return {name: ", ".join(entries) for name, entries in owners.items()}
