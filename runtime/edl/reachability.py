"""Peers that this process cannot reach: how long, and why.

Calls are made, and repeated, elsewhere. A `Peer` is told of their results; if none was answered for a while, it finds
the reason with a look-up of the name and a connection of its own. Reasons are logged, and the heartbeats of a worker
carry the present ones to its master.
"""

from __future__ import annotations

import errno
import math
import os
import socket
import ssl
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from edl import tls
from edl.errors import SpecError
from edl.logs import log

LIMIT = 30.0  # seconds until a peer that cannot be reached is reported
VARIABLE = "EDL_UNREACHABLE_SECS"  # variable with another number of seconds
POD_VARIABLE = "EDL_MASTER"  # set in pods only
SOURCE, MASTER = "the data source", "the master"  # names of these peers
OUTAGE_SECS = 3600.0  # that pods wait for a data source, and for the API server
OUTAGE_VARIABLE = "EDL_OUTAGE_SECS"  # variable of pods with another number
REPEAT_SECS = 300.0  # between two reports of the same reason
PROBE_SECS = 3.0  # for a connection, and for an answer
_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00"  # with empty SETTINGS
_SETTINGS = 4  # type of a frame of HTTP/2
_NO_ROUTE = {errno.EHOSTUNREACH, errno.ENETUNREACH, errno.EADDRNOTAVAIL}


def limit(environment: Mapping[str, str] = os.environ) -> float:
    """Return the seconds until a peer is reported. Raises SpecError if the variable has no such number."""
    text = environment.get(VARIABLE, "")
    try:
        seconds = float(text) if text else LIMIT
    except ValueError:
        seconds = math.nan
    if not 0 < seconds < math.inf:
        raise SpecError(
            f"{VARIABLE} is {text!r}, not a number of seconds", hint=f"leave it out for {LIMIT:g}"
        )
    return seconds


def outage_secs(environment: Mapping[str, str] = os.environ) -> float:
    """Return the seconds that this process waits for a data source that it has reached before; 0 outside of pods, where
    the job can be resumed.
    """
    if not environment.get(POD_VARIABLE):
        return 0.0
    return float(environment.get(OUTAGE_VARIABLE) or OUTAGE_SECS)  # a client has checked it


def advice(environment: Mapping[str, str] = os.environ) -> str:
    """Return what to check if this process runs in a pod; empty otherwise."""
    if not environment.get(POD_VARIABLE):
        return ""
    return "check the name service of the cluster, its NetworkPolicies, and a service mesh if there is one"


def describe_failure(error: BaseException) -> str:
    """Describe the failure of a look-up or a connection."""
    if isinstance(error, socket.gaierror):
        return f"the name is not found ({error.strerror})"
    if isinstance(error, ConnectionRefusedError):
        return "the connection is refused: nothing listens there"
    if isinstance(error, TimeoutError) or (isinstance(error, OSError) and error.errno == errno.ETIMEDOUT):
        return "no answer: packets get lost on the way, as where a NetworkPolicy or a firewall drops them"
    if isinstance(error, OSError) and error.errno in _NO_ROUTE:
        return f"there is no route ({os.strerror(error.errno or 0)})"
    if isinstance(error, ConnectionResetError | BrokenPipeError):
        return "the connection is reset"
    return str(error) or type(error).__name__


def probe(address: str, seconds: float = PROBE_SECS) -> str:
    """Return why no connection to host:port is possible; empty if one is."""
    try:
        _connect(address, seconds).close()
    except (OSError, ValueError) as error:
        return describe_failure(error)
    return ""


def probe_calls(address: str, seconds: float = PROBE_SECS) -> str:
    """Return why calls to host:port, by HTTP/2 as this process makes them, are not answered."""
    identity = tls.identity()
    try:
        with _connect(address, seconds) as connection:
            if identity is None:
                greeting = _greeting(connection)
            else:
                with identity.context().wrap_socket(connection, server_hostname=tls.NAME) as encrypted:
                    greeting = _greeting(encrypted)
    except ssl.SSLError as error:
        return tls.refusal(error.reason or str(error)) or describe_failure(error)
    except (OSError, ValueError) as error:
        return describe_failure(error)
    if greeting is None:
        return "it accepts connections and does not answer: its process hangs, or a proxy has no way to it"
    if len(greeting) > 3 and greeting[3] == _SETTINGS:
        return "it accepts connections, and has not answered calls"
    if identity is not None and not greeting:
        return tls.NOT_ACCEPTED
    if identity is None and _speaks_tls(address, seconds):
        return "it expects TLS, as a proxy of a service mesh does, and calls of this job are plain"
    return "another program answers there" if greeting else "connections are accepted and closed at once"


