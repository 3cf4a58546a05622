"""Spelling of the optimizers and losses of a JobSpec in Keras and PyTorch.

Tables from the names of `sqlflow_edl.analysis.catalog` to source text; a parameter that equals the framework's own
default is not written.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from edl import schedules
from edl.spec import Component, Label
from edl.spec.forecast import BESIDE, SCALE
from edl.spec.job import COMPONENTS, FACTORS, LEAST_SQUARES, NEWTON, Parameter
from edl.spec.labels import ERRORS
from sqlflow_edl.codegen.source import CallExpression, Expression, Items, line, literal


@dataclass(frozen=True, slots=True)
class Spelling:
    """Class of a framework: our parameter -> its keyword, and the framework's own defaults.

    fused: of PyTorch, one kernel for all parameters. solves: the class is ours, and has no learning rate.
    """

    name: str
    keywords: Mapping[str, str]
    defaults: Mapping[str, Parameter]
    fused: bool = False
    solves: bool = False


_ADAM = {"beta_1": 0.9, "beta_2": 0.999, "epsilon": 1e-7, "amsgrad": False}


def _same(*names: str) -> dict[str, str]:
    return {name: name for name in names}


_SOLVERS = {
    LEAST_SQUARES: Spelling("LeastSquares", _same("l2"), {}, solves=True),
    NEWTON: Spelling("Newton", _same("l2"), {}, solves=True),
}
KERAS: Mapping[str, Spelling] = {
    "adam": Spelling("Adam", _same(*_ADAM), _ADAM),
    "adamw": Spelling("AdamW", _same(*_ADAM, "weight_decay"), {**_ADAM, "weight_decay": 0.004}),
    "sgd": Spelling("SGD", _same("momentum", "nesterov"), {"momentum": 0.0, "nesterov": False}),
    "adagrad": Spelling(
        "Adagrad",
        _same("initial_accumulator_value", "epsilon"),
        {"initial_accumulator_value": 0.1, "epsilon": 1e-7},
    ),
    "rmsprop": Spelling(
        "RMSprop",
        _same("rho", "momentum", "epsilon", "centered"),
        {"rho": 0.9, "momentum": 0.0, "epsilon": 1e-7, "centered": False},
    ),
    "adadelta": Spelling("Adadelta", _same("rho", "epsilon"), {"rho": 0.95, "epsilon": 1e-7}),
    "adamax": Spelling(
        "Adamax", _same("beta_1", "beta_2", "epsilon"), {"beta_1": 0.9, "beta_2": 0.999, "epsilon": 1e-7}
    ),
    "nadam": Spelling(
        "Nadam", _same("beta_1", "beta_2", "epsilon"), {"beta_1": 0.9, "beta_2": 0.999, "epsilon": 1e-7}
    ),
    "ftrl": Spelling(
        "Ftrl",
        _same("l1_regularization_strength", "l2_regularization_strength"),
        {"l1_regularization_strength": 0.0, "l2_regularization_strength": 0.0},
    ),
    **_SOLVERS,
}

_TORCH_ADAM = {"epsilon": "eps", "amsgrad": "amsgrad"}
TORCH: Mapping[str, Spelling] = {
    "adam": Spelling("Adam", _TORCH_ADAM, {"epsilon": 1e-8, "amsgrad": False}, fused=True),
    "adamw": Spelling(
        "AdamW",
        {**_TORCH_ADAM, "weight_decay": "weight_decay"},
        {"epsilon": 1e-8, "amsgrad": False, "weight_decay": 0.01},
        fused=True,
    ),
    "sgd": Spelling("SGD", _same("momentum", "nesterov"), {"momentum": 0.0, "nesterov": False}, fused=True),
    "adagrad": Spelling(
        "Adagrad",
        {"initial_accumulator_value": "initial_accumulator_value", "epsilon": "eps"},
        {"initial_accumulator_value": 0.0, "epsilon": 1e-10},
        fused=True,
    ),
    "rmsprop": Spelling(
        "RMSprop",
        {"rho": "alpha", "momentum": "momentum", "epsilon": "eps", "centered": "centered"},
        {"rho": 0.99, "momentum": 0.0, "epsilon": 1e-8, "centered": False},
    ),
    "adadelta": Spelling("Adadelta", {"rho": "rho", "epsilon": "eps"}, {"rho": 0.9, "epsilon": 1e-6}),
    "adamax": Spelling("Adamax", {"epsilon": "eps"}, {"epsilon": 1e-8}),
    "nadam": Spelling("NAdam", {"epsilon": "eps"}, {"epsilon": 1e-8}),
    **_SOLVERS,
    COMPONENTS: Spelling("ExactComponents", _same("explained_variance_ratio"), {}, solves=True),
    FACTORS: Spelling(
        "AlternatingLeastSquares", _same("l2", "iterations", "alpha"), {"iterations": 20}, solves=True
    ),
}


_CLIPPING = ("clipnorm", "global_clipnorm", "clipvalue")


def keras_optimizer(optimizer: Component) -> Expression:
    spelling = KERAS[optimizer.name]
    keywords = [*_keywords(spelling, optimizer), *_clipping(optimizer)]
    if spelling.solves:
        return CallExpression(spelling.name, tuple(keywords))
    return CallExpression(f"keras.optimizers.{spelling.name}", ("lr", *keywords))


def torch_optimizer(optimizer: Component) -> Expression:
    spelling = TORCH[optimizer.name]
    if spelling.solves:
        return CallExpression(spelling.name, tuple(_keywords(spelling, optimizer)))
    arguments: list[Expression | tuple[str, Expression]] = [
        "parameters",
        "lr",
        *_keywords(spelling, optimizer),
    ]
    betas = optimizer.params.get("beta_1"), optimizer.params.get("beta_2")
    if None not in betas and betas != (0.9, 0.999):
        arguments.append(("betas", f"({literal(betas[0])}, {literal(betas[1])})"))
    if spelling.fused:
        arguments.append(("fused", "True"))
    call = CallExpression(f"torch.optim.{spelling.name}", tuple(arguments))
    clipping = _clipping(optimizer)
    return CallExpression("clipped", (call, *clipping)) if clipping else call


def _clipping(optimizer: Component) -> list[tuple[str, Expression]]:
    return [(name, literal(optimizer.params[name])) for name in _CLIPPING if name in optimizer.params]


def _keywords(spelling: Spelling, optimizer: Component) -> list[tuple[str, Expression]]:
    return [
        (spelling.keywords[name], literal(value))
        for name, value in optimizer.params.items()
        if name in spelling.keywords and spelling.defaults.get(name) != value
    ]


def schedule(name: str, params: Mapping[str, Parameter], rate: str) -> Expression:
    """Return the call in a program's `learning_rate(steps)`."""
    keywords = [
        (keyword, literal(params[parameter]))
        for parameter, (keyword, default) in schedules.PARAMETERS[name].items()
        if params[parameter] != default
    ]
    return CallExpression(f"schedules.{name}", ("steps", rate, *keywords))


