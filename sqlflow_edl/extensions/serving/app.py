"""Application of `sqlflow serve`: models as resources, predictions as JSON or Arrow.

`model_pages` has the pages on models, `prediction_endpoint` the predictions; here are the routes, and the watch over
the registry.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from edl.errors import SQLFlowError
from sqlflow_edl.extensions.serving.catalog import Log, ModelCatalog
from sqlflow_edl.extensions.serving.guard import RequestGuard, error_response
from sqlflow_edl.extensions.serving.model_pages import ModelPages
from sqlflow_edl.extensions.serving.prediction_endpoint import Limits, PredictionEndpoint


def application(
    catalog: ModelCatalog,
    limits: Limits,
    *,
    token: str | None = None,
    local: bool = True,
    poll: float = 5.0,
    log: Log = lambda text: None,
    ending: Callable[[], bool] = lambda: False,
) -> ASGIApp:
    """Return the application. poll: seconds between two looks at the registry. ending: the server is shutting down."""
    endpoint = PredictionEndpoint(catalog, limits, log)
    pages = ModelPages(catalog, endpoint.metrics, secured=token is not None, ending=ending)
    server = PredictionServer(catalog, endpoint, poll=poll, log=log)
    routes = [
        Route("/healthz", pages.health),
        Route("/readyz", pages.ready),
        Route("/metrics", pages.metrics_page),
        Route("/openapi.json", pages.openapi),
        Route("/v1/models", pages.models),
        Route("/v1/models/{model:path}/versions/{version:int}/predict", endpoint.predict, methods=["POST"]),
        Route("/v1/models/{model:path}/predict", endpoint.predict, methods=["POST"]),
        Route("/v1/models/{model:path}", pages.describe),
    ]
    app = Starlette(routes=routes, lifespan=server.lifespan)
    app.add_exception_handler(HTTPException, server.refuse)
    return RequestGuard(app, token, local=local)


class PredictionServer:
    """Life of the application: the watch over the registry, and the answers to unknown requests."""

    def __init__(self, catalog: ModelCatalog, endpoint: PredictionEndpoint, *, poll: float, log: Log) -> None:
        self._catalog = catalog
        self._endpoint = endpoint
        self._poll = poll
        self._log = log

    @contextlib.asynccontextmanager
    async def lifespan(self, app: Starlette) -> AsyncIterator[None]:
        """Watch the registry while the server runs."""
        watch = asyncio.create_task(self._watch())
        try:
            yield
        finally:
            watch.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await watch
            self._endpoint.close()

    async def refuse(self, request: Request, error: Exception) -> Response:
        """Answer unknown paths and methods as other errors, and count them."""
        status = error.status_code if isinstance(error, HTTPException) else 500
        code = {404: "not_found", 405: "method"}.get(status, "error")
        self._endpoint.metrics.requests.labels("", status).inc()
        routes = ", ".join(
            f"{'POST' if 'POST' in route.methods else 'GET'} {route.path.replace(':path', '').replace(':int', '')}"
            for route in request.app.routes
        )
        what = f"{request.method} {request.url.path} is not a request of this server"
        return error_response(status, code, what, hint=f"requests: {routes}")

    async def _watch(self) -> None:
        """Replace models when there are new versions."""
        loop = asyncio.get_running_loop()
        failing = ""
        while True:
            await asyncio.sleep(self._poll)
            try:
                news = await loop.run_in_executor(self._endpoint.loader, self._catalog.look)
            except SQLFlowError as error:  # the next look may succeed: another process has the database open
                if error.message != failing:
                    self._log(f"the registry cannot be read now: {error.message}")
                failing = error.message
                continue
            failing = ""
            if news is not None:
                self._catalog.take(*news)
                self._endpoint.forget_others({loaded.model for loaded in self._catalog.in_memory()})
