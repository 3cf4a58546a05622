"""Contract between the worker loop and a framework.

An adapter owns one model and its optimizer. `Adapter` is what one worker needs to train and score it; `train` is the
fast path of the local strategy: many steps in one compiled call, without Python between them. A `GradientAdapter` also
computes gradients for a strategy that decides about their use (`edl.worker.strategies.base`): with parameters of
servers (`edl.frameworks.exchange`), or of a slice of a minibatch, for a sum over a group. Trees have no gradients to
share: workers that grow them together have a `PartitionedAdapter`. Its library adds up histograms over a group.

Parameters are named by position (`3.kernel`, or PyTorch's own paths), so the same program gives the same names in
every process. Non-trainable state (BatchNorm) is part of the weights; seeds are not.

A strategy moves NumPy arrays between processes: the trainable parameters, and the buffers, which are the
non-trainable numbers that change in training (BatchNorm).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, cast

import numpy as np
import numpy.typing as npt

from edl.arrays import Array, Features, map_arrays
from edl.collectives.base import Group
from edl.embeddings.model_tables import Cut, Tables
from edl.embeddings.optimizers import Optimizer
from edl.errors import JobError, UserCodeError
from edl.frameworks.exchange import Exchange, Reduction
from edl.program import Program
from edl.program.user_model import place
from edl.spec import TREES

Floats = npt.NDArray[np.float32]


class Minibatches(NamedTuple):
    """Rows of consecutive minibatches of `size` rows; the last one may be smaller.

    `weights` are row weights, float32 (n,), with mean 1 over the training rows, or None for equal weights. A
    minibatch's loss is the sum of its rows' weighted losses over their number, so a row counts with its weight in
    any minibatch. `rates` are the learning rates of the steps, float32 (steps,), or None to leave them to the
    optimizer.
    """

    features: Features
    labels: Array
    size: int
    weights: Floats | None = None
    rates: Floats | None = None

    @property
    def steps(self) -> int:
        return -(-len(self.labels) // self.size)

    def minibatch(self, number: int) -> Minibatches:
        """Return views of one minibatch, counted from 0."""
        some = self.rows(slice(number * self.size, (number + 1) * self.size))
        return some if self.rates is None else some._replace(rates=self.rates[number : number + 1])

    def rows(self, some: slice) -> Minibatches:
        """Return views of some of the rows, without rates."""
        return Minibatches(
            map_arrays(lambda array: array[some], self.features),
            self.labels[some],
            self.size,
            None if self.weights is None else self.weights[some],
        )


class Adapter(Protocol):
    """Model that one worker trains and scores."""

    framework: str
    model: Any  # keras.Model, torch.nn.Module, or the description of a model of trees

    def train(self, rows: Minibatches) -> Floats:
        """Take an optimizer step for each minibatch, in order; return their mean losses, float32 (steps,)."""
        ...

    def evaluate(self, features: Features, labels: Array, weights: Floats | None = None) -> Evaluated:
        """Return outputs and loss of the rows in inference mode; the loss is normalized like a minibatch's."""
        ...

    def predict(self, features: Features) -> Array:
        """Return outputs of the rows in inference mode."""
        ...

    def predict_with(self, features: Features, names: Sequence[str]) -> tuple[Array, dict[str, Array]]:
        """Return outputs, and by name the extra outputs that are computed inside of the model, (n, width) each.

        Names are the names of `edl.spec.extra_outputs` that do not follow from the outputs. Raises JobError for a model
        without such an output.
        """
        ...

    def get_weights(self) -> dict[str, Array]:
        """Return copies of all parameters and non-trainable state."""
        ...

    def set_weights(self, weights: Mapping[str, Array]) -> None:
        """Load all weights. Raises JobError, without any change, if names or shapes don't match."""
        ...

    def keep(self) -> Mapping[str, Array]:
        """Return what `set_weights` needs to restore the present weights later in this training."""
        ...

    def get_state(self) -> dict[str, Array]:
        """Return copies of the training state besides the weights: optimizer slots and steps, and random generator
        states.
        """
        ...

    def cut(self) -> Cut:
        """Return a function that reads weights and state of now while the training goes on, once and in any thread.

        It raises ClusterError if the model has got other weights meanwhile.
        """
        ...

    def set_state(self, state: Mapping[str, Array]) -> None:
        """Load the training state. Raises JobError if it doesn't match this model and optimizer."""
        ...

    def learning_rate(self, step: int) -> float:
        """Return the rate of the step after `step` steps, by the optimizer's schedule."""
        ...

    def set_learning_rate(self, rate: float) -> None: ...

    def standalone(self) -> Any:
        """Return the model for export, with the rows of its tables inside. Raises JobError if that is impossible."""
        ...


