"""Client of MaxCompute on pyodps: opened from a URL, with bounded retries, safe in processes that fork.

    maxcompute://ACCESS_ID@service.cn-shanghai.maxcompute.aliyun.com/api?curr_project=shop

The secret key of the account is the URL's password; see `edl.data.server_url` for its other origins. A statement is
submitted under an id of its own, so that it is not run twice if its reply is lost.
"""

from __future__ import annotations

import os
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar
from zoneinfo import available_timezones

from edl.data.names import named_twice
from edl.data.server_url import ServerURL
from edl.errors import SourceError, did_you_mean
from edl.installation import install_extras

try:
    import requests
    from odps import ODPS, errors
    from odps import config as odps_config
    from odps.models import Projects
    from odps.rest import RestClient
    from odps.tunnel import TableTunnel
    from odps.tunnel.instancetunnel import InstanceDownloadSession
    from odps.tunnel.retry import NoRetryPolicy, RetryPolicy, TunnelRetryHandler
    from odps.tunnel.tabletunnel import TableDownloadSession, TableUploadSession
except ModuleNotFoundError:
    raise SourceError("maxcompute:// needs pyodps", hint=install_extras("maxcompute")) from None

OPTIONS = ("curr_project", "scheme", "timezone", "tunnel")
ZONE = "Asia/Shanghai"  # MaxCompute's default time zone

ERRORS = (errors.BaseODPSError, requests.RequestException)
CHECK_SECONDS = 20  # for the answer to the first request
ATTEMPTS = 12  # of a request with a transient error: about a minute

_T = TypeVar("_T")
_FIRST_WAIT, _LONGEST_WAIT = 0.05, 20.0
_HINTS = {
    "odps.sql.type.system.odps2": "true",
    "odps.sql.decimal.odps2": "true",
    "odps.sql.allow.fullscan": "true",
    "odps.sql.validate.orderby.limit": "false",
}


def _forget_connections() -> None:
    """Drop the connections that pyodps caches by thread and endpoint: a forked child would reuse its parent's."""
    RestClient._session_local = threading.local()


os.register_at_fork(after_in_child=_forget_connections)


class Client:
    """Client of one project of a MaxCompute service. Opening sends no request; safe to use from several threads."""

    def __init__(self, url: ServerURL) -> None:
        options = _options(url)
        url = url.with_password()
        port = f":{url.port}" if url.port else ""
        endpoint = f"{options.get('scheme', 'https')}://{url.host}{port}/{url.path}".rstrip("/")
        self.project = options["curr_project"]
        self.zone = options.get("timezone", ZONE)
        self.odps = ODPS(
            url.user,
            url.password,
            project=self.project,
            endpoint=endpoint,
            tunnel_endpoint=options.get("tunnel"),
            logview_host=endpoint,  # otherwise pyodps requests it from the service
        )
        self.settings: dict[str, str] = {}  # of SET statements, for each statement behind them
        self._tunnel = TableTunnel(self.odps)
        self._running: Any = None

    def check(self) -> None:
        """Request the project with short timeouts, so that a wrong host fails soon. Raises `ERRORS`."""
        short = {"connect_timeout": 10, "read_timeout": CHECK_SECONDS, "retry_times": 1}
        with odps_config.option_context(short):
            again(lambda: self.odps.get_project().reload(), attempts=3)

    def set(self, name: str, value: str) -> None:
        """Set a flag of all later statements. Raises SourceError for one that this package sets itself."""
        if name in _HINTS or name == "odps.sql.timezone":
            hint = "the option timezone of the URL sets it" if name not in _HINTS else "leave it out"
            raise SourceError(f"{name} cannot be SET: rows are read with a fixed value of it", hint=hint)
        self.settings[name] = value

    def run(self, sql: str) -> Any:
        """Run one statement of SQL to its end. Return its instance. Raises `ERRORS`."""
        key = uuid.uuid4().hex
        hints = {**self.settings, **_HINTS, "odps.sql.timezone": self.zone}
        instance = again(lambda: self.odps.run_sql(sql, hints=hints, unique_identifier_id=key))
        self._running = instance
        try:
            instance.wait_for_success(interval=0.05, max_interval=2)
        except KeyboardInterrupt:
            self.interrupt()
            raise
        finally:
            self._running = None
        return instance

    def interrupt(self) -> None:
        """Stop the running statement, if any; from any thread."""
        if (running := self._running) is not None:
            running.stop()

    def download(self, table: str, session: str | None = None, partition: str | None = None) -> Any:
        """Open a download session of a table or partition: a new one, or the one with this id."""
        return _Download(self._tunnel.tunnel_rest, self._table(table), partition, download_id=session)

    def result(self, instance: Any) -> Any:
        """Open a download session of the result of a SELECT, of 10,000 rows at most."""
        project = Projects(client=self._tunnel.tunnel_rest)[self.project]
        try:
            return _Result(self._tunnel.tunnel_rest, project.instances[instance.id], limit=True)
        except ValueError as error:  # pyodps rejects two columns of one name
            raise named_twice(str(error).rpartition(": ")[2]) from None

    def upload(self, table: str, partition: str | None) -> Any:
        """Open an upload session that replaces the rows of a partition, which it creates, or of a whole table."""
        rest = self._tunnel.tunnel_rest
        return _Upload(
            rest, self._table(table), partition, create_partition=partition is not None, overwrite=True
        )

    def _table(self, name: str) -> Any:
        return self._tunnel._get_tunnel_table(name, None)


