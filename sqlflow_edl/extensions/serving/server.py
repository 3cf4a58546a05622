"""HTTP server of one process: uvicorn, on a socket that is opened before the models are loaded."""

from __future__ import annotations

import errno
import socket

import uvicorn

from edl.errors import SQLFlowError
from sqlflow_edl.cli.models.listening import is_local
from sqlflow_edl.extensions.serving.app import application
from sqlflow_edl.extensions.serving.catalog import Log, ModelCatalog
from sqlflow_edl.extensions.serving.prediction_endpoint import Limits

MOST_CONNECTIONS = 1000
KEEP_ALIVE = 30  # seconds without a request until a connection is closed


def listen(host: str, port: int) -> socket.socket:
    """Open the socket. Raises SQLFlowError if the port is taken, or the address is not of this machine."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        listening = socket.create_server((host, port), family=family, backlog=MOST_CONNECTIONS)
        # Connections inherit it; asyncio sets it only where the protocol is named. An answer is two packets.
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return listening
    except OSError as error:
        why = error.strerror or str(error)
        is_of_port = error.errno in (errno.EADDRINUSE, errno.EACCES)  # a port below 1024 is the system's
        hint = "choose another with --port" if is_of_port else "choose another with --host"
        raise SQLFlowError(f"cannot listen on {host}:{port}: {why}", hint=hint) from None


def run(
    listening: socket.socket,
    catalog: ModelCatalog,
    limits: Limits,
    *,
    token: str | None,
    poll: float,
    log: Log,
) -> None:
    """Serve until SIGTERM or Ctrl-C; requests under way are answered. The signal is then raised again."""
    server = server_of(listening, catalog, limits, token=token, poll=poll, log=log)
    host, port = listening.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    log(
        f"serving {', '.join(sorted(catalog.loaded))} on http://{shown}:{port}, see /openapi.json; Ctrl-C ends"
    )
    server.run(sockets=[listening])


def server_of(
    listening: socket.socket,
    catalog: ModelCatalog,
    limits: Limits,
    *,
    token: str | None,
    poll: float,
    log: Log,
) -> uvicorn.Server:
    """Return the server of the catalog's models, to be run on the socket."""
    servers: list[uvicorn.Server] = []
    app = application(
        catalog,
        limits,
        token=token,
        local=is_local(listening.getsockname()[0]),
        poll=poll,
        log=log,
        ending=lambda: servers[0].should_exit,
    )
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        server_header=False,
        limit_concurrency=MOST_CONNECTIONS,
        timeout_keep_alive=KEEP_ALIVE,
        timeout_graceful_shutdown=int(limits.seconds) + 1,
        ws="none",
    )
    servers.append(uvicorn.Server(config))
    return servers[0]
