"""Catalog of models, optimizers, schedules and losses that a statement can name, each with its typed parameters.

The tables define the names and the meaning of the parameters. Their spelling in a framework belongs to the code
generator (`sqlflow_edl.codegen.frameworks`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from edl.errors import SemanticError, Span, SQLFlowError, did_you_mean, nearest
from sqlflow_edl.analysis.settings.dictionary import Attribute, Dictionary, Resolved, check
from sqlflow_edl.analysis.settings.values import Setting, Type
from sqlflow_edl.syntax import ast

Task = Literal["classification", "regression"]
Architecture = Literal["linear", "deep", "wide_deep", "deepfm", "own"]


@dataclass(frozen=True, slots=True)
class Entry:
    """Model, optimizer or loss: its name, description, parameters and aliases."""

    name: str
    doc: str
    params: tuple[Attribute, ...] = ()
    aliases: tuple[str, ...] = ()
    task: Task | None = None  # of models and losses: the kind of label
    frameworks: tuple[str, ...] = ("keras", "torch")
    architecture: Architecture = "deep"  # of models
    most_classes: int = 0  # limit of a classifier; 0 for none


class Catalog:
    """Entries by name and alias; case, underscores and spaces are ignored."""

    def __init__(self, noun: str, entries: Iterable[Entry]) -> None:
        self.noun = noun
        self.entries = {entry.name: entry for entry in entries}
        self._by_key = {
            _key(name): entry for entry in self.entries.values() for name in (entry.name, *entry.aliases)
        }

    def find(self, name: str) -> Entry | None:
        return self._by_key.get(_key(name))

    def get(self, name: str, span: Span | None) -> Entry:
        """Return the entry. Raises SemanticError with the nearest name if there is none."""
        entry = self.find(name)
        if entry is None:
            raise SemanticError(
                f"unknown {self.noun} {name}", span=span, hint=did_you_mean(name, self.entries, list_up_to=20)
            )
        return entry


def family(name: str) -> str | None:
    """Return the family of models that the name means: a model's name without Classifier or Regressor."""
    return next((each for each in FAMILIES if _key(each) == _key(name)), None)


def nearest_model(name: str) -> str | None:
    """Return the model or family with the nearest name, or None if none is near.

    A common ending alone is not a match: the part before Classifier or Regressor must be near, too.
    """
    spellings = [
        *FAMILIES,
        *(each for entry in MODELS.entries.values() for each in (entry.name, *entry.aliases)),
    ]
    near = nearest(name, spellings)
    if near is None or nearest(name[: len(_stem(near))], (_stem(near),)) is None:
        return None
    return near


def _stem(model: str) -> str:
    return model.removesuffix("Classifier").removesuffix("Regressor")


def _key(name: str) -> str:
    return name.casefold().replace("_", "").replace(" ", "")


_HIDDEN_UNITS = Attribute(
    "model.hidden_units",
    "integers",
    "Units of the hidden layers, first to last.",
    (100, 50),
    low=1,
    high=65_536,
    aliases=("hidden_units", "hidden_layers", "model.hidden_layers", "model.dnn_hidden_units"),
)
_DNN = (
    _HIDDEN_UNITS,
    Attribute(
        "model.activation",
        "text",
        "Activation of the hidden layers.",
        "relu",
        choices=("relu", "elu", "selu", "gelu", "silu", "tanh", "sigmoid"),
        aliases=("activation", "model.activation_fn", "activation_fn", "model.dnn_activation_fn"),
    ),
    Attribute(
        "model.dropout",
        "number",
        "Share of hidden units dropped in training.",
        0.0,
        low=0,
        high=0.95,
        aliases=("dropout", "model.dnn_dropout"),
    ),
    Attribute(
        "model.batch_norm",
        "boolean",
        "Normalise each hidden layer over the minibatch.",
        False,
        aliases=("batch_norm",),
    ),
)
_CLASSES = Attribute(
    "model.n_classes",
    "integer",
    "Number of classes of the label; by default counted.",
    low=2,
    high=100_000,
    aliases=("n_classes", "model.n_class", "n_class", "num_classes", "model.num_classes", "model.num_class"),
)

_EMBEDDING_DIM = Attribute(
    "model.embedding_dim",
    "integer",
    "Length of the vector of each category.",
    8,
    low=1,
    high=1024,
    aliases=("embedding_dim", "model.embedding_size", "embedding_size"),
)

MODELS = Catalog(
    "model",
    (
        Entry(
            "DNNClassifier",
            "A dense network with a logit per class.",
            (*_DNN, _CLASSES),
            task="classification",
        ),
        Entry("DNNRegressor", "A dense network with one output.", _DNN, task="regression"),
        Entry(
            "LinearClassifier",
            "A linear model with a logit per class.",
            (_CLASSES,),
            task="classification",
            architecture="linear",
        ),
        Entry("LinearRegressor", "A linear model with one output.", task="regression", architecture="linear"),
        Entry(
            "DNNLinearCombinedClassifier",
            "Wide and deep (Cheng et al., 2016): a linear model and a dense network, added up.",
            (*_DNN, _CLASSES),
            ("WideAndDeepClassifier", "WideDeepClassifier"),
            task="classification",
            architecture="wide_deep",
        ),
        Entry(
            "DNNLinearCombinedRegressor",
            "Wide and deep with one output.",
            _DNN,
            ("WideAndDeepRegressor", "WideDeepRegressor"),
            task="regression",
            architecture="wide_deep",
        ),
        Entry(
            "DeepFMClassifier",
            "A factorisation machine and a dense network over the same embeddings (Guo et al., 2017), for two classes.",
            (*_DNN, _EMBEDDING_DIM, _CLASSES),
            task="classification",
            architecture="deepfm",
            most_classes=2,
        ),
        Entry(
            "DeepFMRegressor",
            "DeepFM with one output.",
            (*_DNN, _EMBEDDING_DIM),
            task="regression",
            architecture="deepfm",
        ),
    ),
)
# Names without Classifier or Regressor: the label decides.
FAMILIES = ("DNN", "Linear", "DNNLinearCombined", "DeepFM")

