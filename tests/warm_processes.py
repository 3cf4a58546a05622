"""Training processes that the sessions of all tests share: each one imports a framework, which takes seconds.

A process runs the jobs of several sessions as it runs those of one: one after another.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from edl.frameworks import ENVIRONMENT
from edl.program.user_model import PATH_VARIABLE
from edl.run.training_client import TrainingProcess

# Variables that no job reads, and those that each process sets for itself.
IGNORED = {"PYTEST_CURRENT_TEST", "XDG_CONFIG_HOME", "XDG_STATE_HOME", *ENVIRONMENT}
MOST_IDLE = 6  # as each takes memory

start, close = TrainingProcess.start, TrainingProcess.close


@contextmanager
def shared(models: Path) -> Iterator[None]:
    """Keep the processes that sessions close for later sessions of the same folder and environment.

    Those of sessions that name no folder of models find those of `models`, which others name.
    """
    surroundings: dict[TrainingProcess, Hashable] = {}
    idle: list[TrainingProcess] = []
    lock = threading.Lock()

    def take(framework: str, threads: int | None = None) -> TrainingProcess:
        # One at a time: trials of a search run side by side.
        with lock, pytest.MonkeyPatch.context() as patch:
            if not os.environ.get(PATH_VARIABLE):
                patch.setenv(PATH_VARIABLE, str(models))
            wanted = _surroundings(framework, threads)
            for process in idle:
                if surroundings[process] == wanted and process.is_alive:
                    idle.remove(process)
                    return process
            process = start(framework, threads)
            surroundings[process] = wanted
            return process

    def give_back(process: TrainingProcess) -> None:
        ended = [process]
        if process.is_alive and process in surroundings:
            with lock:
                if process not in idle:
                    idle.append(process)
                ended = [idle.pop(0)] if len(idle) > MOST_IDLE else []
        for each in ended:
            surroundings.pop(each, None)
            close(each)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TrainingProcess, "start", take)
        patch.setattr(TrainingProcess, "close", give_back)
        yield
    for process in idle:
        close(process)


def _surroundings(framework: str, threads: int | None) -> Hashable:
    environment = {name: value for name, value in os.environ.items() if name not in IGNORED}
    return framework, threads, Path.cwd(), tuple(sorted(environment.items()))
