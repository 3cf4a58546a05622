"""Ensembles of programs: their scores, the predicted numbers or the probabilities of classes, are averaged.

The folder of an ensemble's program holds the programs of its members in `members/0`, `members/1`, …, and `job.json`
their weights. Each member transforms the rows and predicts as it does alone, in its own framework. A member may be the
mean of several models of its program, one for each fold of the rows. The weights of the ensemble are the models'
weights, with the numbers of member and fold before each name: `0.0.booster`, `1.4.dense.kernel`.

An ensemble is the result of a search and is not trained as a whole.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, cast

import msgspec
import numpy as np
import pyarrow as pa

from edl import frameworks
from edl.arrays import Array, Features
from edl.errors import JobError
from edl.features import Target, target
from edl.frameworks.adapter import Adapter, Evaluated, Floats, Minibatches
from edl.frameworks.device import is_own_process
from edl.frameworks.networks.features import NUMBERS
from edl.frameworks.networks.onnx import NetworkFile, reason_against
from edl.frameworks.onnx.columns import TREE_NUMBERS, find_unsupported_column
from edl.frameworks.onnx.ensemble import EnsembleFile, EnsemblePart
from edl.metrics import MSE, LogLoss
from edl.program import Program, load, read_spec
from edl.program.folders import MEMBERS
from edl.spec import ENSEMBLE, TREES, JobSpec, Label, extra_outputs

if TYPE_CHECKING:
    from edl.embeddings.model_tables import Cut

_threads = 1


def start(threads: int) -> None:
    """Set the threads of the members' frameworks. They are imported when a model needs them."""
    global _threads
    _threads = threads


def seed(seed: int) -> None:
    """Do nothing: members are seeded when they are created."""


def create(program: Program, features: Features, labels: Array | None, seed: int) -> EnsembleAdapter:
    """Create the members' models. `features` are a few rows for each member."""
    model = program.call("custom_model")
    if not isinstance(model, Ensemble):
        raise JobError(f"custom_model in {program.file} returns a {type(model).__name__}, not an Ensemble")
    adapters = {}
    for (name, member), folds in zip(model.programs.items(), model.folds, strict=True):
        frameworks.prepare(member.spec.framework, _threads, own_process=is_own_process())
        member = replace(member, spec=msgspec.structs.replace(member.spec, device=program.spec.device))
        for fold in range(folds):
            adapter = frameworks.create(member, features[name], None, seed=member.spec.training.seed)
            adapters[name, f"{fold}"] = adapter
    return EnsembleAdapter(model, adapters, target(program.spec.label))


