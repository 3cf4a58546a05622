"""Base of the class that a module gives its predictions to."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any


class BasePredictionOutputsProcessor(ABC):
    """Receiver of predictions. A module's class `PredictionOutputsProcessor` derives from it."""

    @abstractmethod
    def process(self, predictions: Any, worker_id: int) -> None:
        """Handle the outputs of the model for some rows, tensors."""