@contextmanager
def utc() -> Iterator[None]:
    """Make pyodps use UTC for timestamps in this thread, whatever the zone of the machine."""
    with odps_config.option_context({"local_timezone": False, "allow_antique_date": True}):
        yield


def may_pass(error: BaseException) -> bool:
    """Return True if a retry of the same request may succeed."""
    status = getattr(error, "status_code", None)
    if isinstance(error, errors.BaseODPSError) and status is not None:
        return status in (308, 408, 429) or status >= 500
    return isinstance(error, requests.RequestException | errors.ChecksumError | OSError)


def again(request: Callable[[], _T], attempts: int = ATTEMPTS) -> _T:
    """Retry an idempotent request until it succeeds or its error is permanent."""
    for attempt in range(1, attempts):
        try:
            return request()
        except ERRORS as error:
            if not may_pass(error):
                raise
        pause(attempt)
    return request()


def pause(attempt: int) -> None:
    time.sleep(wait_after(attempt))


def wait_after(attempt: int) -> float:
    """Return the seconds to wait after that many failed attempts."""
    return float(min(_FIRST_WAIT * 2 ** (attempt - 1), _LONGEST_WAIT))


class _Backoff(RetryPolicy):  # type: ignore[misc]
    def should_retry(self, error: Exception, attempt: int) -> bool:
        return attempt < ATTEMPTS

    def get_retry_wait_time(self, attempt: int) -> float:
        return wait_after(attempt)


class RetryPatience(TunnelRetryHandler):  # type: ignore[misc]
    """Retry policy of a tunnel session. The default waits forever for a quota, and two minutes for a server."""

    def __init__(self) -> None:
        super().__init__(default_retry_policy=_Backoff())

    def get_retry_policy(self, status_code: int | None) -> RetryPolicy:
        passes = status_code is None or status_code in (308, 408, 429) or status_code >= 500
        return _Backoff() if passes else NoRetryPolicy()


class _Download(TableDownloadSession):  # type: ignore[misc]
    __slots__ = ()
    retry_handler = property(lambda self: RetryPatience())


class _Upload(TableUploadSession):  # type: ignore[misc]
    __slots__ = ()
    retry_handler = property(lambda self: RetryPatience())


class _Result(InstanceDownloadSession):  # type: ignore[misc]
    __slots__ = ()
    retry_handler = property(lambda self: RetryPatience())


def _options(url: ServerURL) -> dict[str, str]:
    for option, _ in url.options:
        if option not in OPTIONS:
            raise SourceError(
                f"{url.scheme} URLs have no option {option}", hint=did_you_mean(option, OPTIONS)
            )
    options = dict(url.options)
    if not options.get("curr_project"):
        raise SourceError(f"{url} names no project", hint="add ?curr_project=NAME")
    if options.get("timezone", ZONE) not in available_timezones():
        raise SourceError(
            f"{options['timezone']} is not a time zone", hint="write it as Asia/Shanghai or UTC"
        )
    return options
