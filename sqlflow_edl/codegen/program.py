"""Generation of a training program's files from a JobSpec: the same spec gives the same bytes.

A program is a folder: `model.py` (model, loss and optimizer), `reader.py` (data source), `job.json` (the JobSpec) and
`vocabulary/` with lists too long for the page. The architecture of a model is a Jinja template per framework;
all user input enters it as a literal or a comment made by `codegen.source`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib import resources
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

import jinja2

from edl import metrics
from edl.errors import SpecError
from edl.program import DIGEST_FILE, digest_line
from edl.program.folders import CANDIDATES, MEMBERS
from edl.spec import (
    ENSEMBLE,
    ONNX,
    TREES,
    AnomalyLabel,
    ClassLabel,
    ClusterLabel,
    Feature,
    ForecastLabel,
    JobSpec,
    Label,
    Query,
    RankingLabel,
    ReductionLabel,
    RegressionLabel,
    SeveralLabels,
    Split,
    Weights,
    label_offset,
    to_json,
)
from sqlflow_edl.analysis.catalog import MODELS
from sqlflow_edl.analysis.models import transform
from sqlflow_edl.analysis.models.base import Architecture
from sqlflow_edl.analysis.user_model import ARCHITECTURE
from sqlflow_edl.codegen import frameworks, trees
from sqlflow_edl.codegen.checks import check_names
from sqlflow_edl.codegen.features import Reason, features, series
from sqlflow_edl.codegen.imports import imports
from sqlflow_edl.codegen.source import CallExpression, Expression, Items, comment, layout, literal
from sqlflow_edl.codegen.user_model import own_model

Part = TypeVar("Part")


@dataclass(frozen=True, slots=True)
class GeneratedProgram:
    """Files of a generated program, by their path in its folder."""

    files: Mapping[str, bytes]

    def write(self, folder: Path) -> None:
        for name, content in self.files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)


def generate(spec: JobSpec, reason: Reason | None = None) -> GeneratedProgram:
    """Return the program of the JobSpec. Raises SpecError if the spec is damaged or was not made by the compiler.

    reason: of each feature, a comment beside it.
    """
    check_names(spec)
    try:
        return _program(spec, _SharedParts(reason))
    except (LookupError, TypeError, ValueError, AttributeError, SyntaxError, jinja2.UndefinedError) as error:
        raise SpecError(f"the JobSpec is damaged: {type(error).__name__}: {str(error)[:200]}") from error


class _SharedParts:
    """Parts of the programs of a search's candidates, made once for all with the same objects in their JobSpecs."""

    def __init__(self, reason: Reason | None) -> None:
        self.reason = reason
        self._parts: dict[tuple[object, ...], Any] = {}

    def get(self, make: Callable[..., Part], *objects: object) -> Part:
        """Return what the function makes of these objects. The JobSpec of the whole program keeps them alive."""
        key = (make, *map(id, objects))
        if key not in self._parts:
            self._parts[key] = make(*objects)
        part: Part = self._parts[key]
        return part


def _program(spec: JobSpec, parts: _SharedParts) -> GeneratedProgram:
    transform.check_predicts(spec, spec.output.name)
    stored: dict[str, bytes] = {}
    if spec.framework == ENSEMBLE:
        model = _template("ensemble.py.jinja").render(_shared_values(spec, parts), searches=not spec.members)
    elif spec.framework == ONNX:
        expression, _ = parts.get(_features, spec.inputs, parts.reason)
        model = _template("imported.py.jinja").render(_shared_values(spec, parts), features=expression)
    else:
        model = _template("model.py.jinja").render(_model_values(spec, stored, parts))
    encoded = model.encode()
    return GeneratedProgram(
        {
            "model.py": encoded,
            "reader.py": parts.get(_reader, spec.query, spec.validation, spec.split),
            "job.json": to_json(spec),
            DIGEST_FILE: digest_line(encoded).encode(),
            **stored,
            **_models(spec, parts),
        }
    )


def _reader(query: Query, validation: Query | None, split: Split | None) -> bytes:
    """Return the module of the data source."""
    text = _template("reader.py.jinja").render(
        database=query.source.partition(":")[0],
        source=literal(query.source),
        select=literal(query.select),
        held_out=literal(validation.select) if validation else "",
        split=_split(split) if split else "",
    )
    return text.encode()


