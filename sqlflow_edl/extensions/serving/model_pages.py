"""Pages of `sqlflow serve` on the server and its models: health, metrics, OpenAPI, descriptions."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from edl.errors import SemanticError
from sqlflow_edl.extensions.serving.catalog import Loaded, ModelCatalog
from sqlflow_edl.extensions.serving.guard import JSON, answer_error, error_response
from sqlflow_edl.extensions.serving.metrics import Metrics
from sqlflow_edl.extensions.serving.openapi import document
from sqlflow_edl.extensions.serving.rows import describe_expected


class ModelPages:
    """Handlers of requests that predict nothing. ending: the server is shutting down."""

    def __init__(
        self, catalog: ModelCatalog, metrics: Metrics, *, secured: bool, ending: Callable[[], bool]
    ) -> None:
        self._catalog = catalog
        self._metrics = metrics
        self._secured = secured
        self._ending = ending
        self._document: tuple[tuple[Loaded, ...], bytes] | None = None

    async def health(self, request: Request) -> Response:
        """Tell that the event loop runs."""
        return _json({"status": "ok"})

    async def ready(self, request: Request) -> Response:
        """Tell whether requests are taken."""
        if self._ending() or not self._catalog.loaded:
            return error_response(
                503, "not_ready", "the server is ending" if self._ending() else "no model is loaded"
            )
        return _json(
            {"status": "ready", "models": {k: v.version.version for k, v in self._catalog.loaded.items()}}
        )

    async def metrics_page(self, request: Request) -> Response:
        """Return the metrics for Prometheus."""
        return Response(self._metrics.page(), media_type="text/plain; version=0.0.4; charset=utf-8")

    async def openapi(self, request: Request) -> Response:
        """Return the OpenAPI document of the present models."""
        loaded = tuple(self._catalog.loaded.values())
        if self._document is None or self._document[0] != loaded:
            new_document = document(self._catalog.loaded, secured=self._secured)
            self._document = (loaded, msgspec.json.encode(new_document))
        return Response(self._document[1], media_type=JSON)

    async def models(self, request: Request) -> Response:
        """List the models."""
        return _json({"models": [self._summary(model) for _, model in sorted(self._catalog.loaded.items())]})

    async def describe(self, request: Request) -> Response:
        """Describe a model: its columns and results, its versions and the metrics of each."""
        if request.path_params["model"].endswith("/predict"):
            raise HTTPException(405, headers={"Allow": "POST"})
        try:
            loaded = self._catalog.find(request.path_params["model"])
        except SemanticError as error:
            return answer_error(404, "not_found", error)
        if loaded is None:
            return error_response(404, "not_found", "the model is not loaded")
        return _json(
            {**self._summary(loaded), **_details(loaded), "versions": self._versions(loaded.version.name)}
        )

    def _summary(self, loaded: Loaded) -> dict[str, object]:
        version, spec = loaded.version, loaded.model.archive.spec
        return {
            "name": version.name,
            "version": version.version,
            "model": version.record.model,
            "framework": version.record.framework,
            "created": version.created,
            "label": spec.label.column,
        }

    def _versions(self, name: str) -> list[dict[str, object]]:
        return [
            {
                "version": version.version,
                "current": version.current,
                "created": version.created,
                "rows": version.record.rows,
                "metrics": version.record.metrics,
            }
            for version in self._catalog.versions.get(name, ())
        ]


def _details(loaded: Loaded) -> dict[str, object]:
    """Return the columns that a model reads and predicts, and how good it is."""
    archive = loaded.model.archive
    return {
        "columns": [
            {"name": field.name, "type": str(field.type), "json": describe_expected(field.type)}
            for field in loaded.model.schema
        ],
        "predicts": [{"name": field.name, "type": str(field.type)} for field in loaded.model.results],
        "classes": list(getattr(archive.spec.label, "classes", ())),
        "metrics": archive.metrics,
        "statement": archive.lineage.statement,
    }


def _json(content: object) -> Response:
    return Response(msgspec.json.encode(content), media_type=JSON)
