"""Connections and ports of all calls between instances: mutual TLS if the process has an identity, else plain."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import grpc
from grpc import aio

from edl.tls import NAME, identity, refusal

Options = Sequence[tuple[str, int | str]]


def connect(address: str, options: Options) -> Any:
    """Return a channel to the instance at host:port."""
    files = identity()
    if files is None:
        return grpc.insecure_channel(address, options=options)
    credentials = grpc.ssl_channel_credentials(files.authority, files.key, files.certificate)
    # Pods have no constant names or addresses, so one name stands for all of them: the authority is the job's own.
    return grpc.secure_channel(
        address, credentials, options=(*options, ("grpc.ssl_target_name_override", NAME))
    )


def listen(server: grpc.Server | aio.Server, address: str) -> int:
    """Let the server answer calls at host:port; return the port."""
    files = identity()
    if files is None:
        return int(server.add_insecure_port(address))
    credentials = grpc.ssl_server_credentials(
        ((files.key, files.certificate),), files.authority, require_client_auth=True
    )
    return int(server.add_secure_port(address, credentials))


def describe_missing_answer(error: grpc.RpcError) -> str:
    """Describe why a call has no answer."""
    status = str(error.code().name).lower().replace("_", " ")
    reason = refusal(error.details() or "") if identity() is not None else ""
    return f"{reason}; {status}" if reason else status
