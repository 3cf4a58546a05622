"""gRPC service of a parameter server: payloads of `edl.ps.wire`, and the job's token on each call.

Calls hold a thread each, so the pool is large; threads are created on demand. `edl.ps.locks` keeps some of them for
what waiting calls wait for.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
import msgspec

from edl.errors import ClusterError, DamagedError, JobError, SpecError, SQLFlowError
from edl.ps import wire
from edl.ps.channel import SERVICE, SIZES
from edl.ps.messages import GenerationError, NotReadyError
from edl.ps.server import Server
from edl.rpc import transport
from edl.rpc.channel import SERVER_OPTIONS, TOKEN, AwayError

_CODES = (  # the first match counts
    (AwayError, grpc.StatusCode.UNAVAILABLE),
    (NotReadyError, grpc.StatusCode.FAILED_PRECONDITION),
    (GenerationError, grpc.StatusCode.ABORTED),
    (JobError, grpc.StatusCode.INVALID_ARGUMENT),
    (DamagedError, grpc.StatusCode.DATA_LOSS),
    (SpecError, grpc.StatusCode.INVALID_ARGUMENT),
    (ClusterError, grpc.StatusCode.INTERNAL),
)


class ServerService(grpc.GenericRpcHandler):  # type: ignore[misc]  # grpc has no types
    """Dispatches authenticated calls to a server."""

    def __init__(self, server: Server, token: str) -> None:
        self._token = token.encode()
        self._methods = {
            f"/{SERVICE}/{kind.__name__}": grpc.unary_unary_rpc_method_handler(_make_handler(server, kind))
            for kind in server.calls
        }

    def service(self, details: grpc.HandlerCallDetails) -> Any:
        token = dict(details.invocation_metadata).get(TOKEN, "")
        if self._token and hmac.compare_digest(str(token).encode(), self._token):
            return self._methods.get(details.method)
        return _refusal


def _make_handler(server: Server, kind: type[msgspec.Struct]) -> Callable[[bytes, Any], bytes]:
    def answer(payload: bytes, context: Any) -> bytes:
        try:
            return wire.encode(*server.answer(*wire.decode(payload, kind)))
        except SQLFlowError as error:
            code = next((code for kind, code in _CODES if isinstance(error, kind)), grpc.StatusCode.INTERNAL)
            context.abort(code, error.message)
            raise

    return answer


def _refuse(payload: bytes, context: Any) -> None:
    context.abort(grpc.StatusCode.UNAUTHENTICATED, "the call lacks the token of this job")


_refusal = grpc.unary_unary_rpc_method_handler(_refuse)


def serve(server: Server, address: str, token: str) -> tuple[grpc.Server, int]:
    """Start to serve; return the gRPC server and its port."""
    sizes = dict(SIZES)
    options = [option for option in SERVER_OPTIONS if option[0] not in sizes and "reuseport" not in option[0]]
    served = grpc.server(
        ThreadPoolExecutor(server.threads, "edl-calls"),
        handlers=(ServerService(server, token),),
        options=(*options, *SIZES),
    )
    port = transport.listen(served, address)
    served.start()
    return served, port
