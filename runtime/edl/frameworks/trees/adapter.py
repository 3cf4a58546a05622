"""Adapter of boosted trees. A step is a round of boosting over all training rows.

The library keeps the training rows in a form of its own, made once, while the arrays stay the same. Weights are the
library's own file as bytes, beside the importances by matrix column:

    booster   uint8     text of LightGBM, UBJSON of XGBoost
    gain      float64   by column: the sum of the improvements of the objective by its splits
    split     float64   by column: the number of splits
    rounds    int64     of a file that was trained elsewhere: the number of rounds that predict, unless all do

To keep the weights of an epoch means to remember a number of rounds, because later rounds change no earlier tree
(DART's do; then it is a copy). The margins of validation rows are kept too, so that a round costs its own trees.
"""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from edl.arrays import Array, Features, arrays
from edl.collectives.base import Group, GroupError
from edl.errors import JobError
from edl.frameworks.adapter import Evaluated, Floats, Minibatches
from edl.frameworks.onnx.graph import Graph, Results
from edl.frameworks.trees.engine import Engine, first_line
from edl.frameworks.trees.models import Trees
from edl.frameworks.trees.objectives import mean_loss
from edl.frameworks.trees.onnx import DENSE, by_column, encode_model, results
from edl.program import Program
from edl.spec import source_columns
from edl.spec.extra_outputs import LEAVES

if TYPE_CHECKING:
    from edl.embeddings.model_tables import Cut

BOOSTER, ROUNDS = "booster", "rounds"


