"""Ensemble as one ONNX graph over the raw columns: the weighted mean of its members' scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from edl.frameworks.onnx.columns import own_metadata
from edl.frameworks.onnx.graph import Graph, GraphValue, Results, apply_temperature, logits_of, of_columns
from edl.spec import JobSpec


class EnsemblePart(Protocol):
    """Model that writes itself into a graph."""

    def results(self, graph: Graph) -> Results:
        """Return the outputs and the scores; numbers have no scores."""
        ...


@dataclass(frozen=True)
class EnsembleFile:
    """Ensemble for export: its models and their shares, which add up to 1."""

    spec: JobSpec
    parts: Sequence[tuple[float, EnsemblePart]]

    def of_onnx(self) -> bytes:
        """Return the file. Raises JobError if the package onnx is missing."""
        spec = self.spec
        return of_columns(spec.columns, spec.label.outputs, self._results, metadata=own_metadata(spec))

    @property
    def onnx_inputs(self) -> str:
        return f"the columns {', '.join(self.spec.columns)}"

    def _results(self, graph: Graph) -> Results:
        total: GraphValue | None = None
        for share, part in self.parts:
            outputs, scores = part.results(graph)
            added = (outputs if scores is None else scores) * share
            total = added if total is None else total + added
        if total is None:
            raise ValueError("an ensemble without models")
        if not self.spec.label.has_classes:
            return total, None
        return logits_of(graph, total, self.spec.label.is_binary), apply_temperature(
            graph, total, self.spec.temperature
        )
