"""LightGBM behind the engine of trees."""

from __future__ import annotations

import contextlib
import logging
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from edl.arrays import Array, Features
from edl.collectives.base import Group
from edl.errors import JobError
from edl.frameworks.imports import without_extras
from edl.frameworks.trees.adapter import TreeAdapter, checked_model
from edl.frameworks.trees.compiled import ENOUGH, CompiledForest, is_available
from edl.frameworks.trees.engine import (
    GROWING,
    SCORING,
    Engine,
    Groups,
    first_line,
    threads_for,
    unknown_objective,
)
from edl.frameworks.trees.forest import Forest, of_lightgbm
from edl.frameworks.trees.models import LightGBM
from edl.frameworks.trees.objectives import LIGHTGBM, Objective
from edl.frameworks.trees.ranking import adapter
from edl.program import Program

with without_extras():
    import lightgbm

    from edl.frameworks.trees.lightgbm_network import LightGBMNetwork, sample_rows

# Results that depend on the rows, the parameters and the seed alone; LightGBM would choose by timing otherwise.
_FIXED = {"deterministic": True, "force_row_wise": True, "verbosity": -1}
# In a model's file: of the machine and the workers, not of the model.
_ELSEWHERE = {"num_threads": b"0", "num_machines": b"1", "tree_learner": b"serial"}
_LINES = re.compile(rb"^\[(%s): \w+\]$" % "|".join(_ELSEWHERE).encode(), re.MULTILINE)
_MOST_ROWS = 10_000  # of a group, by LightGBM's own limit
_LEAST_IN_LEAF = 20  # rows, by default
_LEAST_RATE = 1e-12  # LightGBM refuses 0, in which schedules end
_threads = 1


def start(threads: int) -> None:
    global _threads
    _threads = threads
    lightgbm.register_logger(logging.getLogger("edl.lightgbm"))


def seed(value: int) -> None:
    """Do nothing: the seed is a parameter of the model."""


def create(program: Program, features: Features, labels: Array | None, seed: int) -> TreeAdapter:
    model: LightGBM = checked_model(program, LightGBM)
    name = str(model.params.get("objective", "regression"))
    if name not in LIGHTGBM:
        raise JobError(f"{program.file}: {unknown_objective(name, LIGHTGBM)}")
    return adapter(program, model, LightGBMEngine(model, LIGHTGBM[name]), features)