# Losses: one value per row, from labels and predictions of (n, 1), or of (n,) and (n, classes). Regression measures in
# units of the label's deviation. The last line of a body returns the losses.

_KERAS_REGRESSION = {
    "mean_squared_error": "keras.losses.mean_squared_error({scaled})",
    "mean_absolute_error": "keras.losses.mean_absolute_error({scaled})",
    "huber": "keras.losses.huber({scaled}, delta={delta})",
    "log_cosh": "keras.losses.log_cosh({scaled})",
}
_KERAS_BINARY = {
    "cross_entropy": "keras.losses.binary_crossentropy(labels, predictions, from_logits=True)",
    "focal": "keras.losses.binary_focal_crossentropy(labels, predictions, gamma={gamma}, from_logits=True)",
    "hinge": "keras.losses.hinge(labels, predictions)",
}
_KERAS_CLASSES = {
    "cross_entropy": "keras.losses.sparse_categorical_crossentropy(labels, predictions, from_logits=True)",
    "focal": (
        "cost = keras.losses.sparse_categorical_crossentropy(labels, predictions, from_logits=True)\n"
        "cost * (1 - keras.ops.exp(-cost)) ** {gamma}"
    ),
    "hinge": "keras.losses.categorical_hinge(keras.ops.one_hot(labels, {classes}), predictions)",
}
_TORCH_REGRESSION = {
    "mean_squared_error": 'F.mse_loss({scaled}, reduction="none")',
    "mean_absolute_error": 'F.l1_loss({scaled}, reduction="none")',
    "huber": 'F.huber_loss({scaled}, delta={delta}, reduction="none")',
    "log_cosh": "error = (predictions - labels) / LABEL.std\nerror + F.softplus(-2 * error) - math.log(2)",
    "preference": 'F.mse_loss(predictions, (labels > 0).to(predictions.dtype), reduction="none")',
}
_TORCH_BINARY = {
    "cross_entropy": 'F.binary_cross_entropy_with_logits(predictions, labels, reduction="none")',
    "focal": (
        'cost = F.binary_cross_entropy_with_logits(predictions, labels, reduction="none")\n'
        "cost * (1 - torch.exp(-cost)) ** {gamma}"
    ),
    "hinge": "torch.relu(1 - predictions * (2 * labels - 1))",
}
_TORCH_CLASSES = {
    "cross_entropy": 'F.cross_entropy(predictions, labels, reduction="none")',
    "focal": (
        'cost = F.cross_entropy(predictions, labels, reduction="none")\ncost * (1 - torch.exp(-cost)) ** {gamma}'
    ),
    "hinge": 'F.multi_margin_loss(predictions, labels, reduction="none")',
}
# Cross-entropy of labels of which a share is spread over all classes; of two classes, and of any number.
_SMOOTHED = {
    ("keras", True): (
        "keras.losses.binary_crossentropy(labels, predictions, from_logits=True, label_smoothing={label_smoothing})"
    ),
    ("keras", False): (
        "wanted = keras.ops.one_hot(labels, {classes})\nkeras.losses.categorical_crossentropy("
        "wanted, predictions, from_logits=True, label_smoothing={label_smoothing})"
    ),
    ("torch", True): (
        "wanted = labels * (1 - {label_smoothing}) + {label_smoothing} / 2\n"
        'F.binary_cross_entropy_with_logits(predictions, wanted, reduction="none")'
    ),
    ("torch", False): (
        'F.cross_entropy(predictions, labels, reduction="none", label_smoothing={label_smoothing})'
    ),
}
CLASS_WEIGHTS = "class_weights"
_LOSSES = {
    "keras": (_KERAS_REGRESSION, _KERAS_BINARY, _KERAS_CLASSES),
    "torch": (_TORCH_REGRESSION, _TORCH_BINARY, _TORCH_CLASSES),
}


