"""Adapter of PyTorch: eager steps over views of one block, on the CPU or on one GPU (`edl.frameworks.torch.device`).

Overhead besides arithmetic is kept small for the sake of small models; `edl.frameworks.torch.threads` chooses the
number of threads of their operations. The table rows that a minibatch reads are leaves of its graph; their
gradients update the tables.
"""

from __future__ import annotations

import contextlib
import copy
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.utils import deterministic

from edl.arrays import Array, Features, count_rows, map_arrays, replace_lists
from edl.embeddings.model_tables import Fetched, Keys, RowGradients
from edl.embeddings.optimizers import Optimizer
from edl.errors import JobError
from edl.frameworks.adapter import (
    Adapter,
    Evaluated,
    Floats,
    Minibatches,
    check_losses,
    check_outputs,
    check_own_outputs,
    count_members,
    refuse_weights_for_scalar,
)
from edl.frameworks.base import NetworkAdapter, call_function, flatten_inputs
from edl.frameworks.device import tell
from edl.frameworks.exchange import Exchange, Reduction, Slice, StepGradients, StepStart
from edl.frameworks.solvers import Solver
from edl.frameworks.torch import device as devices
from edl.frameworks.torch import precision as precisions
from edl.frameworks.torch.device import RandomNumbers, array_of, own_tensor, transfer_to
from edl.frameworks.torch.embeddings import (
    RowBlock,
    check_elsewhere,
    gradient_of,
    row_optimizer,
    with_gradient,
    with_rows_inside,
)
from edl.frameworks.torch.gradients import GradientParts, ParameterVectors
from edl.frameworks.torch.last_layer import last_inputs
from edl.frameworks.torch.layers import BLOCKS
from edl.frameworks.torch.optimizer_step import OptimizerSteps
from edl.frameworks.torch.pieces import PIECE, ScoredPieces
from edl.frameworks.torch.precision import LossScale
from edl.frameworks.torch.threads import Threads, Turns
from edl.program import Program
from edl.spec.extra_outputs import EMBEDDING

_BATCH_NORM = nn.modules.batchnorm._BatchNorm
_threads = 1


def start(threads: int) -> None:
    global _threads
    _threads = threads
    torch.set_deterministic_debug_mode("warn")  # the other call imports the compiler
    deterministic.fill_uninitialized_memory = False  # costs a fill of every new tensor, and has no use here


def seed(value: int) -> None:
    torch.manual_seed(value)


def create(program: Program, features: Features, labels: Array | None, seed: int) -> Adapter:
    model = call_function(program, "custom_model", nn.Module, "torch.nn.Module")
    adapter = TorchAdapter(program, model, features, labels, seed)
    solver = None if labels is None else adapter.optimizer
    return solver.wrap(adapter, program) if isinstance(solver, Solver) else adapter


