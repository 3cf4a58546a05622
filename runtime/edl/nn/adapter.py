"""The contract between the worker loop and a framework.

An adapter owns one model and its optimizer. It knows how to compute losses and gradients of a minibatch and how to
get and set parameters by name; what happens with gradients is a strategy's business (`edl.worker.strategy`). `train`
is the local strategy's fast path: many steps in one call, compiled, without a word to Python between them.

Parameters are named by position (`3.kernel`, or PyTorch's own paths), so that the same program gives the same names
in every process. Non-trainable state (BatchNorm) counts among the weights; seeds do not.

What a strategy moves between processes, as NumPy arrays by name: the trainable parameters, and the buffers, which are
the non-trainable numbers that move while a model is trained (BatchNorm). `gradients` may be handed the rows that it
needs.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from edl.errors import JobError
from edl.nn.rows.rules import Optimizer
from edl.nn.rows.tables import Fetched, Tables
from edl.nn.structure import Array, Features, map_arrays

Floats = npt.NDArray[np.float32]


class Minibatches(NamedTuple):
    """Rows to step over, `size` at a time; the last minibatch may be smaller.

    weights: how much each row counts, float32 (n,), of mean 1 over the training rows; None counts each once. A
    minibatch's loss is the sum of its rows' weighted losses over their number, so that a row pulls with its weight
    whatever rows it shares a minibatch with. rates: the learning rate of each step, float32 (steps,); None leaves it.
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
        """One of them, counted from 0, without a copy."""
        some = self.rows(slice(number * self.size, (number + 1) * self.size))
        return some if self.rates is None else some._replace(rates=self.rates[number : number + 1])

    def rows(self, some: slice) -> Minibatches:
        """Some of the rows, without a copy, and without rates."""
        return Minibatches(
            map_arrays(lambda array: array[some], self.features),
            self.labels[some],
            self.size,
            None if self.weights is None else self.weights[some],
        )


class Adapter(Protocol):
    framework: str
    model: Any  # keras.Model or torch.nn.Module
    tables: Tables

    def train(self, rows: Minibatches) -> Floats:
        """Take an optimizer step for each minibatch, in order; their mean losses, float32 (steps,)."""
        ...

    def gradients(
        self,
        features: Features,
        labels: Array,
        weights: Floats | None = None,
        fetched: Fetched | None = None,
    ) -> Gradients:
        """Loss and gradients of one minibatch, clipped as the optimizer clips them; nothing but buffers moves.

        fetched: its rows; None gets them from the tables' source.
        """
        ...

    def apply(self, gradients: Mapping[str, Any]) -> None:
        """One optimizer step with gradients by parameter name, as `gradients` gives them or as NumPy arrays."""
        ...

    def share(self, rows: Minibatches, fetched: Fetched, share: float) -> Share:
        """What rows add to the step of a minibatch, of which they are `share`; nothing moves but random numbers.

        rows: may be none. fetched: the rows of tables that the whole minibatch reads, with the places of these rows.
        """
        ...

    def take_step(self, total: Share, fetched: Fetched, rate: float | None) -> float:
        """An optimizer step with the sum of a minibatch's shares, in the memory of the own one; its mean loss.

        Members who take it with the same sum move alike. rate: of the step; None leaves it.
        """
        ...

    def evaluate(self, features: Features, labels: Array, weights: Floats | None = None) -> Evaluated:
        """Outputs and loss of the rows, in inference mode; the loss as that of a minibatch."""
        ...

    def predict(self, features: Features) -> Array:
        """Outputs of the rows, in inference mode."""
        ...

    def get_weights(self) -> dict[str, Array]:
        """Copies of all parameters and non-trainable state."""
        ...

    def set_weights(self, weights: Mapping[str, Array]) -> None:
        """Take over all weights; JobError, and nothing changed, when names or shapes are not this model's."""
        ...

    def get_state(self) -> dict[str, Array]:
        """Copies of what training needs besides the weights: the optimizer's slots and steps, and random numbers."""
        ...

    def set_state(self, state: Mapping[str, Array]) -> None:
        """Go on as if the state had never left; JobError when it is not this model's and optimizer's."""
        ...

    def get_trainable(self) -> dict[str, Floats]:
        """Copies of the trainable parameters; their rows of tables are none."""
        ...

    def set_trainable(self, values: Mapping[str, Array]) -> None:
        """Take over all trainable parameters, of the right shapes, before every step: fast."""
        ...

    def get_buffers(self) -> dict[str, Floats]:
        """Copies of the non-trainable weights that are floats, or counters, as float32."""
        ...

    def set_buffers(self, values: Mapping[str, Array]) -> None: ...

    def get_random(self) -> bytes:
        """The state of the random numbers that training draws (dropout)."""
        ...

    def set_random(self, state: bytes) -> None:
        """JobError: it is of another model."""
        ...

    def diverge(self, seed: int) -> None:
        """Draw other random numbers than whoever has the same state, from now on."""
        ...

    def optimizer_elsewhere(self) -> Optimizer:
        """The optimizer, as a parameter server moves parameters and rows by it. JobError: servers cannot follow it."""
        ...

    def learning_rate(self, step: int) -> float:
        """Of the step that follows `step` others, by the optimizer's own schedule."""
        ...

    def set_learning_rate(self, rate: float) -> None: ...

    def standalone(self) -> Any:
        """The model with the rows of its tables in it, as it is exported. JobError: they cannot be in it."""
        ...