class ExplainingAdapter(Adapter, Protocol):
    """Model that explains its scores itself: trees."""

    def contributions(self, features: Features) -> Array:
        """Return Shapley values of the matrix's columns and the base margin, (n, outputs, columns + 1)."""
        ...


class DifferentiableAdapter(Adapter, Protocol):
    """Network: its outputs have gradients by their inputs."""

    def input_gradients(self, features: Features, slopes_of: Callable[[Array], Array]) -> dict[str, Array]:
        """Return the gradient of a score by each array of numbers, in its shape.

        features: arrays by name; the model infers as in `predict`. slopes_of: the derivatives of the score by the
        outputs, float32 in their shape, of these outputs.
        """
        ...


class PartitionedAdapter(Adapter, Protocol):
    """Model of trees: several workers take its steps together, each with its own rows."""

    def train(self, rows: Minibatches, workers: Group | None = None) -> Floats:
        """Take a step with the `workers` of a group, of which each has its own `rows`; return the mean loss of all
        rows, float32 (1,).

        Raises GroupError, without any change of the model, if a worker is lost. None trains on these rows alone.
        """
        ...


class GradientAdapter(Adapter, Protocol):
    """Network: several workers can combine its gradients."""

    tables: Tables

    def exchange_steps(self, rows: Minibatches, exchange: Exchange, first: int = 0) -> None:
        """Compute the gradients of the minibatches in order, each with the parameters that the exchange gives, from the
        minibatch `first` until the exchange ends the loop, which it does after the last one at the latest.

        Raises the exchange's errors.
        """
        ...

    def reduce_steps(self, rows: Minibatches, reduction: Reduction) -> None:
        """Take the steps of the minibatches in order, with slices of them and the sums of all members' parts, until the
        reduction ends the loop.

        Members that have the same sums change identically. Raises the reduction's errors; only the random states have
        changed by a step that was begun then.
        """
        ...

    def get_trainable(self) -> dict[str, Floats]:
        """Return copies of the trainable parameters, without table rows."""
        ...

    def set_trainable(self, values: Mapping[str, Array]) -> None:
        """Load all trainable parameters, without checks: it is called before every step."""
        ...

    def get_buffers(self) -> dict[str, Floats]:
        """Return copies of the float or counter non-trainable weights, as float32."""
        ...

    def set_buffers(self, values: Mapping[str, Array]) -> None: ...

    def get_random(self) -> bytes:
        """Return the state of the random numbers drawn in training (dropout)."""
        ...

    def set_random(self, state: bytes) -> None:
        """Set that state. Raises JobError if it is of another model."""
        ...

    def diverge(self, seed: int) -> None:
        """Continue with a random stream of its own, different from other copies of the same state."""
        ...

    def optimizer_elsewhere(self) -> Optimizer:
        """Return the optimizer in the form that parameter servers apply. Raises JobError if they don't support it."""
        ...


class Evaluated(NamedTuple):
    outputs: Array
    loss: float


def has_gradients(adapter: Adapter) -> bool:
    """Return True if the adapter is a `GradientAdapter`."""
    return hasattr(adapter, "exchange_steps")


def keeps_rounds(adapter: Adapter) -> bool:
    """Return True if `keep` of the adapter remembers a number of rounds, since later ones change no earlier tree."""
    return bool(getattr(adapter, "is_additive", False))


def with_gradients(adapter: Adapter) -> GradientAdapter:
    """Return the adapter as one with gradients. Raises JobError for trees and solvers."""
    if not has_gradients(adapter):
        if adapter.framework not in TREES:
            raise refuse_steps()
        raise JobError(
            f"models of {adapter.framework} have no gradients to combine on parameter servers",
            hint="use the strategy allreduce, or one worker",
        )
    return cast(GradientAdapter, adapter)


def refuse_steps() -> JobError:
    return JobError("the model takes no steps: one process solves for its weights", hint="use one worker")


def check_outputs(
    labels: tuple[int | None, ...], outputs: tuple[int | None, ...], whole_labels: bool
) -> None:
    """Check that labels and outputs match row by row: equal shapes, or classes (n,) against logits (n, k > 1).

    Frameworks silently broadcast (8, 1) against (8,) to (8, 8). `whole_labels` means that labels are int64 classes.
    A size of None is not known yet. An axis of members may follow the rows, see `count_members`. Raises JobError if
    they don't match.
    """
    if outputs and None not in (labels[0], outputs[0]) and labels[0] != outputs[0]:
        raise JobError(f"the model gives {outputs[0]} rows of outputs for {labels[0]} rows")
    if count_members(len(labels), outputs, whole_labels):
        outputs = (outputs[0], outputs[2])
    if whole_labels and len(labels) == 1 and len(outputs) == 2 and outputs[1] != 1:
        return
    if not whole_labels and len(labels) == len(outputs) and labels[1:] == outputs[1:]:
        return
    expected = "(n, classes)" if whole_labels else _shape(labels)
    raise JobError(
        f"the model gives {_shape(outputs)} for labels of shape {_shape(labels)}; it must give {expected}",
        hint="labels of integers are classes; for one output, 0 and 1 are float32 of shape (n, 1)"
        if whole_labels
        else "shapes that differ would broadcast against each other in the loss",
    )