def _connect(address: str, seconds: float) -> socket.socket:
    host, _, port = address.rpartition(":")
    return socket.create_connection((host.strip("[]"), int(port)), seconds)


def _greeting(connection: socket.socket) -> bytes | None:
    """Return the first bytes of the answer to HTTP/2: empty if the connection is closed, None if there is none."""
    try:
        connection.sendall(_PREFACE)
        return connection.recv(9)
    except TimeoutError:
        return None
    except ConnectionError:
        return b""


def _speaks_tls(address: str, seconds: float) -> bool:
    """Return True if the peer answers in TLS, be it to require a certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE  # nothing is sent
    try:
        with _connect(address, seconds) as connection, context.wrap_socket(connection):
            return True
    except ssl.SSLError as error:
        return "ALERT" in (error.reason or "")
    except OSError:
        return False


class Peer:
    """Peer that this process calls. Thread-safe.

    `name` is its name for users, `address` host:port. After `seconds` (by default, `limit`) without an answer `tell`
    gets the reason; again when that changes, and every REPEAT_SECS.
    """

    def __init__(
        self,
        name: str,
        address: str,
        *,
        tell: Callable[[str], object] = log,
        seconds: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.name = name
        self.address = address
        self._tell, self._clock = tell, clock
        self._seconds = limit() if seconds is None else seconds
        self._lock = threading.Lock()
        self._failing = _Outage()

    def on_failure(self, find: Callable[[], str] | None = None) -> None:
        """Record that a call was not answered. Returns at once.

        `find` returns the reason; by default, that for calls to the address. A thread calls it.
        """
        now = self._clock()
        with self._lock:
            state = self._failing
            state.since = now if state.since is None else state.since
            if state.looking or now < max(state.since, state.looked) + self._seconds:
                return
            state.looking, state.looked = True, now
        threading.Thread(
            target=self._look, args=(state, now, find), name="edl-reachability", daemon=True
        ).start()

    def on_answer(self) -> None:
        """Record an answer. It is told if the peer was reported."""
        if self._failing.since is None:
            return
        state = self._reset()
        if state.reason and state.since is not None:
            self._tell(f"reaches {self.name} again, after {self._clock() - state.since:.0f} s")

    def on_gone(self) -> None:
        """Record that the peer is not needed any more."""
        self._reset()

    def _reset(self) -> _Outage:
        with self._lock:
            state, self._failing = self._failing, _Outage()
            _present.pop(self.name, None)
        return state

    def _look(self, state: _Outage, now: float, find: Callable[[], str] | None) -> None:
        address = self.address
        reason = find() if find is not None else probe_calls(address)
        with self._lock:
            state.looking = False
            if state is not self._failing or state.since is None:
                return
            is_known = reason == state.reason and now < state.told + REPEAT_SECS
            state.reason, state.told = reason, state.told if is_known else now
            who = f"{self.name} at {address}" if address else self.name
            _present[self.name] = f"does not reach {who}: {reason}"
        if not is_known:
            text = f"has not reached {who} for {now - state.since:.0f} s: {reason}"
            self._tell("; ".join(filter(None, (text, advice()))))


@dataclass
class _Outage:
    """Calls since the last answer: seconds of the first, of the last look for the reason, and of the last report."""

    since: float | None = None
    looked: float = -math.inf
    told: float = -math.inf
    reason: str = ""
    looking: bool = False


_present: dict[str, str] = {}  # by name of the peer


def obstacle(to: str = "") -> str:
    """Return the reports of all peers that this process does not reach at present; empty if there are none. `to`: name
    of the peer that gets them, and which is therefore reached.
    """
    return "; ".join(report for name, report in _present.copy().items() if name != to)