class TreeAdapter:
    """Adapter of one model of trees. Its library is behind `engine`."""

    def __init__(self, program: Program, model: Trees, engine: Engine, features: Features) -> None:
        self.program = program
        self.framework = program.spec.framework
        self.model = model
        self.engine = engine
        self._held: Array | None = None  # matrix from which the engine grows
        self._workers: Group | None = None  # with which it grows
        self._rate: float | None = None  # set by a callback
        self._last = 0  # rounds of the model, if fewer than those grown; else 0
        self._rates: list[float] = []  # of the rounds since the loaded trees, if they may have to be repeated
        self._parent = b""  # the loaded trees, in that case
        self._margins: dict[int, _Margins] = {}
        self._check(matrix_of(features))

    # Training ------------------------------------------------------------------------------------------------

    def train(self, rows: Minibatches, workers: Group | None = None) -> Floats:
        """Take a step, alone or with a group of `workers`. See `edl.frameworks.adapter.PartitionedAdapter`."""
        matrix = matrix_of(rows.features)
        labels = rows.labels.reshape(-1)
        weights = self._weights(labels, rows.weights)
        with self._undone_without(workers, begins=matrix is not self._held):
            self._grow_from(
                matrix, rows, workers, lambda: self.engine.begin(matrix, labels, weights, workers=workers)
            )
            loss = _mean(self.engine.mean_loss(labels, weights), len(labels), workers)
        return np.array([loss], dtype=np.float32)

    def _grow_from(
        self, matrix: Array, rows: Minibatches, workers: Group | None, begin: Callable[[], None]
    ) -> None:
        """Add a round; `begin` gives the rows to the engine, where it does not hold them."""
        try:
            if matrix is not self._held or workers is not self._workers:
                self._begin(matrix, begin)
                self._workers = workers
            self._grow(self.learning_rate(0) if rows.rates is None else float(rows.rates[0]))
        except self.engine.failures as error:
            raise JobError(f"{self.framework} cannot train: {first_line(error)}") from error

    @contextlib.contextmanager
    def _undone_without(self, workers: Group | None, *, begins: bool) -> Iterator[None]:
        """Provide a context that leaves the trees as they were if a worker is lost."""
        rounds, rates = self.engine.rounds, list(self._rates)
        # More than the last round changes.
        changes = begins or workers is not self._workers or not self.engine.additive
        before = self.engine.dump(rounds) if workers is not None and rounds and changes else None
        try:
            yield
        except GroupError:
            if before is None:
                before = self.engine.dump(rounds) if rounds else b""
            self.engine.load(before)
            self._held, self._workers, self._rates = None, None, rates
            raise

    def _begin(self, matrix: Array, begin: Callable[[], None]) -> None:
        self._check(matrix)
        again = self._rates if self.engine.replays else []
        if again:
            self._rates = []
            self._restart()
        begin()
        self._held = matrix
        for rate in again:
            self._grow(rate)

    def _restart(self) -> None:
        """Go back to the trees before the first round of this training."""
        self.engine.load(self._parent)

    def _grow(self, rate: float) -> None:
        self.engine.grow(rate)
        self._last = 0
        if self.engine.replays:
            self._rates.append(rate)

    def _weights(self, labels: Array, weights: Array | None) -> Array | None:
        """Return the rows' weights times their classes' weights."""
        if not self.model.class_weights:
            return weights
        by_class = np.asarray(self.model.class_weights, dtype=np.float32)[labels.astype(np.int64)]
        return by_class if weights is None else by_class * weights

    # Scores --------------------------------------------------------------------------------------------------

    def evaluate(self, features: Features, labels: Array, weights: Floats | None = None) -> Evaluated:
        margins = self._known_margins(matrix_of(features))
        losses = self.engine.losses(labels, self.engine.objective.predictions(margins))
        weighed = self._weights(labels.reshape(-1), weights)
        return Evaluated(self._outputs(margins), mean_loss(losses, weighed))

    def predict(self, features: Features) -> Array:
        matrix = matrix_of(features)
        self._check(matrix)
        return self._outputs(self.engine.margins(matrix, self.rounds))

    def predict_with(self, features: Features, names: Sequence[str]) -> tuple[Array, dict[str, Array]]:
        leaves = {LEAVES: self.engine.leaves(self._matrix(features), self.rounds)} if LEAVES in names else {}
        return self.predict(features), leaves

    def contributions(self, features: Features) -> Array:
        """Return TreeSHAP values of the matrix's columns and the base margin, (n, outputs, columns + 1)."""
        matrix = matrix_of(features)
        self._check(matrix)
        return self.engine.contributions(matrix, self.rounds)

    def _matrix(self, features: Features) -> Array:
        """Return the array that the trees take."""
        return matrix_of(features)

    @property
    def is_additive(self) -> bool:
        """True if later rounds leave earlier trees unchanged, so that an earlier model is a number of rounds."""
        return self.engine.additive

    @property
    def rounds(self) -> int:
        """Number of rounds of the model."""
        return self._last or self.engine.rounds

    def _outputs(self, margins: Array) -> Array:
        """Return logits of classes, or predicted numbers."""
        objective = self.engine.objective
        return margins if objective.classifies else objective.predictions(margins)

    def _known_margins(self, matrix: Array) -> Array:
        """Return margins, computed from the margins of the same rows at their last measurement, unless that was of more
        rounds.
        """
        place = id(matrix)
        before = self._margins.get(place)
        kept_margins = before.find_rows(matrix, self.rounds) if before is not None else None
        margins = self.engine.margins(matrix, self.rounds, kept_margins)
        self._margins[place] = _Margins(matrix, self.rounds, margins, lambda: self._margins.pop(place, None))
        return margins

    def _check(self, matrix: Array) -> None:
        if matrix.ndim != 2 or matrix.shape[1] != self.model.width:
            raise JobError(
                f"the features have the shape {matrix.shape}, the model takes {self.model.width} columns",
                hint="feed gives what the transform of the model's FEATURES makes",
            )

    # Weights and state ---------------------------------------------------------------------------------------

    def get_weights(self) -> dict[str, Array]:
        if not self.engine.rounds:
            return {BOOSTER: np.empty(0, dtype=np.uint8)}
        booster = np.frombuffer(self.engine.dump(self.rounds), dtype=np.uint8)
        return {BOOSTER: booster, **self.engine.importances(self.rounds)}

    def set_weights(self, weights: Mapping[str, Array]) -> None:
        if ROUNDS in weights and BOOSTER not in weights:
            self._last = int(weights[ROUNDS])
            return
        if BOOSTER not in weights:
            raise JobError(
                "the weights are not those of trees", hint="they were trained with another program"
            )
        self._parent = np.asarray(weights[BOOSTER], dtype=np.uint8).tobytes()
        self.engine.load(self._parent)
        self._held, self._last, self._rates = None, int(weights.get(ROUNDS, 0)), []
        self._margins.clear()

    def keep(self) -> dict[str, Array]:
        return {ROUNDS: np.array(self.rounds)} if self.engine.additive else self.get_weights()

    def cut(self) -> Cut:
        weights, state = self.get_weights(), self.get_state()
        return lambda: (weights, state)

    def get_state(self) -> dict[str, Array]:
        rate = np.array(np.nan if self._rate is None else self._rate)
        return {
            "rate": rate,
            "rates": np.array(self._rates, dtype=np.float64),
            "parent": np.frombuffer(self._parent if self.engine.replays else b"", dtype=np.uint8),
        }

    def set_state(self, state: Mapping[str, Array]) -> None:
        rate = float(state["rate"])
        self._rate = None if np.isnan(rate) else rate
        self._rates = state["rates"].tolist()
        self._parent = state["parent"].tobytes()

    def learning_rate(self, step: int) -> float:
        return self.engine.rate if self._rate is None else self._rate

    def set_learning_rate(self, rate: float) -> None:
        self._rate = rate

    def standalone(self) -> TreeFiles:
        return TreeFiles(self)