def _models(spec: JobSpec, parts: _SharedParts) -> dict[str, bytes]:
    """Return the files of the programs of an ensemble's members, or of a search's candidates."""
    models = {f"{MEMBERS}/{number}": member.spec for number, member in enumerate(spec.members)}
    if spec.search:
        candidates = enumerate(spec.search.candidates)
        models |= {f"{CANDIDATES}/{number}": candidate.spec for number, candidate in candidates}
    files: dict[str, bytes] = {}
    for folder, model in models.items():
        for name, content in _program(model, parts).files.items():
            files[f"{folder}/{name}"] = content
    return files


def _split(split: Split) -> str:
    """Return the expression of the split."""
    column, fraction, fewest = map(literal, (split.column, split.fraction, split.fewest))
    return f"data.Split({literal(split.by)}, {column}, fraction={fraction}, fewest={fewest})"


@functools.cache
def _environment() -> jinja2.Environment:
    folder = resources.files("sqlflow_edl.codegen_templates")
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(lambda name: (folder / name).read_text(encoding="utf-8")),
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        undefined=jinja2.StrictUndefined,
        autoescape=False,  # noqa: S701 - the output is Python; its input is escaped by codegen.source
    )
    environment.filters |= {"comment": comment, "literal": literal, "listed": _list_numbers}
    return environment


def _list_numbers(numbers: Iterable[float]) -> str:
    """Return an indented list of numbers, in several lines if it is long."""
    return layout(Items(tuple(map(literal, numbers))), indent=4)


@functools.cache
def _template(name: str) -> jinja2.Template:
    return _environment().get_template(name)


def _features(
    inputs: Mapping[str, tuple[Feature, ...]], reason: Reason | None
) -> tuple[str, dict[str, bytes]]:
    """Return the expression of the features, and the files of lists that are too long for the page."""
    stored: dict[str, bytes] = {}
    return layout(features(inputs, stored, reason), prefix="FEATURES = "), stored


def _model_values(spec: JobSpec, stored: dict[str, bytes], parts: _SharedParts) -> dict[str, object]:
    """Return the values of model.py.jinja; `definition` is the rendered template of the model. Fill `stored`."""
    expression, lists = parts.get(_features, spec.inputs, parts.reason)
    stored.update(lists)
    values = {
        **_shared_values(spec, parts),
        "features": expression,
        "class_weights": _class_weights(spec),
        "series": series(spec),
        "seed": spec.training.seed,
    }
    if spec.framework in TREES:  # their library has the loss and the optimizer
        values |= {"model": trees.model(spec), "label_losses": [], "loss_body": [], "optimizer": ""}
    else:
        values |= _network_values(spec)
    definition = _definition(spec).render(values).rstrip()
    losses = [*values["label_losses"], values["loss_body"]]
    code = "\n".join([definition, *chain.from_iterable(losses), values["optimizer"]])
    groups = imports(spec, code, bool(stored))
    return {**values, "definition": definition, "imports": groups, "stored": bool(stored)}


def _definition(spec: JobSpec) -> jinja2.Template:
    """Return the template of the model itself."""
    if spec.framework in TREES:
        return _template("trees.py.jinja")
    architecture = _architecture(spec)
    source = architecture.templates.get(spec.framework)
    if source is not None:
        return _environment().from_string(source)
    return _template(f"networks/{architecture.name}_{spec.framework}.py.jinja")


def _architecture(spec: JobSpec) -> Architecture:
    return ARCHITECTURE if spec.own else MODELS.entries[spec.model.name].architecture


