"""HTTP server of the pages: uvicorn, in one process."""

from __future__ import annotations

import socket

import uvicorn

from edl.data.url import redacted
from edl.models.registry.model_store import ModelStore
from sqlflow_edl.cli.models.listening import is_local
from sqlflow_edl.extensions.web.app import application
from sqlflow_edl.extensions.web.guard import PageAccess
from sqlflow_edl.extensions.web.model_reader import ModelReader

MOST_CONNECTIONS = 200
GRACE = 3  # seconds for requests under way when the server ends


def server_of(
    listening: socket.socket, store: ModelStore | None, source: str, token: str | None
) -> uvicorn.Server:
    """Return the server, to be run on the socket. store: None without models. source: URL of the models."""
    access = PageAccess(token, local=is_local(listening.getsockname()[0]))
    app = application(ModelReader(store) if store is not None else None, redacted(source), access)
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        server_header=False,
        limit_concurrency=MOST_CONNECTIONS,
        timeout_graceful_shutdown=GRACE,
        ws="none",
        lifespan="off",
    )
    return uvicorn.Server(config)
