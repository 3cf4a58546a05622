"""Notice of a cloud that it takes this machine away: the process gets SIGTERM at once, not when the machine ends.

`EDL_SPOT_NOTICE` says where the notice appears: a file, an HTTP address, or the metadata of a cloud. Nothing is asked
without it. Sources: the documentation of spot instances of AWS (instance-action), Google Cloud (preempted) and Alibaba
Cloud (termination-time).
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from edl.errors import SemanticError, nearest

VARIABLE = "EDL_SPOT_NOTICE"
INTERVAL_SECS = 5.0  # between two questions, as AWS advises
TIMEOUT_SECS = 2.0
TOKEN_SECS = 21_600  # validity of a token, the longest that both clouds give
_NONE = frozenset({"", "false"})  # answers without a notice


@dataclass
class InstanceMetadata:
    """HTTP address with a notice. 404, an empty answer and FALSE mean that there is none.

    `prefix` begins the headers if the cloud's metadata may require a token, and is "" for the others.
    """

    address: str
    path: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    prefix: str = ""
    _tokens: dict[str, str] = field(default_factory=dict)

    def is_given(self) -> bool:
        """Return True if there is a notice. Raises OSError if there is no answer, or an error."""
        if self.prefix and not self._tokens:
            self._get_token()
        try:
            answer = self._ask()
        except PermissionError:
            if not self._tokens:
                raise
            self._get_token()  # the present one is too old
            answer = self._ask()
        return answer.lower() not in _NONE

    def _ask(self) -> str:
        return _answer(self.address + self.path, {**self.headers, **self._tokens})

    def _get_token(self) -> None:
        lasting = {f"{self.prefix}-ttl-seconds": str(TOKEN_SECS)}
        self._tokens[self.prefix] = _answer(f"{self.address}/latest/api/token", lasting, "PUT")


CLOUDS = {
    "aws": InstanceMetadata(
        "http://169.254.169.254", "/latest/meta-data/spot/instance-action", prefix="X-aws-ec2-metadata-token"
    ),
    "gcp": InstanceMetadata(
        "http://metadata.google.internal",
        "/computeMetadata/v1/instance/preempted",
        {"Metadata-Flavor": "Google"},
    ),
    "alibaba": InstanceMetadata(
        "http://100.100.100.200",
        "/latest/meta-data/instance/spot/termination-time",
        prefix="X-aliyun-ecs-metadata-token",
    ),
}


@contextlib.contextmanager
def watching_for_spot_notice(say: Callable[[str], None]) -> Iterator[None]:
    """Send SIGTERM to this process once when the notice appears, inside the context.

    Raises SemanticError if EDL_SPOT_NOTICE is nothing that can be asked. `say` gets a line at the notice, and another
    one when an address does not answer for the first time.
    """
    setting = os.environ.get(VARIABLE, "")
    if not setting:
        yield
        return
    watch = _Watch(setting, say)
    watch.start()
    try:
        yield
    finally:
        watch.end()


class _Watch(threading.Thread):
    """Thread that asks until the notice is there, or `end` is called: it sends no signal after that."""

    def __init__(self, setting: str, say: Callable[[str], None]) -> None:
        super().__init__(daemon=True)
        self._is_given = _source(setting)
        self._setting = setting
        self._say = say
        self._ended = threading.Event()
        self._lock = threading.Lock()

    def run(self) -> None:
        failed = False
        while not self._ended.is_set():
            try:
                if self._is_given():
                    self._terminate()
                    return
            except OSError as error:
                if not failed:
                    again = f"it is asked again every {INTERVAL_SECS:.0f} s"
                    self._say(f"{VARIABLE}: {self._setting} cannot be asked ({error}); {again}")
                failed = True
            self._ended.wait(INTERVAL_SECS)

    def end(self) -> None:
        with self._lock:
            self._ended.set()

    def _terminate(self) -> None:
        with self._lock:
            if not self._ended.is_set():
                self._say(f"{VARIABLE}: {self._setting} says that this machine is taken away")
                os.kill(os.getpid(), signal.SIGTERM)


def _source(setting: str) -> Callable[[], bool]:
    if setting in CLOUDS:
        return CLOUDS[setting].is_given
    if setting.startswith("http://"):
        return InstanceMetadata(setting).is_given
    if (file := Path(setting)).is_absolute():
        return file.exists
    raise SemanticError(
        f"{VARIABLE} is {setting!r}; "
        f"expected {', '.join(CLOUDS)}, an address with http://, or the absolute path of a file",
        hint=f"did you mean {near}?" if (near := nearest(setting, CLOUDS)) else None,
    )


def _answer(address: str, headers: Mapping[str, str], method: str = "GET") -> str:
    """Return the answer, "" for 404. Raises OSError, for 401 PermissionError."""
    from http.client import HTTPException
    from urllib.error import HTTPError
    from urllib.request import ProxyHandler, Request, build_opener

    request = Request(address, headers=dict(headers), method=method)  # noqa: S310 (http:// alone is accepted)
    try:
        with build_opener(ProxyHandler({})).open(request, timeout=TIMEOUT_SECS) as response:
            text: str = response.read(4096).decode("utf-8", "replace")
            return text.strip()
    except HTTPError as error:
        error.close()
        if error.code == 404:
            return ""
        if error.code == 401:
            raise PermissionError(f"HTTP status {error.code}") from None
        raise OSError(f"HTTP status {error.code}") from None
    except HTTPException as error:
        raise OSError(f"no HTTP: {type(error).__name__}") from None
