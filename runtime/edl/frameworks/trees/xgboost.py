"""XGBoost behind the engine of trees. It computes in float32."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from edl.arrays import Array, Features
from edl.collectives.base import Group
from edl.errors import JobError
from edl.files import disk_folder
from edl.frameworks.imports import without_extras
from edl.frameworks.trees.adapter import TreeAdapter, checked_model
from edl.frameworks.trees.engine import (
    GROWING,
    SCORING,
    Engine,
    Groups,
    first_line,
    threads_for,
    unknown_objective,
)
from edl.frameworks.trees.forest import Forest, of_xgboost
from edl.frameworks.trees.models import XGBoost
from edl.frameworks.trees.objectives import XGBOOST, Objective, mean_loss
from edl.frameworks.trees.ranking import adapter
from edl.program import Program

with without_extras():
    import xgboost

    from edl.frameworks.trees.xgboost_disk import MatrixOnDisk, clip_to_float32
    from edl.frameworks.trees.xgboost_network import XGBoostNetwork

_FIXED = {"verbosity": 0, "disable_default_eval_metric": True}
_threads = 1


def start(threads: int) -> None:
    global _threads
    _threads = threads


def seed(value: int) -> None:
    """Do nothing: the seed is a parameter of the model."""


def create(program: Program, features: Features, labels: Array | None, seed: int) -> TreeAdapter:
    model: XGBoost = checked_model(program, XGBoost)
    name = str(model.params.get("objective", "reg:squarederror"))
    if name not in XGBOOST:
        raise JobError(f"{program.file}: {unknown_objective(name, XGBOOST)}")
    folder = disk_folder(program.folder) if program.spec.training.disk_cache else None
    return adapter(program, model, XGBoostEngine(model, XGBOOST[name], folder), features)


class XGBoostEngine(Engine):
    failures = (xgboost.core.XGBoostError,)

    """Engine of a model. cache_folder: for files of rows on disk."""

    def __init__(self, model: XGBoost, objective: Objective, cache_folder: str | None = None) -> None:
        super().__init__(model, objective, int(model.params.get("num_class", 1)))
        self._kind = str(model.params.get("booster", "gbtree"))
        self.additive = self._kind == "gbtree"
        self.replays = _draws(model.params) or self._kind == "dart"
        self._params: dict[str, Any] = {**_FIXED, **model.params}
        kinds = dict.fromkeys(model.categorical, "c")
        self._kinds = [kinds.get(position, "q") for position in range(model.width)]
        self._booster: xgboost.Booster | None = None
        self._rows: xgboost.DMatrix | None = None
        self._network: XGBoostNetwork | None = None
        self._rate = self.rate
        self._cache_folder = cache_folder

    @property
    def rate(self) -> float:
        return float(self._params.get("learning_rate", 0.5 if self._kind == "gblinear" else 0.3))

    @property
    def rounds(self) -> int:
        return 0 if self._booster is None else int(self._booster.num_boosted_rounds())

    def begin(
        self,
        matrix: Array,
        labels: Array,
        weights: Array | None,
        groups: Groups | None = None,
        workers: Group | None = None,
    ) -> None:
        self._leave()
        if workers is not None:
            self._check_for_workers()
            self._network = XGBoostNetwork(workers)
        self._call(self._begin, matrix, labels, weights, groups)

    def _check_for_workers(self) -> None:
        """Raise JobError if the parameters need all rows at one place."""
        method = self._params.get("tree_method")
        if self._kind == "gblinear" or method == "exact":
            what = "booster gblinear" if self._kind == "gblinear" else "tree_method exact"
            raise JobError(f"XGBoost trains {what} on one worker", hint="use gbtree with tree_method hist")

    def _begin(self, matrix: Array, labels: Array, weights: Array | None, groups: Groups | None) -> None:
        present = self.dump(self.rounds) if self._booster is not None else b""
        threads = self._params["nthread"] = threads_for(matrix, _threads, GROWING)
        quantiles = self._kind != "gblinear" and self._params.get("tree_method", "hist") in ("auto", "hist")
        if groups is not None:
            self._params["eval_metric"] = f"{groups.metric}@{groups.k}" if groups.k else groups.metric
        if isinstance(matrix, np.memmap):
            rows = MatrixOnDisk(matrix, labels, weights, self._kinds, self._cache_folder)
            self._rows = rows.quantize(int(self._params.get("max_bin", 256)), threads)
        elif quantiles:
            bins = int(self._params.get("max_bin", 256))
            self._rows = xgboost.QuantileDMatrix(
                clip_to_float32(matrix),
                labels,
                weight=_of_groups(weights, groups),
                group=None if groups is None else groups.sizes,
                feature_types=self._kinds,
                enable_categorical=True,
                max_bin=bins,
                nthread=threads,
            )
        else:
            self._rows = self._read(matrix, labels, weights, groups)
        self._booster = xgboost.Booster(self._params, [self._rows])
        if present:
            self._booster.load_model(bytearray(present))
            self._booster.set_param(self._params)
        self._rate = self.rate

    def grow(self, rate: float) -> None:
        self._call(self._grow, rate)

    def _grow(self, rate: float) -> None:
        """Add a round. Its first question to the booster sets the seed, for the calling thread alone."""
        if rate != self._rate:
            self._trees.set_param("learning_rate", rate)
            self._rate = rate
        self._trees.update(self._rows, self.rounds)

    def _call(self, function: Callable[..., None], *arguments: Any) -> None:
        """Call a function that exchanges data among the workers of a group."""
        if self._network is None:
            function(*arguments)
        else:
            self._network.call(function, *arguments)

    def _leave(self) -> None:
        """Leave the network of workers, even a broken one."""
        if self._network is not None:
            self._network.close()
            self._network = None

    def mean_loss(self, labels: Array, weights: Array | None) -> float:
        if self.objective.start is None:
            predictions = np.asarray(self._trees.predict(self._rows)).reshape(-1, self.outputs)
        else:  # the library's own predictions are classes
            margins = np.asarray(self._trees.predict(self._rows, output_margin=True)).reshape(
                -1, self.outputs
            )
            predictions = self.objective.predictions(margins.astype(np.float64))
        return mean_loss(self.losses(labels, predictions), weights)

    def measure_ranking(self) -> float:
        return float(self._trees.eval(self._rows).rpartition(":")[2])

    def margins(self, matrix: Array, last: int, before: tuple[int, Array] | None = None) -> Array:
        first, earlier = before if before is not None and self.additive else (0, None)
        if earlier is not None and first == last:
            return earlier
        if self._kind != "gbtree":
            predicted = self._trees.predict(self._read(matrix), output_margin=True)
            return np.asarray(predicted).reshape(-1, self.outputs)
        predicted = self._trees.inplace_predict(
            matrix,
            iteration_range=(first, last),
            predict_type="margin",
            base_margin=earlier,
            strict_shape=True,
        )
        return np.asarray(predicted).reshape(-1, self.outputs)

    def contributions(self, matrix: Array, last: int) -> Array:
        rounds = (0, 0) if self._kind == "gblinear" else (0, last)
        predicted = self._trees.predict(
            self._read(matrix), pred_contribs=True, strict_shape=True, iteration_range=rounds
        )
        return np.asarray(predicted, dtype=np.float64)

    def leaves(self, matrix: Array, last: int) -> Array:
        predicted = self._trees.predict(self._read(matrix), pred_leaf=True, iteration_range=(0, last))
        return np.asarray(predicted).astype(np.int64).reshape(len(matrix), -1)

    def dump(self, last: int) -> bytes:
        return self.file(last, ".ubj")

    def file(self, last: int, suffix: str) -> bytes:
        return bytes(self._take_first_rounds(last).save_raw(suffix.removeprefix(".")))

    def forest(self, last: int) -> Forest:
        return of_xgboost(self.file(last, ".json"), self.objective.start or self.objective.link, self.outputs)

    def _take_first_rounds(self, last: int) -> xgboost.Booster:
        """Return the first `last` rounds."""
        return self._trees if self._kind == "gblinear" or last == self.rounds else self._trees[:last]

    def load(self, data: bytes) -> None:
        self._leave()
        self._rows = None
        if not data:
            self._booster = None
            return
        self._booster = xgboost.Booster({"nthread": _threads})
        try:
            self._booster.load_model(bytearray(data))
        except (xgboost.core.XGBoostError, ValueError) as error:
            raise JobError(f"the weights are not a model of XGBoost: {first_line(error)}") from None
        # columns go by their position, and a file from elsewhere names them
        self._booster.feature_names = self._booster.feature_types = None

    def importances(self, last: int) -> Mapping[str, Array]:
        trees = self._take_first_rounds(last)
        return {name: self._by_column(trees, kind) for name, kind in self._measures.items()}

    @property
    def _measures(self) -> Mapping[str, str]:
        return {"gain": "weight"} if self._kind == "gblinear" else {"gain": "total_gain", "split": "weight"}

    def _by_column(self, trees: xgboost.Booster, kind: str) -> Array:
        sums = np.zeros(self.model.width)
        for name, value in trees.get_score(importance_type=kind).items():
            sums[int(name[1:])] = np.abs(value).sum()
        return sums

    def _read(
        self,
        matrix: Array,
        labels: Array | None = None,
        weights: Array | None = None,
        groups: Groups | None = None,
    ) -> xgboost.DMatrix:
        return xgboost.DMatrix(
            clip_to_float32(matrix),
            labels,
            weight=_of_groups(weights, groups),
            group=None if groups is None else groups.sizes,
            feature_types=self._kinds,
            enable_categorical=True,
            nthread=threads_for(matrix, _threads, SCORING),
        )

    @property
    def _trees(self) -> xgboost.Booster:
        if self._booster is None:
            raise JobError("the model has no trees yet")
        return self._booster


def _draws(params: Mapping[str, Any]) -> bool:
    """Return True if rounds draw random numbers: rows, pairs of them, or columns in the order of the rounds."""
    if params.get("lambdarank_pair_method") == "mean":
        return True
    shares = ("subsample", "colsample_bytree", "colsample_bylevel", "colsample_bynode")
    return any(float(params.get(name, 1.0)) < 1 for name in shares)


def _of_groups(weights: Array | None, groups: Groups | None) -> Array | None:
    """Return the weights of the rows, or of their groups, the mean of their rows."""
    if weights is None or groups is None:
        return weights
    return np.add.reduceat(weights, np.cumsum(groups.sizes) - groups.sizes) / groups.sizes
