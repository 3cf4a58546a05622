"""Middleware in front of all requests: bearer tokens, hosts, and sizes of bodies."""

from __future__ import annotations

import hmac

import msgspec
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from edl.errors import SQLFlowError
from sqlflow_edl.cli.models.listening import is_local

JSON = "application/json"
OPEN = ("/healthz", "/readyz")  # for probes, which have no token


class RequestGuard:
    """Guard of an application.

    token: what requests must send as `Authorization: Bearer …`; None if everybody may ask. local: the server listens
    on the loopback interface only, so that another host's name in a request is a page that tricks a browser.
    """

    def __init__(self, app: ASGIApp, token: str | None, *, local: bool) -> None:
        self._app = app
        self._token = token.encode() if token is not None else None
        self._local = local

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            headers = Headers(scope=scope)
            answer = self._refusal(scope["path"], headers)
            if answer is not None:
                await answer(scope, receive, send)
                return
        await self._app(scope, receive, send)

    def _refusal(self, path: str, headers: Headers) -> Response | None:
        if self._local and self._token is None and not is_local(host_of(headers)):
            return error_response(403, "host", "this server answers requests to this machine only")
        if self._token is None or path in OPEN:
            return None
        if bears(headers, self._token):
            return None
        refused = error_response(401, "unauthorized", "the bearer token is missing or wrong")
        refused.headers["WWW-Authenticate"] = "Bearer"
        return refused


def host_of(headers: Headers) -> str:
    """Return the host of the Host header, without its port."""
    host = headers.get("host", "")
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0]


def bears(headers: Headers, token: bytes) -> bool:
    """Return True if the request carries the bearer token."""
    kind, _, credentials = headers.get("authorization", "").partition(" ")
    return kind.lower() == "bearer" and hmac.compare_digest(credentials.strip().encode(), token)


def error_response(status: int, code: str, message: str, **more: object) -> Response:
    """Return an error as JSON: `{"error": {"code": …, "message": …}}`."""
    shown = {name: value for name, value in more.items() if value is not None}
    body = msgspec.json.encode({"error": {"code": code, "message": message, **shown}}, enc_hook=repr)
    return Response(body, status, media_type=JSON)


def answer_error(status: int, code: str, error: SQLFlowError) -> Response:
    """Return the error of a request as JSON."""
    return error_response(status, code, error.message, hint=error.hint)