# Attributes of other systems without an equal here: the replacement.
PLANNED_ATTRIBUTES = {
    **dict.fromkeys(
        (f"{prefix}{part}_optimizer" for prefix in ("", "model.") for part in ("linear", "dnn")),
        "one optimizer trains both parts: write optimizer = adam",
    ),
}


def _parameter(
    name: str,
    default: Setting,
    doc: str,
    *,
    type_: Type = "number",
    low: float | None = 0,
    high: float | None = None,
) -> Attribute:
    return Attribute(
        f"optimizer.{name}",
        type_,
        doc,
        default,
        low=low,
        high=high,
        aliases=(f"model.optimizer.{name}", name),
    )


def _rate(default: float) -> Attribute:
    return Attribute(
        "optimizer.learning_rate",
        "number",
        "Step size.",
        default,
        low=0,
        aliases=("learning_rate", "train.learning_rate", "optimizer.lr", "lr"),
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
_MOMENTUM = _parameter("momentum", 0.0, "Share of the last update that is added to the next.", high=1)

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
    ),
)


def _schedule_parameter(
    name: str, default: Setting, doc: str, type_: Type, high: float | None = None
) -> Attribute:
    low = 1 if name == "decay_steps" else 0
    return Attribute(
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
        "decay_steps",
        None,
        "Steps until the final rate; by default all steps after the warm-up.",
        "integer",
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
            "exponential",
            "Exponential decrease.",
            (
                _WARMUP,
                _DECAY_RATE,
                _schedule_parameter(
                    "decay_steps",
                    None,
                    "Steps in which the rate falls by decay_rate; by default all steps after the warm-up.",
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


def _loss_parameter(name: str, default: float, doc: str, low: float, high: float | None = None) -> Attribute:
    return Attribute(
        f"loss.{name}", "number", doc, default, low=low, high=high, aliases=(f"model.loss.{name}",)
    )


LOSSES = Catalog(
    "loss",
    (
        Entry(
            "mean_squared_error",
            "Squared error.",
            aliases=("mse", "squared_error", "l2"),
            task="regression",
        ),
        Entry("mean_absolute_error", "Absolute error.", aliases=("mae", "l1"), task="regression"),
        Entry(
            "huber",
            "Squared near zero, absolute beyond delta deviations.",
            (
                _loss_parameter(
                    "delta", 1.0, "Error at which it turns linear, in standard deviations of the label.", 1e-9
                ),
            ),
            task="regression",
        ),
        Entry("log_cosh", "Logarithm of the hyperbolic cosine of the error.", task="regression"),
        Entry(
            "cross_entropy",
            "Negative log-likelihood of the class.",
            aliases=(
                "binary_crossentropy",
                "categorical_crossentropy",
                "sparse_categorical_crossentropy",
                "sigmoid_cross_entropy",
                "softmax_cross_entropy",
                "log_loss",
            ),
            task="classification",
        ),
        Entry(
            "focal",
            "Cross-entropy with lower weight for easy rows (Lin et al., 2017).",
            (_loss_parameter("gamma", 2.0, "Exponent that reduces the weight of easy rows.", 0, 20),),
            aliases=("binary_focal_crossentropy", "categorical_focal_crossentropy", "focal_loss"),
            task="classification",
        ),
        Entry(
            "hinge",
            "Hinge loss of the margin between the classes.",
            aliases=("categorical_hinge",),
            task="classification",
        ),
    ),
)


def parameters(entry: Entry, resolved: Mapping[str, Resolved]) -> dict[str, Setting]:
    """Return the entry's parameters: the written values, else the defaults; those with neither are omitted."""
    values: dict[str, Setting] = {}
    for row in entry.params:
        value = resolved[row.name].value if row.name in resolved else row.default
        if value is not None:
            values[row.name.rpartition(".")[2]] = value
    return values


def chosen(
    catalog: Catalog,
    dictionary: Dictionary,
    written: Iterable[ast.Attribute],
    kind: str,
    errors: list[SQLFlowError],
) -> Entry | None:
    """Return the optimizer or loss that the attribute `kind` names, or None without one.

    This runs before the entry's parameters are resolved.
    """
    for attribute in written:
        row = dictionary.find(attribute.key)
        if row is None or row.name != kind:
            continue
        try:
            return catalog.get(str(check(row, attribute.value)), attribute.value.span)
        except SQLFlowError as error:
            errors.append(error)
    return None


def elsewhere(chosen: Iterable[Entry]) -> dict[str, str]:
    """Map parameters of models, optimizers and losses that are not chosen to the entries that have them."""
    own = {row.name for entry in chosen for row in entry.params}
    found: dict[str, list[str]] = {}
    for catalog in (MODELS, OPTIMIZERS, SCHEDULES, LOSSES):
        for entry in catalog.entries.values():
            for row in entry.params:
                if row.name not in own:
                    owner = f"optimizer.schedule = {entry.name}" if catalog is SCHEDULES else entry.name
                    found.setdefault(row.name, []).append(owner)
    return {name: ", ".join(entries) for name, entries in found.items()}
