"""Requests to the API server, with retries of transient failures.

Bodies and answers are the server's JSON. The official client contributes only connections and credentials, by
attributes that all its releases have: its serialization of calls differs between them. An answer is decoded once, into
the needed fields.
"""

from __future__ import annotations

import random
import re
import threading
import time
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import msgspec

from edl.cluster.kubernetes.outage import LACKING_SECS, REFUSAL_SECS
from edl.cluster.kubernetes.pods import Refusal
from edl.errors import ClusterError, JobError

if TYPE_CHECKING:
    from kubernetes.client import ApiClient
    from urllib3 import BaseHTTPResponse

PATIENCE = 30.0
CONNECT_SECS, ANSWER_SECS = 5.0, 20.0
LONGEST_PAUSE = 5.0
_JSON = "application/json"
_TYPES = {"PATCH": "application/merge-patch+json"}  # of request bodies
_MISSING_RIGHT = re.compile(r"\bcannot \w+ resource\b")
_TRANSIENT = frozenset({408, 429, 500, 502, 503, 504})


class APIRefusedError(ClusterError):
    """Refusal of a request by the API server. `status` is the HTTP status, `reason` a code such as `AlreadyExists`."""

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason

    @property
    def is_right_missing(self) -> bool:
        """True if no Role gives the account the right; a quota or a policy refuses in other words."""
        return self.status == 403 and _MISSING_RIGHT.search(self.message) is not None

    @property
    def may_pass(self) -> bool:
        """True for a refusal that a restarted API server may give for a while."""
        return self.status == 401 or self.is_right_missing


class APIUnreachableError(ClusterError):
    """Error of a request without an answer; it may have been carried out or not."""


class _PassingError(Exception):
    """Transient failure. `wait` is the number of seconds to wait that the server asks for."""

    def __init__(self, words: str, wait: float = 0.0) -> None:
        super().__init__(words)
        self.wait = wait


class Calls:
    """Requests to the server of a client. Thread-safe. `patience` is the number of seconds after which retries end."""

    def __init__(self, api: ApiClient, patience: float = PATIENCE) -> None:
        self._api = api
        self._patience = patience
        self._closed = threading.Event()
        self._allowed: set[str] = set()  # methods of requests that were answered

    def close(self) -> None:
        """Stop retrying."""
        self._closed.set()

    def ask(
        self,
        method: str,
        path: str,
        body: object = None,
        query: dict[str, str | int] | None = None,
        *,
        patience: float | None = None,
        is_needed: bool = False,
    ) -> bytes:
        """Return the answer.

        A retried request may have been carried out before; the object that it creates then exists already. Raises
        RefusedError, or UnreachableError without an answer within `patience` seconds, by default this object's
        `patience`. `is_needed`: a missing right is waited for too, `REFUSAL_SECS` if a request of this method was
        allowed before, else `LACKING_SECS`.
        """
        end = time.monotonic() + (self._patience if patience is None else patience)
        refused_at: float | None = None  # time of the first refusal in a row
        for number in range(1_000_000):
            pause = random.uniform(0.5, 1.0) * min(LONGEST_PAUSE, 0.1 * 2**number)  # noqa: S311
            try:
                answer = self._answer(self._send(method, path, body, query, ANSWER_SECS))
            except _PassingError as error:
                refused_at, pause = None, max(error.wait, pause)
                late = time.monotonic() + pause > end
                if late or self._closed.wait(pause):
                    raise APIUnreachableError(
                        f"the API server of the cluster does not answer: {error}"
                    ) from None
            except APIRefusedError as error:
                now = time.monotonic()
                refused_at = now if refused_at is None else refused_at
                limit = REFUSAL_SECS if method in self._allowed else LACKING_SECS
                late = now + pause > refused_at + limit
                if not (is_needed and error.may_pass) or late or self._closed.wait(pause):
                    raise
            else:
                self._allowed.add(method)
                return answer
        raise AssertionError

    def stream(self, path: str, query: dict[str, str | int], silence: float) -> BaseHTTPResponse:
        """Return a streamed answer, requested once. `silence` is the number of seconds without data that breaks it."""
        try:
            response = self._send("GET", path, None, query, silence)
            if response.status != 200:
                self._answer(response)
        except _PassingError as error:
            raise APIUnreachableError(f"the API server of the cluster does not answer: {error}") from None
        return response

    def _send(
        self, method: str, path: str, body: object, query: dict[str, str | int] | None, silence: float
    ) -> BaseHTTPResponse:
        from urllib3 import Timeout
        from urllib3.exceptions import HTTPError

        client = self._api.configuration
        headers = {"Accept": _JSON, "Content-Type": _TYPES.get(method, _JSON), **self._api.default_headers}
        headers |= {setting["key"]: setting["value"] for setting in client.auth_settings().values()}
        parameters = f"?{urlencode(query)}" if query else ""
        try:
            response: BaseHTTPResponse = self._api.rest_client.pool_manager.request(
                method,
                f"{client.host}{path}{parameters}",
                body=None if body is None else msgspec.json.encode(body),
                headers=headers,
                preload_content=False,
                timeout=Timeout(connect=CONNECT_SECS, read=silence),
            )
        except (HTTPError, OSError) as error:
            raise _PassingError(_first_line(error)) from None
        return response

    def _answer(self, response: BaseHTTPResponse) -> bytes:
        from urllib3.exceptions import HTTPError

        try:
            data = response.data
        except (HTTPError, OSError) as error:
            raise _PassingError(_first_line(error)) from None
        if response.status < 300:
            return data
        refusal = _refusal(data, response.reason or "")
        if response.status in _TRANSIENT:
            raise _PassingError(refusal.message, _retry_after(response))
        raise APIRefusedError(response.status, refusal.reason, refusal.message)