def loss_body(framework: str, loss: Component, label: Label) -> list[str]:
    """Return the lines of a program's `loss(labels, predictions)`; the last one returns."""
    if label.labels:
        return _weighted_sum(framework, loss, label)
    regression, binary, classes = _LOSSES[framework]
    values = {name: literal(value) for name, value in loss.params.items() if name != CLASS_WEIGHTS}
    if label.has_classes:
        table = binary if label.is_binary else classes
        template = table[loss.name]
        if loss.params.get("label_smoothing"):
            template = _SMOOTHED[framework, label.is_binary]
        body = _body(template.format(classes=len(label.classes), **values))
        return _weigh_losses(body) if CLASS_WEIGHTS in loss.params else body
    if label.clusters and loss.name == "cluster_divergence":
        return ["return TARGETS(predictions)  # divergence of the soft assignments from sharper ones"]
    if label.clusters:
        return ["return predictions.min(dim=1).values  # squared distances to the nearest centres"]
    if label.dimensions:
        return [f"return predictions[:, -{ERRORS}]  # mean squared errors of the restored features"]
    if label.tells_anomalies:
        share = values["contamination"]
        odds = "odds = predictions.squeeze(1)  # quantile loss of the threshold"
        return [odds, f"return torch.maximum((1 - {share}) * odds, -{share} * odds)"]
    if label.is_forecast:
        return _of_forecast(loss.name, label)
    order = ("labels", "predictions") if framework == "keras" else ("predictions", "labels")
    scaled = ", ".join(f"{name} / LABEL.std" for name in order)
    return _body(regression[loss.name].format(scaled=scaled, **values))


def _of_forecast(name: str, label: Label) -> list[str]:
    """Return the loss of a forecast and its quantiles, in units of the scale of each series."""
    scale = 1 + BESIDE.index(SCALE)
    errors = (
        f"errors = (labels[:, :1] - predictions) / labels[:, {scale}:{scale + 1}]  # in units of the series"
    )
    size = "abs" if name == "mean_absolute_error" else "square"
    if not label.quantiles:
        return [errors, f"return errors.{size}()"]
    others = f"quantile_losses(errors[:, 1:], {line(Items(tuple(map(literal, label.quantiles))))})"
    return [errors, f"return torch.cat([errors[:, :1].{size}(), {others}], dim=1).mean(dim=1)"]


def label_losses(framework: str, label: Label) -> list[list[str]]:
    """Return the lines of `loss_0(labels, predictions)`, `loss_1`, …: the usual loss of each of several labels."""
    bodies = []
    for number, one_label in enumerate(label.labels):
        name = "cross_entropy" if one_label.has_classes else "mean_squared_error"
        body = loss_body(framework, Component(name), one_label)
        bodies.append([line.replace("LABEL.", f"LABEL[{number}].") for line in body])
    return bodies


def _weighted_sum(framework: str, loss: Component, label: Label) -> list[str]:
    """Return the sum of the labels' losses, each a number per row, times their weights."""
    weights = loss.params["weights"]
    terms = []
    for number, (one_label, (first, last), weight) in enumerate(
        zip(label.labels, label.places, weights, strict=True)  # type: ignore[arg-type]  # of a weighted sum
    ):
        some = f"[:, {first}:{last}]"
        labels = f"labels{some}"
        if one_label.has_classes and not one_label.is_binary:
            labels = (
                f"{labels}.argmax(dim=1)" if framework == "torch" else f"keras.ops.argmax({labels}, axis=1)"
            )
        term = f"loss_{number}({labels}, predictions{some})"
        term = f"{term}.flatten()" if framework == "torch" else f"keras.ops.reshape({term}, (-1,))"
        terms.append(term if weight == 1 else f"{literal(weight)} * {term}")
    lines = [f"losses = {terms[0]}  # {literal(label.labels[0].column)}"]
    lines += [
        f"losses += {term}  # {literal(one_label.column)}"
        for term, one_label in zip(terms[1:], label.labels[1:], strict=True)
    ]
    return [*lines, "return losses"]


def _weigh_losses(body: list[str]) -> list[str]:
    """Multiply each loss by the weight of its row's class."""
    *lines, last = body
    return [
        *lines,
        last.replace("return ", "losses = ", 1),
        "return losses * by_class(labels, CLASS_WEIGHTS)",
    ]


def _body(source: str) -> list[str]:
    *lines, last = source.split("\n")
    return [*lines, f"return {last}"]