def count_members(label_rank: int, outputs: tuple[int | None, ...], whole_labels: bool) -> int:
    """Return the number of members of an ensemble with outputs (n, members, k), or 0 if there is no such axis.

    The loss of a row is then the mean of its members' losses, each computed from outputs (n, k).
    """
    of_members = len(outputs) == 3 and label_rank == (1 if whole_labels else 2)
    return (outputs[1] or 0) if of_members else 0


def check_own_outputs(program: Program, shape: tuple[int | None, ...]) -> None:
    """UserCodeError unless a user's own model gives as many outputs as the label needs.

    shape: of the outputs of the model on a few rows. Otherwise a whole epoch would pass before they are measured.
    """
    spec = program.spec
    if spec.own is None or program.edited or len(shape) != 2 or shape[1] == spec.label.outputs:
        return
    expected = f"{spec.label.column} needs (rows, {spec.label.outputs})"
    raise UserCodeError(
        f"{place(spec.own)}: {spec.own.attribute} gives outputs (rows, {shape[1]}) where the label {expected}",
        hint="a parameter outputs or out_features of the model is given that number",
    )


def check_losses(losses: tuple[int | None, ...]) -> None:
    """Raise JobError unless a loss is a scalar or has one value per row."""
    if any(size != 1 for size in losses[1:]):
        raise JobError(
            f"loss gives {_shape(losses)}; it must give one value per row or one in all",
            hint="take the mean over the other dimensions",
        )


def refuse_weights_for_scalar() -> JobError:
    return JobError("rows cannot be weighted: loss gives one value in all", hint="return one value per row")


def is_buffer(dtype: str, shape: Sequence[int]) -> bool:
    """Return True if a non-trainable weight is a buffer: floats or a counter. Integer tables don't change."""
    return np.dtype(dtype).kind == "f" or (np.dtype(dtype).kind in "iu" and not shape)


def stored_as(dtype: str, values: Array) -> Array:
    """Return float32 numbers in the dtype of a buffer; the mean of counters is rounded to a counter."""
    whole = np.dtype(dtype).kind in "iu"
    return (np.rint(values) if whole else np.asarray(values)).astype(dtype)


def pack_arrays(arrays: Iterable[Array]) -> bytes:
    """Return the numbers of the arrays, concatenated."""
    return b"".join(array.tobytes() for array in arrays)


def unpack_arrays(data: bytes, kinds: Iterable[tuple[tuple[int, ...], str]]) -> list[Array]:
    """Split packed numbers into arrays of these shapes and dtypes. Raises JobError if the sizes don't match."""
    arrays, at = [], 0
    for shape, dtype in kinds:
        size = math.prod(shape) * np.dtype(dtype).itemsize
        if at + size > len(data):
            break
        arrays.append(np.frombuffer(data[at : at + size], dtype).reshape(shape))
        at += size
    else:
        if at == len(data):
            return arrays
    raise JobError("the state of the random numbers is that of another model")


def check_fit(shapes: Mapping[str, tuple[int, ...]], weights: Mapping[str, Array]) -> None:
    """Raise JobError if the names or shapes of weights differ from the model's own."""
    problems = [
        *_list_names("lacking", shapes.keys() - weights.keys()),
        *_list_names("not of this model", weights.keys() - shapes.keys()),
        *(
            f"{name} is {tuple(weights[name].shape)} instead of {shape}"
            for name, shape in shapes.items()
            if name in weights and tuple(weights[name].shape) != tuple(shape)
        ),
    ]
    if problems:
        more = [f"{len(problems) - 3} more"] if len(problems) > 3 else []
        raise JobError(
            f"the weights do not fit the model: {'; '.join(problems[:3] + more)}",
            hint="they were trained with another program",
        )


def _list_names(what: str, names: Iterable[str]) -> list[str]:
    ordered = sorted(names)
    shown = ", ".join(ordered[:5]) + (", …" if len(ordered) > 5 else "")
    return [f"{what}: {shown}"] if ordered else []


def _shape(shape: tuple[int | None, ...]) -> str:
    """Return the shape with the rows as n: (n, 3)."""
    inner = ", ".join(["n", *("?" if size is None else str(size) for size in shape[1:])]) if shape else ""
    return f"({inner},)" if len(shape) == 1 else f"({inner})"