def _refusal(data: bytes, reason: str) -> Refusal:
    try:
        refusal = msgspec.json.decode(data, type=Refusal)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        refusal = Refusal(data.decode(errors="replace").strip())
    return refusal if refusal.message else Refusal(reason, refusal.reason)


def _retry_after(response: BaseHTTPResponse) -> float:
    seconds = response.headers.get("Retry-After", "")
    return float(seconds) if seconds.isdecimal() else 0.0


def _first_line(error: Exception) -> str:
    return (str(error) or type(error).__name__).splitlines()[0]


# Rights of a master --------------------------------------------------------------------------------------

_LACKING = re.compile(
    r'User "(?P<user>[^"]+)" cannot (?P<verb>\w+) resource "(?P<resource>[^"]+)" in API group "(?P<group>[^"]*)"'
)
_ACCOUNT = "system:serviceaccount:"


class LackingRightError(JobError):
    """The account of a job lacks a right that its master needs, as any other master would."""


def missing_right(refused: APIRefusedError, namespace: str) -> LackingRightError | None:
    """Return the error for a refusal by the Roles of the account, or None for any other refusal."""
    if refused.status == 401:
        return LackingRightError(
            "the API server does not accept the token of the job's master",
            hint=f"its service account in the namespace {namespace} was deleted or replaced; run the statement again",
        )
    match = _LACKING.search(refused.message) if refused.is_right_missing else None
    if match is None:
        return None
    user, verb, resource, group = match["user"], match["verb"], match["resource"], match["group"]
    account = user.removeprefix(_ACCOUNT).rpartition(":")[2] if user.startswith(_ACCOUNT) else user
    named = f"{resource}.{group}" if group else resource
    return LackingRightError(
        f"the account {account} of the job's master may not {verb} {named} in the namespace {namespace}",
        hint=f'grant it by a Role there with apiGroups ["{group}"], resources [{resource}], verbs [{verb}], and a '
        "RoleBinding; samples/kubernetes/master.yaml has all that a master needs",
    )