def _network_values(spec: JobSpec) -> dict[str, Any]:
    """Return the values of the templates of networks."""
    regression = not spec.label.has_classes
    mixed = spec.precision != "float32"  # then what is added to a large mean has to be float32
    own_functions = spec.own.functions if spec.own else ()
    body = [] if "loss" in own_functions else frameworks.loss_body(spec.framework, spec.loss, spec.label)
    params = {} if spec.own else spec.model.params  # an own model's are of any kind
    batch_norm = bool(params.get("batch_norm"))
    activation = str(params.get("activation", "relu"))
    dropout = literal(params["dropout"]) if params.get("dropout") else ""
    several = bool(spec.label.labels)
    architecture = _architecture(spec)
    units = params.get("hidden_units")
    return {
        "architecture": architecture.name,
        "params": params,
        "several": several,
        "hidden_units": repr(tuple(units)) if isinstance(units, tuple | list) and units else "",
        "activation": activation,
        "activation_argument": f', activation="{activation}"',
        "batch_norm": batch_norm,
        "members": _members(params),
        "dropout": dropout,
        "layers": _torch_layers(architecture.linear, activation, batch_norm, dropout),
        "regression": regression,
        "outputs": spec.label.outputs,
        "logits": "" if regression else "  # logits",
        "rescaled": "rescaled(" if several else "",
        "scaled": ", LABEL)"
        if several
        else f"{'.float()' * mixed} * LABEL.std + LABEL.mean"
        if regression
        else "",
        "in_float32": ', dtype="float32"' if mixed else "",
        "loss_body": body,
        "label_losses": frameworks.label_losses(spec.framework, spec.label) if body else [],
        **({"optimizer": ""} if "optimizer" in own_functions else _optimizer(spec)),
        **(own_model(spec, spec.own) if spec.own is not None else {}),
        **architecture.values(spec),
    }


def _shared_values(spec: JobSpec, parts: _SharedParts) -> dict[str, Any]:
    """Return the values of all templates."""
    return {
        **parts.get(_label_values, spec.label, spec.metrics, spec.weights),
        "imported": spec.imported,
        "title": spec.model.name + (f", {spec.rows.training:,} training rows" if spec.rows.total else ""),
        "framework": spec.framework,
        "statement": spec.statement or spec.query.select,
        "own_functions": spec.own.functions if spec.own else (),
        "schedule": _schedule(spec),
    }


def _label_values(label: Label, names: tuple[str, ...], weights: Weights | None) -> dict[str, str]:
    """Return the values of templates on the label and how it is measured. names: of the metrics."""
    return {
        "weights": _weights(weights) if weights is not None else "",
        "label": layout(_label(label), prefix="LABEL = "),
        "scores_comment": _SCORES.get(type(label), "in units of the label"),
        "metrics": _metrics(names, label),
    }


_SCORES: Mapping[type, str] = {
    ClassLabel: "probabilities of the classes",
    SeveralLabels: "of each label: a number, or the probabilities of its classes",
    RankingLabel: "higher is better, within a group",
    ClusterLabel: "distances to the centres",
    AnomalyLabel: "from 0 to 1, above 0.5 for an anomaly",
    ReductionLabel: "the numbers, then mean squared and absolute errors, and mean squared features",
}


def _members(params: Mapping[str, object]) -> int:
    """Return the number of members of an ensemble; 0 for a single network."""
    members = int(params.get("members") or 1)  # type: ignore[call-overload]
    return members if members > 1 else 0


def _optimizer(spec: JobSpec) -> dict[str, object]:
    rate = spec.optimizer.params.get("learning_rate")
    write = frameworks.keras_optimizer if spec.framework == "keras" else frameworks.torch_optimizer
    return {
        "learning_rate": "" if rate is None else f"lr={literal(rate)}",
        "optimizer": layout(write(spec.optimizer), indent=4, prefix="return "),
    }


def _schedule(spec: JobSpec) -> str:
    """Return the body of `learning_rate(steps)`; empty for a constant rate."""
    if spec.schedule is None:
        return ""
    rate = literal(spec.optimizer.params["learning_rate"])
    call = frameworks.schedule(spec.schedule.name, spec.schedule.params, rate)
    return layout(call, indent=4, prefix="return ")


_TORCH_ACTIVATIONS = {
    "relu": "nn.ReLU()",
    "elu": "nn.ELU()",
    "selu": "nn.SELU()",
    "gelu": "nn.GELU()",
    "silu": "nn.SiLU()",
    "mish": "nn.Mish()",
    "tanh": "nn.Tanh()",
    "sigmoid": "nn.Sigmoid()",
}


