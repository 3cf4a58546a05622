"""Access to the pages: who may see them, and that a form comes from them.

On the loopback interface everybody on this machine may, but no page of another site: the host must be this machine,
and a form must carry a token that only these pages contain. Beyond it a visitor signs in with the server's token, and
the browser keeps a cookie in its place.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from http.cookies import CookieError, SimpleCookie

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse, RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sqlflow_edl.cli.models.listening import is_local
from sqlflow_edl.extensions.serving.guard import bears, host_of

OPEN = ("/healthz", "/login")  # and what is in /static/
FIELD = "form_token"  # of forms

# Everything comes from this server; only the style sheet and the script of its own run.
_HEADERS = {
    "content-security-policy": "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; "
    "connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
}


class PageAccess:
    """Decisions about requests.

    token: what visitors sign in with; None if everybody may see the pages. local: the server listens on the loopback
    interface only.
    """

    def __init__(self, token: str | None, *, local: bool) -> None:
        self._token = token.encode() if token is not None else None
        self._local = local
        self._key = secrets.token_bytes(32)
        self.form_token = self._digest("form")

    @property
    def is_secured(self) -> bool:
        return self._token is not None

    def cookie(self) -> str:
        """Return the value of the cookie of a visitor who signed in."""
        return self._digest("visitor")

    def is_token(self, text: str) -> bool:
        return self._token is not None and hmac.compare_digest(text.strip().encode(), self._token)

    def refuses_host(self, headers: Headers) -> bool:
        """Return True for the name of another host: a page that tricks a browser into asking this server."""
        return self._local and not self.is_secured and not is_local(host_of(headers))

    def admits(self, path: str, headers: Headers, cookie: str) -> bool:
        """Return True if the visitor may see the page."""
        if self._token is None or path in OPEN or path.startswith("/static/"):
            return True
        return hmac.compare_digest(_cookie(headers, cookie), self.cookie()) or bears(headers, self._token)

    def accepts_form(self, headers: Headers, form_token: str) -> bool:
        """Return True if the form comes from one of these pages."""
        from_elsewhere = headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none")
        return not from_elsewhere and hmac.compare_digest(form_token.encode(), self.form_token.encode())

    def _digest(self, purpose: str) -> str:
        return hmac.new(self._key, purpose.encode(), hashlib.sha256).hexdigest()


def cookie_name(scope: Scope) -> str:
    """Return the name of the cookie; cookies do not tell ports apart."""
    server = scope.get("server")
    return f"sqlflow-ui-{server[1] if server else 0}"


def _cookie(headers: Headers, name: str) -> str:
    try:
        cookie = SimpleCookie(headers.get("cookie", "")).get(name)
    except CookieError:
        return ""
    return cookie.value if cookie is not None and cookie.value.isascii() else ""


class PageGuard:
    """Middleware: refuses what `PageAccess` does not admit, and adds the headers that confine the pages."""

    def __init__(self, app: ASGIApp, access: PageAccess) -> None:
        self._app = app
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)

        async def confined(message: Message) -> None:
            if message["type"] == "http.response.start":
                pairs = [(name.encode(), value.encode()) for name, value in _HEADERS.items()]
                message = {**message, "headers": [*message.get("headers", ()), *pairs]}
            await send(message)

        if self._access.refuses_host(headers):
            refused = PlainTextResponse("this server answers requests to this machine only\n", 403)
            await refused(scope, receive, confined)
        elif not self._access.admits(scope["path"], headers, cookie_name(scope)):
            await RedirectResponse("/login", 303)(scope, receive, confined)
        else:
            await self._app(scope, receive, confined)
