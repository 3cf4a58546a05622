"""Compiled optimizer updates of rows, one kernel per formula; `edl.embeddings.optimizers` maps optimizers to kernels.

`data` is float32 (rows, dim x (1 + slots)), each row followed by its slots. `numbers` has distinct row numbers,
int64 (n,). `gradients` is float32 (n, dim). `c` has the constants of this step, float32, in the order that the rule of
the optimizer gives. Arithmetic is float32, in the same order of operations as the framework's.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from edl.embeddings.numba_cache import jit

Array = Any
_TWO = np.float32(2)


@jit
def decay(data: Array, dim: int, numbers: Array, factor: Any) -> None:
    """Shrink the rows before the step, as decoupled weight decay does."""
    for i in range(len(numbers)):
        for j in range(dim):
            data[numbers[i], j] *= factor


@jit
def penalty(data: Array, dim: int, numbers: Array, gradients: Array, strength: Any) -> None:
    """Add the gradient of the L2 penalty."""
    for i in range(len(numbers)):
        for j in range(dim):
            gradients[i, j] += strength * data[numbers[i], j]


@jit
def sgd(data: Array, dim: int, numbers: Array, gradients: Array, c: Array) -> None:
    rate = c[0]
    for i in range(len(numbers)):
        for j in range(dim):
            data[numbers[i], j] -= rate * gradients[i, j]


@jit
def momentum(data: Array, dim: int, numbers: Array, gradients: Array, c: Array) -> None:
    """Apply SGD with momentum. Slot: velocity. c: factor of the gradient in the velocity and in the step, momentum,
    the velocity's sign and rate.

    Keras keeps the rate inside the velocity, v = momentum v - rate g; PyTorch outside, v = momentum v + g.
    """
    inside, share, outside, direct = c[0], c[1], c[2], c[3]
    for i in range(len(numbers)):
        row = data[numbers[i]]
        for j in range(dim):
            velocity = share * row[dim + j] + inside * gradients[i, j]
            row[dim + j] = velocity
            row[j] += outside * velocity + direct * gradients[i, j]


@jit
def adam(data: Array, dim: int, numbers: Array, gradients: Array, c: Array) -> None:
    """Apply Adam. Slots: first and second moment. c: rate with both corrections, 1 - beta_1, 1 - beta_2, epsilon."""
    rate, first, second, epsilon = c[0], c[1], c[2], c[3]
    for i in range(len(numbers)):
        row = data[numbers[i]]
        for j in range(dim):
            g = gradients[i, j]
            m = row[dim + j] + (g - row[dim + j]) * first
            v = row[2 * dim + j] + (g * g - row[2 * dim + j]) * second
            row[dim + j] = m
            row[2 * dim + j] = v
            row[j] -= rate * m / (np.sqrt(v) + epsilon)


@jit
def amsgrad(data: Array, dim: int, numbers: Array, gradients: Array, c: Array) -> None:
    """Apply Adam with the largest second moment so far as the third slot."""
    rate, first, second, epsilon = c[0], c[1], c[2], c[3]
    for i in range(len(numbers)):
        row = data[numbers[i]]
        for j in range(dim):
            g = gradients[i, j]
            m = row[dim + j] + (g - row[dim + j]) * first
            v = row[2 * dim + j] + (g * g - row[2 * dim + j]) * second
            largest = max(row[3 * dim + j], v)
            row[dim + j] = m
            row[2 * dim + j] = v
            row[3 * dim + j] = largest
            row[j] -= rate * m / (np.sqrt(largest) + epsilon)


@jit
def adagrad(data: Array, dim: int, numbers: Array, gradients: Array, c: Array) -> None:
    """Apply Adagrad. Slot: sum of squares. c: rate, epsilon under the root (Keras), epsilon beside it (PyTorch)."""
    rate, under, beside = c[0], c[1], c[2]
    for i in range(len(numbers)):
        row = data[numbers[i]]
        for j in range(dim):
            g = gradients[i, j]
            squares = row[dim + j] + g * g
            row[dim + j] = squares
            row[j] -= rate * g / (np.sqrt(squares + under) + beside)


@jit
def rmsprop(data: Array, dim: int, numbers: Array, gradients: Array, c: Array) -> None:
    """Apply RMSprop. Slot: mean of squares. c: rate, rho, 1 - rho, epsilon under the root (Keras), beside it
    (PyTorch).
    """
    rate, rho, rest, under, beside = c[0], c[1], c[2], c[3], c[4]
    for i in range(len(numbers)):
        row = data[numbers[i]]
        for j in range(dim):
            g = gradients[i, j]
            squares = rho * row[dim + j] + rest * g * g
            row[dim + j] = squares
            row[j] -= rate * g / (np.sqrt(squares + under) + beside)


@jit
def rmsprop_moving(data: Array, dim: int, numbers: Array, gradients: Array, c: Array) -> None:
    """Apply RMSprop with momentum, centered, or both. Slots: mean of squares, mean, velocity.

    c: rate in the velocity (Keras) and outside of it (PyTorch), rho, 1 - rho, momentum, centered (1 or 0), epsilon
    under the root (Keras), epsilon beside it (PyTorch).
    """
    inside, outside, rho, rest, share, centered = c[0], c[1], c[2], c[3], c[4], c[5]
    under, beside = c[6], c[7]
    for i in range(len(numbers)):
        row = data[numbers[i]]
        for j in range(dim):
            g = gradients[i, j]
            squares = rho * row[dim + j] + rest * g * g
            mean = rho * row[2 * dim + j] + rest * g
            spread = squares - centered * mean * mean
            velocity = share * row[3 * dim + j] + inside * g / (np.sqrt(spread + under) + beside)
            row[dim + j] = squares
            row[2 * dim + j] = mean
            row[3 * dim + j] = velocity
            row[j] -= outside * velocity


@jit
def adadelta(data: Array, dim: int, numbers: Array, gradients: Array, c: Array) -> None:
    """Apply Adadelta. Slots: mean of squared gradients, mean of squared steps. c: rate, rho, 1 - rho, epsilon."""
    rate, rho, rest, epsilon = c[0], c[1], c[2], c[3]
    for i in range(len(numbers)):
        row = data[numbers[i]]
        for j in range(dim):
            g = gradients[i, j]
            squares = rho * row[dim + j] + rest * g * g
            step = np.sqrt(row[2 * dim + j] + epsilon) / np.sqrt(squares + epsilon) * g
            row[dim + j] = squares
            row[2 * dim + j] = rho * row[2 * dim + j] + rest * step * step
            row[j] -= rate * step


@jit
def adamax(data: Array, dim: int, numbers: Array, gradients: Array, c: Array) -> None:
    """Apply Adamax. Slots: first moment, largest gradient.

    c: corrected rate, 1 - beta_1, beta_2, epsilon in the step (Keras), in the maximum (PyTorch).
    """
    rate, first, fade, beside, within = c[0], c[1], c[2], c[3], c[4]
    for i in range(len(numbers)):
        row = data[numbers[i]]
        for j in range(dim):
            g = gradients[i, j]
            m = row[dim + j] + (g - row[dim + j]) * first
            largest = max(fade * row[2 * dim + j], abs(g) + within)
            row[dim + j] = m
            row[2 * dim + j] = largest
            row[j] -= rate * m / (largest + beside)


@jit
def nadam(data: Array, dim: int, numbers: Array, gradients: Array, c: Array) -> None:
    """Apply Nadam. Slots: first and second moment.

    c: rates of the moment and of the gradient, 1 - beta_1, 1 - beta_2, correction of the second moment, epsilon.
    """
    ahead, now, first, second, correction, epsilon = c[0], c[1], c[2], c[3], c[4], c[5]
    for i in range(len(numbers)):
        row = data[numbers[i]]
        for j in range(dim):
            g = gradients[i, j]
            m = row[dim + j] + (g - row[dim + j]) * first
            v = row[2 * dim + j] + (g * g - row[2 * dim + j]) * second
            row[dim + j] = m
            row[2 * dim + j] = v
            row[j] -= (ahead * m + now * g) / (np.sqrt(v / correction) + epsilon)


@jit
def ftrl(data: Array, dim: int, numbers: Array, gradients: Array, c: Array) -> None:
    """Apply FTRL. Slots: sum of squares, linear term. c: rate, power, L1, L2 with beta's share, L2 shrinkage."""
    rate, power, l1, l2, shrinkage = c[0], c[1], c[2], c[3], c[4]
    for i in range(len(numbers)):
        row = data[numbers[i]]
        for j in range(dim):
            g = gradients[i, j]
            squares = row[dim + j] + g * g
            raised = squares**-power
            linear = row[2 * dim + j] + g + _TWO * shrinkage * row[j]
            linear -= (raised - row[dim + j] ** -power) / rate * row[j]
            row[dim + j] = squares
            row[2 * dim + j] = linear
            row[j] = (min(max(linear, -l1), l1) - linear) / (raised / rate + _TWO * l2)
