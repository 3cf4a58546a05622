"""Script of a process: what its calls of `edl.elastic` have declared, and its session."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from edl.errors import SemanticError
from edl.extensions.elastic import connection as places
from edl.extensions.elastic import keras_optimizer, torch_optimizer
from edl.extensions.elastic.session import Declared, ElasticSession, place_of_environment
from edl.extensions.elastic.state import stateful


class ElasticScript:
    """Script that uses `edl.elastic`. Its session begins with its first dataset."""

    def __init__(self) -> None:
        self.declared = Declared()
        self._session: ElasticSession | None = None

    def session_for(self, name: str) -> ElasticSession:
        """Return the session for one more dataset. Outside of jobs, another dataset of a name begins a new session."""
        if not isinstance(name, str) or not name:
            raise SemanticError(f"name is {name!r}; expected the name of a dataset")
        if self._session is None or (self._session.has(name) and places.current_worker() is None):
            self._session = ElasticSession(self.declared)
        return self._session

    def session(self, caller: str) -> ElasticSession:
        """Return the session. Raises SemanticError if there is none."""
        if self._session is None:
            raise SemanticError(
                f"{caller} was called before edl.elastic.sampler or edl.elastic.dataset",
                hint="call that before",
            )
        return self._session

    def declare(self, model: Any, optimizer: Any, others: tuple[Any, ...]) -> None:
        """Declare the objects that all workers hold alike. Raises SemanticError for an unusable one."""
        declared = self.declared
        if declared.optimizer is optimizer:
            raise SemanticError("edl.elastic.checkpoint was called twice for an optimizer")

        def take(step: Callable[[], None]) -> bool:
            return self.session("the step of the optimizer").take(step)

        if keras_optimizer.is_keras(model):
            gradients = keras_optimizer.KerasGradients(model, optimizer)
            objects = [
                keras_optimizer.Variables(variables) for variables in (model.weights, optimizer.variables)
            ]
            keras_optimizer.hook(optimizer, gradients, take)
            declared.objects, declared.gradients = stateful(*objects, *others), gradients
        else:
            declared.objects = stateful(model, optimizer, *others)
            declared.gradients = torch_optimizer.TorchGradients(model, optimizer)
            torch_optimizer.hook(optimizer, others, take)
        declared.optimizer = optimizer

    @property
    def place(self) -> tuple[int, int]:
        """Rank and size of the group; before the first group, the worker's own."""
        return self._session.place if self._session is not None else place_of_environment()