class Gradients(NamedTuple):
    """Of one minibatch: its mean loss and a gradient for each trainable parameter, in the framework's own tensors."""

    loss: float
    values: Mapping[str, Any]


class Share(NamedTuple):
    """A share of a step. numbers: float32 (n,), to be added up with the others' and written to: gradients, not clipped,
    buffers and the loss, each times the share. held: what the numbers are the memory of, in the framework.
    """

    numbers: Floats
    held: Any = None


class Evaluated(NamedTuple):
    outputs: Array
    loss: float


def check_outputs(
    labels: tuple[int | None, ...], outputs: tuple[int | None, ...], whole_labels: bool
) -> None:
    """JobError unless labels and outputs stand row by row: equal shapes, or classes (n,) against logits (n, k > 1).

    Frameworks broadcast (8, 1) against (8,) to (8, 8) in silence. whole_labels: labels are int64, classes. None: a
    size that is not known yet.
    """
    if outputs and None not in (labels[0], outputs[0]) and labels[0] != outputs[0]:
        raise JobError(f"the model gives {outputs[0]} rows of outputs for {labels[0]} rows")
    if whole_labels and len(labels) == 1 and len(outputs) == 2 and outputs[1] != 1:
        return
    if not whole_labels and len(labels) == len(outputs) and labels[1:] == outputs[1:]:
        return
    wanted = "(n, classes)" if whole_labels else _shape(labels)
    raise JobError(
        f"the model gives {_shape(outputs)} for labels of shape {_shape(labels)}; it must give {wanted}",
        hint="labels of integers are classes; for one output, 0 and 1 are float32 of shape (n, 1)"
        if whole_labels
        else "shapes that differ would broadcast against each other in the loss",
    )


def check_losses(losses: tuple[int | None, ...]) -> None:
    """JobError unless a loss is a scalar or one value per row."""
    if any(size != 1 for size in losses[1:]):
        raise JobError(
            f"loss gives {_shape(losses)}; it must give one value per row or one in all",
            hint="take the mean over the other dimensions",
        )


def refuse_weights_for_scalar() -> JobError:
    return JobError("rows cannot be weighted: loss gives one value in all", hint="return one value per row")


def is_buffer(dtype: str, shape: Sequence[int]) -> bool:
    """Whether a non-trainable weight is a buffer: floats, and counters; tables of integers do not move."""
    return np.dtype(dtype).kind == "f" or (np.dtype(dtype).kind in "iu" and not shape)


def stored_as(dtype: str, values: Array) -> Array:
    """float32 numbers as a buffer has them; the mean of counters is a counter."""
    whole = np.dtype(dtype).kind in "iu"
    return (np.rint(values) if whole else np.asarray(values)).astype(dtype)


def packed(arrays: Iterable[Array]) -> bytes:
    """The numbers of arrays, one behind another."""
    return b"".join(array.tobytes() for array in arrays)


def unpacked(data: bytes, kinds: Iterable[tuple[tuple[int, ...], str]]) -> list[Array]:
    """The arrays of these shapes and dtypes that were packed. JobError: they were others."""
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


def check_fit(own: Mapping[str, tuple[int, ...]], given: Mapping[str, Array]) -> None:
    """JobError when the names or shapes of weights differ from the model's own."""
    problems = [
        *_listed("lacking", own.keys() - given.keys()),
        *_listed("not of this model", given.keys() - own.keys()),
        *(
            f"{name} is {tuple(given[name].shape)} instead of {shape}"
            for name, shape in own.items()
            if name in given and tuple(given[name].shape) != tuple(shape)
        ),
    ]
    if problems:
        more = [f"{len(problems) - 3} more"] if len(problems) > 3 else []
        raise JobError(
            f"the weights do not fit the model: {'; '.join(problems[:3] + more)}",
            hint="they were trained with another program",
        )


def _listed(what: str, names: Iterable[str]) -> list[str]:
    ordered = sorted(names)
    shown = ", ".join(ordered[:5]) + (", …" if len(ordered) > 5 else "")
    return [f"{what}: {shown}"] if ordered else []


def _shape(shape: tuple[int | None, ...]) -> str:
    """The shape with the rows as n: (n, 3)."""
    inner = ", ".join(["n", *("?" if size is None else str(size) for size in shape[1:])]) if shape else ""
    return f"({inner},)" if len(shape) == 1 else f"({inner})"