class TorchAdapter(NetworkAdapter):
    framework = "torch"

    def __init__(
        self, program: Program, model: nn.Module, features: Features, labels: Array | None, seed: int
    ) -> None:
        super().__init__(program, model, seed)
        self._device = devices.choose_device(program.spec.device)
        self._tensor = transfer_to(self._device)
        self._random = RandomNumbers(self._device)
        self._threads = Threads(_threads, 0)
        self._pieces: ScoredPieces | None = None
        self._normalising = [module for module in model.modules() if isinstance(module, _BATCH_NORM)]
        self.model.cpu()  # of a script, it may be elsewhere
        tensors = map_arrays(own_tensor, replace_lists(features))
        with self.tables.discover(features, tensors), self._inference():
            outputs = _one_tensor(self.model(tensors))  # creates the weights of lazy layers
        check_own_outputs(program, tuple(outputs.shape))
        self.model.to(self._device)
        precision = precisions.choose_precision(program.spec, self._device)
        self._network = precisions.network(model, precision, self._device)
        self._scale = LossScale() if precision == "float16" else None
        tell(program.spec.device, devices.describe_device(self._device), precision)
        self._threads = Threads(_threads, sum(parameter.numel() for parameter in model.parameters()))
        whole = self._device.type != "cpu" or program.edited or program.spec.own or program.spec.zoo
        # Others may not treat each row alone.
        self._pieces = None if whole else ScoredPieces(_threads)
        if labels is not None:
            check_outputs(self._wanted_shape(labels), outputs.shape, labels.dtype.kind == "i")
            kinds, title = (torch.optim.Optimizer, Solver), "torch.optim.Optimizer"
            self.optimizer = call_function(
                program, "optimizer", kinds, title, list(self._trainable().values())
            )
            if isinstance(self.optimizer, Solver):
                return
            if self.tables:
                self.tables.follow(row_optimizer(self.optimizer), self.tables.limits)
            self._steps = OptimizerSteps(self.optimizer)
            self._gradient_parts = GradientParts(model, self._device)

    def train(self, rows: Minibatches) -> Floats:
        self._threads.take(rows.size)
        self.model.train()
        losses = []
        keys = self.tables.keys(rows.features)
        with self._user_code("the training step"):
            turns = self._turns(rows)
            for number, (features, labels, weights) in enumerate(self._minibatches(rows)):
                if rows.rates is not None:
                    self.set_learning_rate(float(rows.rates[number]))
                start = number * rows.size
                block = self._block(keys, start, start + len(labels), train=True)
                if turns is not None:
                    turns.begin(len(labels))
                losses.append(self._backward(features, block, labels, weights))
                self._step(block.gradients())
                if turns is not None:
                    turns.end()
        return array_of(torch.stack(losses))

    def exchange_steps(self, rows: Minibatches, exchange: Exchange, first: int = 0) -> None:
        self._threads.take(rows.size)
        self.model.train()
        start: StepStart | None = exchange.begin(first)
        number = first
        while start is not None:
            self._vectors.assign(start.dense, adds_own=start.adds_own)
            gradients = self._exchanged_gradients(rows.minibatch(number), start.fetched)
            start = exchange.end(gradients)
            number += 1
            if start is None or not start.steps_before:
                continue
            if start.rate is not None:
                self.set_learning_rate(start.rate)
            if self._scale is None or self._scale.passes(self._present_gradients()):
                self._steps.take()

    def _exchanged_gradients(self, rows: Minibatches, fetched: Fetched) -> StepGradients:
        with self._user_code("the training step"):
            block = self._rows(fetched, True)
            loss = self._backward(
                self._tensors(rows.features), block, *self._targets(rows.labels, rows.weights)
            )
            blocks = self._blocks(block.gradients())
            self._clip()
        of_rows = {name: row_gradients.values for name, row_gradients in blocks().items()}
        vectors = self._vectors
        return StepGradients(float(loss), vectors.gradients(), of_rows, vectors.buffers(), self.get_random)

    @functools.cached_property
    def _vectors(self) -> ParameterVectors:
        return ParameterVectors(self.model, self._buffers(), self._device)

    def reduce_steps(self, rows: Minibatches, reduction: Reduction) -> None:
        piece: Slice | None = reduction.begin(0)
        while piece is not None:
            part = self._part(rows.rows(slice(piece.first, piece.last)), piece)
            rate = reduction.sum(part)
            if rate is not None:
                self.set_learning_rate(rate)
            block = self._rows(piece.fetched, False)
            loss = self._gradient_parts.set_gradients(part, block.rows)
            self._step(block.gradients())
            piece = reduction.end(loss)

    def _part(self, rows: Minibatches, piece: Slice) -> Floats:
        """Return the gradients, buffers and loss of a slice, times its share."""
        block = self._rows(piece.fetched, True)
        blocks = list(block.rows.values())
        count = len(rows.labels)
        if not count:
            return self._gradient_parts.nothing(blocks)
        self._threads.take(count)
        if not self.model.training:  # `train()` visits every module
            self.model.train()
        features, targets = self._tensors(rows.features), self._targets(rows.labels, rows.weights)
        with self._user_code("the training step"), self._gradient_parts.without_moves():
            loss = self._backward(features, block, *targets, piece.share)
            return self._gradient_parts.gather_part(loss, blocks, piece.share)

    def evaluate(self, features: Features, labels: Array, weights: Floats | None = None) -> Evaluated:
        self._threads.take(len(labels))
        block = self._block_of(features, train=False)
        with self._inference():
            outputs = self._call(self._tensors(features), block)
            targets, row_weights = self._targets(labels, weights)
            loss = self._loss(targets, outputs, row_weights)
        return Evaluated(array_of(outputs), float(loss))

    def predict(self, features: Features) -> Array:
        rows = count_rows(features)
        is_local = self.tables.source is self.tables  # servers are asked once for all rows, by one thread
        if self._pieces is not None and rows > PIECE and is_local:
            with self._inference():
                return self._pieces.map(features, rows, self._predict)
        return self._predict_whole(features)

    def _predict_whole(self, features: Features) -> Array:
        self._threads.take(count_rows(features))
        with self._inference():
            return self._predict(features)

    def _predict(self, features: Features) -> Array:
        return array_of(
            _one_tensor(self._call(self._tensors(features), self._block_of(features, train=False)))
        )

    def predict_with(self, features: Features, names: Sequence[str]) -> tuple[Array, dict[str, Array]]:
        if EMBEDDING not in names:
            return self.predict(features), {}
        with last_inputs(self.model) as inputs:  # of one forward pass
            outputs = self._predict_whole(features)
        return outputs, {
            EMBEDDING: flatten_inputs(array_of(inputs[-1].float()) if inputs else None, len(outputs))
        }

    def input_gradients(self, features: Features, slopes_of: Callable[[Array], Array]) -> dict[str, Array]:
        self._threads.take(count_rows(features))
        block = self._block_of(features, train=False)
        tensors = self._tensors(features)
        numbers = {
            name: tensor.requires_grad_() for name, tensor in tensors.items() if tensor.is_floating_point()
        }
        self.model.eval()
        with self._user_code("the model"):
            outputs = _one_tensor(self._call(tensors, block))
            slopes = self._tensor(slopes_of(array_of(outputs.detach())))
            gradients = torch.autograd.grad(outputs, list(numbers.values()), slopes, materialize_grads=True)
        return dict(zip(numbers, map(array_of, gradients), strict=True))

    def get_random(self) -> bytes:
        return self._random.pack()

    def set_random(self, state: bytes) -> None:
        self._random.unpack(state)

    def diverge(self, seed: int) -> None:
        torch.manual_seed(seed)

    def optimizer_elsewhere(self) -> Optimizer:
        check_elsewhere(self.optimizer, self.model)
        return row_optimizer(self.optimizer)

    def learning_rate(self, step: int) -> float:
        return float(self.optimizer.param_groups[0]["lr"])

    def standalone(self) -> Any:
        model = self.model if self._device.type == "cpu" else copy.deepcopy(self.model).cpu()
        return with_rows_inside(model, self.tables)

    def _optimizer_state(self) -> dict[str, Array]:
        kept = self.optimizer.state_dict()
        slots = {
            f"slot.{position}.{name}": array_of(torch.as_tensor(value)).copy()
            for position, values in kept["state"].items()
            for name, value in values.items()
        }
        rates = {f"rate.{number}": np.array(group["lr"]) for number, group in enumerate(kept["param_groups"])}
        scale = {} if self._scale is None else self._scale.get_state()
        return {**slots, **rates, **self._random.state(), **scale}

    def set_state(self, state: Mapping[str, Array]) -> None:
        kept = self.optimizer.state_dict()
        slots: dict[int, dict[str, torch.Tensor]] = {}
        for name, value in state.items():
            kind, _, rest = name.partition(".")
            if kind == "slot":
                position, _, slot = rest.partition(".")
                slots.setdefault(int(position), {})[slot] = torch.from_numpy(np.array(value))
            elif kind == "rate":
                kept["param_groups"][int(rest)]["lr"] = float(value)
        try:
            self.optimizer.load_state_dict({**kept, "state": slots})
        except (KeyError, ValueError) as error:
            raise JobError(f"the optimizer's state does not fit: {error}") from None
        self.tables.set_state(state)
        self._random.set_state(state)
        if self._scale is not None:
            self._scale.set_state(state)

    def set_learning_rate(self, rate: float) -> None:
        for group in self.optimizer.param_groups:
            group["lr"] = rate

    def _turns(self, rows: Minibatches) -> Turns | None:
        """Return the chooser of each step's threads; None off the CPU, or if a trial step could change the model."""
        spec = self._program.spec
        if self._device.type != "cpu":
            return None
        mine = not self._program.edited and spec.own is None and not self.tables
        if not mine or len(rows.labels) < rows.size or not self._threads.may_vary(rows.size):
            return None
        return self._threads.turns(rows.size, lambda: self._try_gradients(*next(self._minibatches(rows))))

    def _try_gradients(
        self, features: Any, labels: torch.Tensor, weights: torch.Tensor | None
    ) -> list[torch.Tensor]:
        """Return the gradients of a minibatch as in a step, and restore all state."""
        buffers, random = [buffer.clone() for buffer in self.model.buffers()], torch.get_rng_state()
        self._backward(features, _NO_ROWS, labels, weights)
        self._clip()
        torch.set_rng_state(random)
        for buffer, before in zip(self.model.buffers(), buffers, strict=True):
            buffer.copy_(before)
        return self._present_gradients()

    def _variables(self) -> Mapping[str, torch.Tensor]:
        state: Mapping[str, torch.Tensor] = self.model.state_dict(keep_vars=True)
        return state

    def _trainable(self) -> dict[str, nn.Parameter]:
        return {
            name: parameter for name, parameter in self.model.named_parameters() if parameter.requires_grad
        }

    def _array(self, variable: torch.Tensor) -> Array:
        return array_of(variable)

    def _assign(self, variable: torch.Tensor, values: Array) -> None:
        if variable.is_cpu:
            np.copyto(self._array(variable), values, casting="unsafe")
        else:
            variable.detach().copy_(torch.from_numpy(np.array(values)))

    def _tensors(self, features: Features) -> Any:
        return map_arrays(self._tensor, replace_lists(features))

    def _targets(self, labels: Array, weights: Array | None) -> tuple[torch.Tensor, torch.Tensor | None]:
        return self._tensor(labels), None if weights is None else self._tensor(weights)

    def _minibatches(self, rows: Minibatches) -> Iterator[tuple[Any, torch.Tensor, torch.Tensor | None]]:
        """Yield views of the rows, `size` at a time."""
        labels = self._tensor(rows.labels).split(rows.size)
        weights = (
            [None] * len(labels) if rows.weights is None else self._tensor(rows.weights).split(rows.size)
        )
        features = map_arrays(
            lambda array: iter(self._tensor(array).split(rows.size)), replace_lists(rows.features)
        )
        for label, weight in zip(labels, weights, strict=True):
            yield map_arrays(next, features), label, weight

    def _rows(self, fetched: Fetched, train: bool) -> RowBlock:
        return RowBlock(fetched, train, self._tensor)

    def _block_of(self, features: Features, *, train: bool) -> RowBlock:
        return self._rows(self._fetch_rows(features, train=train), train) if self.tables else _NO_ROWS

    def _block(self, keys: Keys, start: int, end: int, *, train: bool) -> RowBlock:
        if not self.tables:
            return _NO_ROWS
        return self._rows(self.tables.fetch(self.tables.need(keys, start, end), train=train), train)

    def _call(self, features: Any, block: RowBlock) -> Any:
        if not self.tables:
            return self._network(features)
        with self.tables.bound(features, block.rows, block.places):
            return self._network(features)

    def _step(self, gradients: Mapping[str, RowGradients]) -> None:
        """Update parameters by their gradients, and rows by these, which a clipping optimizer clips too."""
        if self._scale is not None:
            of_rows = [row_gradients.values for row_gradients in gradients.values()]
            if not self._scale.passes([*self._present_gradients(), *of_rows]):
                return
        if not self.tables:
            self._steps.take()
            return
        rate = float(self.optimizer.param_groups[0]["lr"])
        blocks = self._blocks(gradients)
        self._steps.take()
        self.tables.update(blocks(), rate)

    def _blocks(self, gradients: Mapping[str, RowGradients]) -> Callable[[], dict[str, RowGradients]]:
        """Expose these gradients to step hooks; return a function that returns them as the hooks left them."""
        blocks = {name: with_gradient(row_gradients.values) for name, row_gradients in gradients.items()}
        setattr(self.optimizer, BLOCKS, list(blocks.values()))
        return lambda: {
            name: RowGradients(row_gradients.ids, gradient_of(blocks[name].grad))
            for name, row_gradients in gradients.items()
        }

    def _clip(self) -> None:
        """Apply to the gradients what precedes each step: `edl.torch.clipped`, or a user's hooks."""
        for hook in self.optimizer._optimizer_step_pre_hooks.values():
            hook(self.optimizer, (), {})

    def _backward(
        self,
        features: Any,
        block: RowBlock,
        labels: torch.Tensor,
        weights: torch.Tensor | None,
        share: float | None = None,
    ) -> torch.Tensor:
        """Set the gradients of one minibatch, times `share`; return its mean loss as a tensor."""
        for group in self.optimizer.param_groups:
            for parameter in group["params"]:
                parameter.grad = None
        with self._one_row_normalised() if len(labels) == 1 else _NOTHING:
            loss = self._loss(labels, self._call(features, block), weights)
        if self._scale is not None:
            self._scale.backward(loss, 1.0 if share is None else share)
            rows = [row.grad for row in block.rows.values() if row.grad is not None]
            self._scale.unscale([*self._present_gradients(), *rows])
        else:
            loss.backward(None if share is None else torch.full_like(loss, share))
        return loss.detach()

    def _present_gradients(self) -> list[torch.Tensor]:
        return [parameter.grad for parameter in self._trainable().values() if parameter.grad is not None]

    def _loss(
        self, labels: torch.Tensor, outputs: torch.Tensor, weights: torch.Tensor | None
    ) -> torch.Tensor:
        whole = not labels.is_floating_point()
        check_outputs(self._wanted_shape(labels), outputs.shape, whole)
        members = count_members(labels.ndim, outputs.shape, whole)
        if members:
            labels, outputs = labels.repeat_interleave(members, dim=0), outputs.flatten(0, 1)
        losses: torch.Tensor = self._program.functions["loss"](labels, outputs)
        if losses.ndim:
            check_losses(losses.shape)
            losses = losses.reshape(-1, members).mean(dim=1) if members else losses
        if weights is None:
            return losses.mean() if losses.ndim else losses
        if not losses.ndim:
            raise refuse_weights_for_scalar()
        return (losses.reshape(-1) @ weights) / len(weights)

    def _wanted_shape(self, labels: Array | torch.Tensor) -> tuple[int | None, ...]:
        """Return the shape of the outputs that the labels need; labels of forecasts hold more than what is forecast."""
        label = self._program.spec.label
        return (len(labels), label.outputs) if label.is_forecast else tuple(labels.shape)

    @contextlib.contextmanager
    def _one_row_normalised(self) -> Iterator[None]:
        """Return a context for a last minibatch of one row: BatchNorm has no deviation of one row, so it normalizes
        as in prediction.
        """
        for module in self._normalising:
            module.eval()
        try:
            yield
        finally:
            for module in self._normalising:
                module.train()

    @contextlib.contextmanager
    def _inference(self) -> Iterator[None]:
        self.model.eval()
        with self._user_code("the model"), torch.no_grad():
            yield


_NO_ROWS = RowBlock(Fetched({}, {}, []), train=False)
_NOTHING = contextlib.nullcontext()


def _one_tensor(outputs: object) -> torch.Tensor:
    if not isinstance(outputs, torch.Tensor):
        raise JobError(f"the model gives a {type(outputs).__name__}; edl trains models that give one tensor")
    return outputs