class LightGBMEngine(Engine):
    failures = (lightgbm.basic.LightGBMError,)

    def __init__(self, model: LightGBM, objective: Objective) -> None:
        super().__init__(model, objective, int(model.params.get("num_class", 1)))
        params = model.params
        dart = params.get("boosting", "gbdt") == "dart"
        self.additive = not dart
        self.replays = dart or _draws(params)
        self._params: dict[str, Any] = {**_FIXED, **params, "metric": objective.metric}
        self._names = [f"f{position}" for position in range(model.width)]
        self._booster: lightgbm.Booster | None = None
        self._rows: lightgbm.Dataset | None = None
        self._network: LightGBMNetwork | None = None
        self._with_workers: dict[str, Any] = {}  # parameters of this worker of a group
        self._rate = self.rate
        self._fast: tuple[int, CompiledForest | None] | None = None  # for that number of rounds
        self._work = 0  # rows times trees predicted since the trees were loaded

    @property
    def rate(self) -> float:
        return float(self._params.get("learning_rate", 0.1))

    @property
    def rounds(self) -> int:
        return 0 if self._booster is None else int(self._booster.current_iteration())

    def begin(
        self,
        matrix: Array,
        labels: Array,
        weights: Array | None,
        groups: Groups | None = None,
        workers: Group | None = None,
    ) -> None:
        if self._rows is not None and self._booster is not None:
            self.load(self.dump(self.rounds))
        self._params["num_threads"] = threads_for(matrix, _threads, GROWING)
        if groups is not None:
            self._params |= {"metric": groups.metric, "eval_at": [groups.k or _MOST_ROWS]}
        self._network = None if workers is None else LightGBMNetwork(workers)
        self._with_workers = {} if workers is None else self._of_each(workers)
        params, reference = self._params, None
        if workers is not None:
            params, reference = self._intervals(matrix, workers)
        self._rows = self._dataset(
            matrix,
            params,
            label=labels,
            weight=weights,
            group=None if groups is None else groups.sizes,
            reference=reference,
        )
        self._training = False

    def _of_each(self, workers: Group) -> dict[str, Any]:
        """Return the parameters of a worker of a group.

        A leaf has at least one row: workers estimate numbers of rows, and fail at a leaf that has none.
        """
        least = max(1, int(self._params.get("min_data_in_leaf", _LEAST_IN_LEAF)))
        return {"num_machines": workers.size, "tree_learner": "data", "min_data_in_leaf": least}

    def _intervals(self, matrix: Array, workers: Group) -> tuple[dict[str, Any], lightgbm.Dataset]:
        """Return the intervals of the columns, as one worker with all rows would choose them, and their parameters."""
        sample, total = sample_rows(matrix, workers, self._params)
        least = int(self._params.get("min_data_in_leaf", _LEAST_IN_LEAF)) * len(sample) // total
        params = {**self._params, "min_data_in_leaf": least}  # of the sample, by which columns are left out
        return params, self._dataset(sample, params).construct()

    def _dataset(self, matrix: Array, params: Mapping[str, Any], **more: Any) -> lightgbm.Dataset:
        return lightgbm.Dataset(
            matrix,
            feature_name=self._names,
            categorical_feature=list(self.model.categorical),
            params=dict(params),
            **more,
        )

    def grow(self, rate: float) -> None:
        with contextlib.nullcontext() if self._network is None else self._network.connect():
            self._grow(max(rate, _LEAST_RATE))

    def _grow(self, rate: float) -> None:
        if not self._training:
            params = {**self._params, **self._with_workers, "learning_rate": rate}
            self._booster = lightgbm.train(
                params, self._rows, 1, init_model=self._booster, keep_training_booster=True
            )
            self._training, self._rate = True, rate
            return
        if rate != self._rate:
            self._trees.reset_parameter({"learning_rate": rate})
            self._rate = rate
        self._trees.update()

    def mean_loss(self, labels: Array, weights: Array | None) -> float:
        [(_, _, mean, _)] = self._trees.eval_train()  # weighted, over the sum of the weights
        return float(mean) * (1.0 if weights is None else float(weights.mean(dtype=np.float64)))

    def measure_ranking(self) -> float:
        [(_, _, mean, _)] = self._trees.eval_train()
        return float(mean)

    def margins(self, matrix: Array, last: int, before: tuple[int, Array] | None = None) -> Array:
        if before is None and (compiled := self._compile_when_worthwhile(len(matrix), last)):
            return compiled.margins(matrix, threads_for(matrix, _threads, SCORING))
        first, earlier = before if before is not None and self.additive else (0, None)
        if earlier is not None and first == last:
            return earlier
        added = self._predict_compiled(matrix, last - first, start_iteration=first, raw_score=True)
        added = added.reshape(len(matrix), self.outputs)
        return added if earlier is None else earlier + added

    def _compile_when_worthwhile(self, rows: int, last: int) -> CompiledForest | None:
        """Return compiled code for loaded trees, once they have so many rows to predict that it pays, or None."""
        self._work += rows * last * self.outputs
        if self._rows is not None or self._work < ENOUGH or not is_available():
            return None
        if self._fast is None or self._fast[0] != last:
            self._fast = (last, self._make_compiled(last))
        return self._fast[1]

    def _make_compiled(self, last: int) -> CompiledForest | None:
        try:
            return CompiledForest(self.forest(last))
        except JobError:  # a kind of trees that only the library evaluates
            return None

    def contributions(self, matrix: Array, last: int) -> Array:
        flat = self._predict_compiled(matrix, last, pred_contrib=True)
        return flat.reshape(len(matrix), self.outputs, self.model.width + 1)

    def leaves(self, matrix: Array, last: int) -> Array:
        return self._predict_compiled(matrix, last, pred_leaf=True).reshape(len(matrix), -1)

    def _predict_compiled(self, matrix: Array, count: int, **how: Any) -> Array:
        threads = threads_for(matrix, _threads, SCORING)
        return np.asarray(self._trees.predict(matrix, num_iteration=count, num_threads=threads, **how))

    def dump(self, last: int) -> bytes:
        text = self._trees.model_to_string(num_iteration=last or -1)
        return _LINES.sub(_on_one_thread, text.encode())

    def forest(self, last: int) -> Forest:
        return of_lightgbm(self.dump(last).decode())

    def load(self, data: bytes) -> None:
        self._rows, self._fast, self._work = None, None, 0
        if not data:
            self._booster = None
            return
        try:
            self._booster = lightgbm.Booster(model_str=data.decode())
        except (lightgbm.basic.LightGBMError, UnicodeDecodeError) as error:
            raise JobError(f"the weights are not a model of LightGBM: {first_line(error)}") from None

    def importances(self, last: int) -> Mapping[str, Array]:
        kinds = ("gain", "split")
        return {
            kind: np.asarray(self._trees.feature_importance(kind, iteration=last or -1), dtype=np.float64)
            for kind in kinds
        }

    @property
    def _trees(self) -> lightgbm.Booster:
        if self._booster is None:
            raise JobError("the model has no trees yet")
        return self._booster


def _on_one_thread(line: re.Match[bytes]) -> bytes:
    return b"[%s: %s]" % (line[1], _ELSEWHERE[line[1].decode()])


def _draws(params: Mapping[str, Any]) -> bool:
    """Return True if rounds draw random numbers, in the order of the rounds."""
    shares = ("bagging_fraction", "feature_fraction", "feature_fraction_bynode")
    return (
        any(float(params.get(name, 1.0)) < 1 for name in shares)
        or bool(params.get("extra_trees"))
        or params.get("data_sample_strategy") == "goss"
        or params.get("boosting") in ("goss", "rf")
        or params.get("objective") == "rank_xendcg"
    )
