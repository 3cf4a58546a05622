"""Optimizers of both frameworks with hyper-parameters that are not their defaults, and what they make of a parameter.

A case is the optimizer's name, and after it what is special.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import torch

from edl.embeddings import Optimizer

BETAS = {"beta_1": 0.8, "beta_2": 0.95}

TORCH: dict[str, tuple[Any, dict[str, Any], dict[str, float]]] = {
    "sgd": (torch.optim.SGD, {}, {"momentum": 0.0}),
    "sgd, momentum": (torch.optim.SGD, {"momentum": 0.9}, {"momentum": 0.9, "nesterov": False}),
    "sgd, nesterov": (
        torch.optim.SGD,
        {"momentum": 0.9, "nesterov": True},
        {"momentum": 0.9, "nesterov": True},
    ),
    "sgd, l2": (torch.optim.SGD, {"weight_decay": 0.1}, {"momentum": 0.0, "weight_decay": 0.1}),
    "adam, amsgrad": (
        torch.optim.Adam,
        {"betas": (0.8, 0.95), "eps": 1e-3, "amsgrad": True},
        {**BETAS, "epsilon": 1e-3, "amsgrad": True},
    ),
    "adamw, amsgrad": (
        torch.optim.AdamW,
        {"betas": (0.8, 0.95), "eps": 1e-3, "amsgrad": True, "weight_decay": 0.2},
        {**BETAS, "epsilon": 1e-3, "amsgrad": True, "weight_decay": 0.2},
    ),
    "adagrad": (
        torch.optim.Adagrad,
        {"lr_decay": 0.1, "initial_accumulator_value": 0.2, "eps": 1e-3},
        {"lr_decay": 0.1, "initial_accumulator_value": 0.2, "epsilon": 1e-3},
    ),
    "rmsprop": (
        torch.optim.RMSprop,
        {"alpha": 0.9, "eps": 1e-3},
        {"rho": 0.9, "epsilon": 1e-3, "momentum": 0.0, "centered": False},
    ),
    "rmsprop, centered": (
        torch.optim.RMSprop,
        {"alpha": 0.9, "eps": 1e-3, "momentum": 0.5, "centered": True},
        {"rho": 0.9, "epsilon": 1e-3, "momentum": 0.5, "centered": True},
    ),
    "adadelta": (torch.optim.Adadelta, {"rho": 0.8, "eps": 1e-3}, {"rho": 0.8, "epsilon": 1e-3}),
    "adamax": (torch.optim.Adamax, {"betas": (0.8, 0.95), "eps": 1e-3}, {**BETAS, "epsilon": 1e-3}),
    "nadam": (
        torch.optim.NAdam,
        {"betas": (0.8, 0.95), "eps": 1e-3, "momentum_decay": 0.01},
        {**BETAS, "epsilon": 1e-3, "momentum_decay": 0.01},
    ),
}  # fmt: skip

KERAS: dict[str, dict[str, float | bool]] = {
    "SGD": {"momentum": 0.0},
    "SGD momentum": {"momentum": 0.9},
    "SGD nesterov": {"momentum": 0.9, "nesterov": True, "weight_decay": 0.1},
    "Adam": {**BETAS, "epsilon": 1e-3},
    "Adam amsgrad": {**BETAS, "epsilon": 1e-3, "amsgrad": True},
    "AdamW": {**BETAS, "epsilon": 1e-3, "weight_decay": 0.2},
    "Adagrad": {"initial_accumulator_value": 0.3, "epsilon": 1e-3},
    "RMSprop": {"rho": 0.8, "epsilon": 1e-3},
    "RMSprop centered": {"rho": 0.8, "epsilon": 1e-3, "momentum": 0.5, "centered": True},
    "Adadelta": {"rho": 0.8, "epsilon": 1e-3},
    "Adamax": {**BETAS, "epsilon": 1e-3},
    "Nadam": {**BETAS, "epsilon": 1e-3},
    "Ftrl": {
        "l1_regularization_strength": 0.01,
        "l2_regularization_strength": 0.1,
        "beta": 0.2,
        "l2_shrinkage_regularization_strength": 0.05,
        "initial_accumulator_value": 0.2,
    },
}


def stepped_by_torch(
    case: str, start: np.ndarray, gradients: Iterable[np.ndarray], rate: float
) -> np.ndarray:
    kind, arguments, _ = TORCH[case]
    parameter = torch.nn.Parameter(torch.from_numpy(start.copy()))
    optimizer = kind([parameter], lr=rate, **arguments)
    for gradient in gradients:
        parameter.grad = torch.from_numpy(gradient)
        optimizer.step()
    return parameter.detach().numpy()


def of_torch(case: str) -> Optimizer:
    return Optimizer("torch", case.partition(",")[0], TORCH[case][2])


def stepped_by_keras(
    case: str, start: np.ndarray, gradients: Iterable[np.ndarray], rate: float
) -> tuple[np.ndarray, Optimizer]:
    """What became of the parameter, and the optimizer by its own configuration."""
    import keras

    optimizer = getattr(keras.optimizers, case.partition(" ")[0])(rate, **KERAS[case])
    variable = keras.Variable(start)
    optimizer.build([variable])
    for gradient in gradients:
        optimizer.apply([keras.ops.convert_to_tensor(gradient)], [variable])
    config = optimizer.get_config()
    params = {k: float(v) for k, v in config.items() if isinstance(v, int | float)} | {"momentum_decay": 1.0}
    return variable.numpy(), Optimizer("keras", case.partition(" ")[0].lower(), params)