class TreeFiles:
    """Files of a model for export: the library's own, and ONNX."""

    def __init__(self, adapter: TreeAdapter) -> None:
        self._engine, self._rounds, self._width = adapter.engine, adapter.rounds, adapter.model.width
        self._features = by_column(() if adapter.program.edited else adapter.program.spec.features)
        self._spec = adapter.program.spec

    def of_library(self, suffix: str) -> bytes:
        return self._engine.file(self._rounds, suffix)

    def of_onnx(self) -> bytes:
        forest = self._engine.forest(self._rounds)
        return encode_model(forest, self._engine.objective.link, self._width, self._features, self._spec)

    def results(self, graph: Graph) -> Results:
        """Return the outputs and the scores of the model in a graph over the columns of the table."""
        forest = self._engine.forest(self._rounds)
        link = self._engine.objective.link
        return results(graph, forest, link, self._width, self._features, self._spec)

    @property
    def reads_columns(self) -> bool:
        """True if operators make all features from the columns of the table."""
        return bool(self._features)

    @property
    def onnx_inputs(self) -> str:
        names = dict.fromkeys(name for feature in self._features for name in source_columns(feature))
        return f"the columns {', '.join(names)}" if names else f"the matrix {DENSE}"


class _Margins:
    """Margins of the rows of one matrix, while it exists."""

    def __init__(self, matrix: Array, rounds: int, margins: Array, dropped: Any) -> None:
        self._of = weakref.ref(matrix, lambda _: dropped())
        self._rounds = rounds
        self._margins = margins

    def find_rows(self, matrix: Array, most: int) -> tuple[int, Array] | None:
        """Return the margins and their number of rounds, if they are of these rows and of `most` rounds at most."""
        is_part = self._of() is matrix and self._rounds <= most
        return (self._rounds, self._margins) if is_part else None


def matrix_of(features: Features) -> Array:
    """Return the one array that trees take. Raises JobError if there are several."""
    all_arrays = [array for _, array in arrays(features)]
    if len(all_arrays) != 1 or not isinstance(all_arrays[0], np.ndarray):
        raise JobError(
            f"feed gives {len(all_arrays)} arrays of features, and trees take one matrix",
            hint="FEATURES of trees are fc.raw, fc.codes and numbers",
        )
    return all_arrays[0]


def _mean(loss: float, rows: int, workers: Group | None) -> float:
    """Return the mean loss of the rows of all workers."""
    if workers is None:
        return loss
    losses, counts = workers.gather(np.array([loss * rows, rows])).T
    return float(losses.sum() / counts.sum())


def checked_model(program: Program, kind: type[Trees]) -> Any:
    """Return the program's model. Raises JobError if it is of another kind."""
    model = program.call("custom_model")
    if not isinstance(model, kind):
        raise JobError(
            f"custom_model in {program.file} returns a {type(model).__name__}, not an edl.trees.{kind.__name__}"
        )
    return model