def _torch_layers(linear: str, activation: str, batch_norm: bool, dropout: str) -> str:
    layers = [f"{linear}(width, units)"]
    if batch_norm:  # Keras' defaults: momentum 0.99 is torch's 0.01
        layers.append("nn.BatchNorm1d(units, eps=1e-3, momentum=0.01)")
    layers.append(_TORCH_ACTIVATIONS[activation])
    if dropout:
        layers.append(f"nn.Dropout({dropout})")
    return layout(Items(tuple(layers), spread=True), indent=12, prefix="layers += ")


def _label(label: Label) -> Expression:
    """Return the call of the label's constructor in `edl.features`."""
    if (arguments := LABELS.get(type(label))) is None:
        raise SpecError(f"the label {label.column} is what no statement makes")
    function, make = arguments
    return CallExpression(f"fc.{function}", tuple(make(label)))


def _list(name: str, values: Iterable[object]) -> tuple[str, Expression]:
    return name, Items(tuple(map(literal, values)))


LABELS: Mapping[type, tuple[str, Callable[[Any], Iterable[Expression | tuple[str, Expression]]]]] = {
    RegressionLabel: (
        "label",
        lambda label: (
            literal(label.column),
            ("mean", literal(label.mean)),
            ("std", literal(label.std)),
            *_centre_argument(label),
        ),
    ),
    ClassLabel: ("class_label", lambda label: (literal(label.column), _list("", label.classes)[1])),
    RankingLabel: ("ranking", lambda label: (literal(label.column), ("group", literal(label.group)))),
    ClusterLabel: ("clusters", lambda label: (literal(label.clusters),)),
    AnomalyLabel: ("anomalies", lambda label: ()),
    ReductionLabel: ("reduction", lambda label: (literal(label.dimensions), literal(label.column))),
    ForecastLabel: (
        "forecast",
        lambda label: (
            literal(label.column),
            *([_list("quantiles", label.quantiles)] if label.quantiles else []),
            *_centre_argument(label),
        ),
    ),
    SeveralLabels: ("labels", lambda label: map(_label, label.labels)),
}


def _centre_argument(label: Label) -> tuple[tuple[str, Expression], ...]:
    """Return the argument of the centre of a number; none without one."""
    offset = label_offset(label)
    return (("centre", literal(offset)),) if offset else ()


def _weights(weights: Weights) -> str:
    """Return `fc.weights(…)`."""
    arguments = (literal(weights.column), ("mean", literal(weights.mean)))
    return layout(CallExpression("fc.weights", arguments), prefix="WEIGHTS = ")


def _class_weights(spec: JobSpec) -> str:
    """Return a list in the order of the label's classes; empty if all classes weigh the same."""
    weights = spec.loss.params.get("class_weights")
    items = Items(tuple(map(literal, weights))) if isinstance(weights, tuple | list) else None
    return layout(items, prefix="CLASS_WEIGHTS = ") if items else ""


def _metrics(names: Iterable[str], label: Label) -> str:
    entries = [f"{literal(name)}: {_metric(name, label)}" for name in names]
    line = "{" + ", ".join(entries) + "}"
    if len(line) < 85:
        return line
    return "{\n" + "".join(f"        {entry},\n" for entry in entries) + "    }"


def _metric(name: str, label: Label) -> str:
    """Return the expression of a metric; of one of several labels its name is `label.metric`."""
    if label.labels:
        column, _, metric_name = name.rpartition(".")
        number = [one_label.column for one_label in label.labels].index(column)
        return f"metrics.of_label(LABEL, {number}, {_metric(metric_name, label.labels[number])})"
    metric = metrics.by_name(name, metrics.kind_of(label))
    return f"metrics.{type(metric).__name__}({_metric_argument(metric)})"


def _metric_argument(metric: metrics.Metric) -> str:
    """Return the argument of a metric of the first rows or classes, or the weight of the recall; empty for others."""
    if isinstance(metric, metrics.FBeta):
        return str(metric.beta)
    counts = isinstance(metric, metrics.RankingMetric | metrics.TopKAccuracy)
    return str(metric.k) if counts and metric.k else ""  # type: ignore[attr-defined]