class Ensemble:
    """Members of an ensemble. Their programs lie in a folder beside the ensemble's own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @cached_property
    def spec(self) -> JobSpec:
        return read_spec(self._folder)

    @cached_property
    def programs(self) -> dict[str, Program]:
        """Loaded programs of the members by number."""
        numbers = map(str, range(len(self.spec.members)))
        return {number: load(self._folder / MEMBERS / number) for number in numbers}

    @property
    def weights(self) -> tuple[float, ...]:
        """Share of each member in the scores."""
        return tuple(member.weight for member in self.spec.members)

    @property
    def folds(self) -> tuple[int, ...]:
        """Number of models of each member."""
        return tuple(member.folds for member in self.spec.members)

    def transform(self, batch: pa.RecordBatch) -> Features:
        """Return the features of each member by its number."""
        return {
            number: program.call("feed", batch, "predict")[0] for number, program in self.programs.items()
        }


class EnsembleAdapter:
    """Adapter of an ensemble. It predicts; it cannot be trained."""

    framework = ENSEMBLE

    def __init__(self, model: Ensemble, models: Mapping[tuple[str, str], Adapter], label: Target) -> None:
        self.model = model
        self._models = models  # by member and fold
        self._label = label

    def predict(self, features: Features) -> Array:
        """Return the weighted mean of the members' scores, float64 (n, 1) numbers or (n, classes) probabilities."""
        return self.predict_with(features, ())[0]

    def predict_with(self, features: Features, names: Sequence[str]) -> tuple[Array, dict[str, Array]]:
        """Return the scores, and if named each member's scores, the mean over its folds."""
        total: Array | None = None
        of_members: dict[str, Array] = {}
        shares = dict(
            zip(self.model.programs, zip(self.model.weights, self.model.folds, strict=True), strict=True)
        )
        for (number, _), adapter in self._models.items():
            weight, folds = shares[number]
            scores = self.model.programs[number].call("scores", adapter.predict(features[number]))
            total = scores * (weight / folds) if total is None else total + scores * (weight / folds)
            if extra_outputs.MEMBERS in names:
                of_members[number] = of_members.get(number, 0.0) + scores / folds
        if total is None:
            raise JobError("the ensemble has no members", hint="its search has not ended yet")
        return total, {extra_outputs.MEMBERS: np.stack([*of_members.values()], axis=1)} if of_members else {}

    def evaluate(self, features: Features, labels: Array, weights: Floats | None = None) -> Evaluated:
        """Return scores and loss: the mean log loss, or the mean squared error in the unit of the label's variance."""
        scores = self.predict(features)
        mean = mean_loss(self._label.spec, labels, scores, weights)
        return Evaluated(scores, mean if weights is None else mean * float(weights.mean(dtype=np.float64)))

    def get_weights(self) -> dict[str, Array]:
        return {
            f"{number}.{fold}.{name}": values
            for (number, fold), adapter in self._models.items()
            for name, values in adapter.get_weights().items()
        }

    def set_weights(self, weights: Mapping[str, Array]) -> None:
        split: dict[tuple[str, str], dict[str, Array]] = {place: {} for place in self._models}
        for name, values in weights.items():
            number, _, rest = name.partition(".")
            fold, _, name_of_weight = rest.partition(".")
            if (number, fold) not in split:
                raise JobError(
                    f"the ensemble has no model for the weights {name}",
                    hint="they were trained with another program",
                )
            split[number, fold][name_of_weight] = values
        for place, adapter in self._models.items():
            adapter.set_weights(split[place])

    def keep(self) -> Mapping[str, Array]:
        return self.get_weights()

    def train(self, rows: Minibatches) -> Floats:
        _refuse("trained")

    def cut(self) -> Cut:
        weights, state = self.get_weights(), self.get_state()
        return lambda: (weights, state)

    def get_state(self) -> dict[str, Array]:
        _refuse("trained")

    def set_state(self, state: Mapping[str, Array]) -> None:
        _refuse("trained")

    def learning_rate(self, step: int) -> float:
        _refuse("trained")

    def set_learning_rate(self, rate: float) -> None:
        _refuse("trained")

    def standalone(self) -> EnsembleFile:
        """Return the models in one graph. Raises JobError if one of them has none over the columns of the table."""
        spec = self.model.spec
        shares = dict(zip(self.model.programs, spec.members, strict=True))
        parts = []
        for (number, _), adapter in self._models.items():
            program, member = self.model.programs[number], shares[number]
            parts.append((member.weight / member.folds, _part(program, adapter)))
        if clash := find_unsupported_column(spec.features, NUMBERS | TREE_NUMBERS):
            raise _without_graph(f"column {clash} is a text for one of its models and a number for another")
        return EnsembleFile(spec, parts)


def mean_loss(label: Label, labels: Array, scores: Array, weights: Floats | None) -> float:
    """Return the mean log loss, or the mean squared error in the unit of the label's variance; NaN without rows."""
    metric = LogLoss() if label.has_classes else MSE()
    return metric.result(metric.update((), labels, scores, weights)) / label.std**2


def _part(program: Program, adapter: Adapter) -> EnsemblePart:
    """Return a member as a part of a graph. Raises JobError if it has no graph over the columns of the table."""
    spec = program.spec
    if spec.framework in TREES:
        files: Any = adapter.standalone()
        if files.reads_columns:
            return cast(EnsemblePart, files)
        reason = "a feature has no operator"
    else:
        weights = adapter.get_weights()
        reason = reason_against(spec, weights)
        if not reason:
            return NetworkFile(spec, weights)
    raise _without_graph(f"of its {spec.model.name} in {spec.framework} {reason}")


def _without_graph(reason: str) -> JobError:
    return JobError(
        f"the ensemble cannot be written as one ONNX model: {reason}",
        hint="SHOW TRIALS lists a statement for each of its models; train one by itself and export it",
    )


def _refuse(what: str) -> NoReturn:
    raise JobError(
        f"an ensemble cannot be {what} as a whole", hint="SHOW TRIALS lists the statements of its members"
    )
