"""Training processes that the sessions of all tests share: each one imports a framework, which takes seconds.

A process runs the jobs of several sessions as it runs those of one: one after another.
"""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from edl.run.training_client import TrainingProcess

OF_ONE_TEST = ("PYTEST_CURRENT_TEST", "XDG_CONFIG_HOME", "XDG_STATE_HOME")  # variables that no job reads
MOST_IDLE = 4  # as each takes memory

start, close = TrainingProcess.start, TrainingProcess.close


@contextmanager
def shared() -> Iterator[None]:
    """Keep the processes that sessions close for later sessions of the same folder and environment."""
    surroundings: dict[TrainingProcess, Hashable] = {}
    idle: list[TrainingProcess] = []

    def take(framework: str, threads: int | None = None) -> TrainingProcess:
        wanted = _surroundings(framework, threads)
        for process in idle:
            if surroundings[process] == wanted and process.alive:
                idle.remove(process)
                return process
        process = start(framework, threads)
        surroundings[process] = wanted
        return process

    def give_back(process: TrainingProcess) -> None:
        if not process.alive or process not in surroundings:
            surroundings.pop(process, None)
            close(process)
        elif process not in idle:
            idle.append(process)
        if len(idle) > MOST_IDLE:
            give_up(idle.pop(0))

    def give_up(process: TrainingProcess) -> None:
        del surroundings[process]
        close(process)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TrainingProcess, "start", take)
        patch.setattr(TrainingProcess, "close", give_back)
        yield
    for process in idle:
        close(process)


def _surroundings(framework: str, threads: int | None) -> Hashable:
    environment = {name: value for name, value in os.environ.items() if name not in OF_ONE_TEST}
    return framework, threads, Path.cwd(), tuple(sorted(environment.items()))
