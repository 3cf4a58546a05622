"""URLs of databases on servers, and the origin of their passwords.

    mysql://reader@db.example:3306/shop?ssl_ca=/etc/ca.pem

A password may be in the URL (percent-escaped), in the environment or in the connections file. Nothing that is
displayed, stored or passed to another process by name holds one. Child processes find it in their environment: the
first password of an account for all its databases, another one under the displayed URL.
"""

from __future__ import annotations

import os
import re
import stat
import tomllib
from collections.abc import Callable
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import parse_qsl, quote, unquote, urlencode

import msgspec

from edl.errors import SourceError, did_you_mean
from edl.installation import install_extras

SOURCE = "SQLFLOW_SOURCE"
SECRETS = "SQLFLOW_EDL_SECRETS"  # displayed URL, or account -> secret, as JSON, in the environment of a job's processes
MOUNTED = (
    "EDL_SECRETS"  # folder in pods with mounted secrets: no process there has passwords in its environment
)
PASSWORDS = "secrets.json"  # file in it with the same JSON

# What asks the user for the password of a URL, and returns an empty text without an answer. Other threads have none.
PROMPT: ContextVar[Callable[[ServerURL], str] | None] = ContextVar("password prompt", default=None)

ALIASES = {"postgres": "postgresql"}  # other names of schemes
LOCAL = ("postgresql",)  # schemes that reach a server on this machine by its socket if the URL has no host

_NAME = re.compile(r"[\w-]+")


@dataclass(frozen=True, slots=True)
class ServerURL:
    """Parsed URL. Its text has no password. `path` follows the host, without the leading slash."""

    scheme: str
    host: str
    port: int | None = None
    user: str = ""
    password: str = field(default="", repr=False)
    path: str = ""
    options: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        shown = f"?{urlencode(self.options)}" if self.options else ""
        return f"{self.account}/{quote(self.path)}{shown}"

    @property
    def account(self) -> str:
        """The URL without database and options."""
        user = f"{quote(self.user, safe='')}@" if self.user else ""
        port = f":{self.port}" if self.port is not None else ""
        return f"{self.scheme}://{user}{self.host}{port}"

    def with_password(self) -> ServerURL:
        """Return the URL with its password from any origin. A password in the URL is stored for child processes."""
        if self.password:
            self.keep(self.password)
            return self
        shown, kept = str(self), _read_secrets()
        password = kept.get(shown) or kept.get(self.account)
        return replace(self, password=password or _of_session(shown) or _find_configured_url(self))

    def keep(self, password: str) -> None:
        """Give the URL a password, for this process and its children."""
        kept, shown = _read_secrets(), str(self)
        name = self.account if shown not in kept and kept.get(self.account, password) == password else shown
        os.environ[SECRETS] = msgspec.json.encode({**kept, name: password}).decode()


class NoPasswordError(SourceError):
    """The server refused a connection without a password."""


def parse_server(url: str, port: int | None = None) -> ServerURL:
    """Parse `scheme://user:password@host:port/path?options`; `port` is the default port.

    Raises SourceError for a missing host or an invalid port.
    """
    scheme, _, rest = url.partition("://")
    rest, _, options = rest.partition("?")
    account, _, place = rest.rpartition("@")
    user, _, password = account.partition(":")
    host, _, path = place.partition("/")
    if match := re.fullmatch(r"(\[.*\]|[^:]*):(\d*)", host):
        host, port = match[1], int(match[2] or port or 0) or None
    scheme = ALIASES.get(scheme.lower(), scheme.lower())
    if not place.partition("/")[0] and scheme in LOCAL:
        port = None
    elif not host or (port is not None and port > 65_535) or ":" in host.partition("]")[2]:
        scheme = scheme.partition(":")[0]
        raise SourceError(
            f"the {scheme} URL names no host and port", hint=f"write it as {scheme}://user@host:port/name"
        )
    return ServerURL(
        scheme,
        host,
        port,
        unquote(user),
        unquote(password),
        unquote(path),
        tuple(parse_qsl(options, keep_blank_values=True)),
    )


def named_connection(name: str) -> str | None:
    """Return the URL of the connection with this name in the user's file, or None if there is none."""
    entry = _connections().get(name) if _NAME.fullmatch(name) else None
    return None if entry is None else entry.url


def near_connection(name: str) -> str | None:
    """Return a hint if the name is similar to the name of a connection."""
    return did_you_mean(name, _connections(), list_up_to=0)


class _Connection(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Entry of the connections file.

    `password_from` is the environment variable that holds the password; `keyring` the service under which the keyring
    of the user's desktop has it, for the user of the URL.
    """

    url: str
    password: str = ""
    password_from: str = ""
    keyring: str = ""


def config_folder() -> Path:
    """Return the folder of the user's configuration of this program."""
    base = Path(os.environ.get("XDG_CONFIG_HOME", ""))
    return (base if base.is_absolute() else Path.home() / ".config") / "sqlflow-edl"


def _connections() -> dict[str, _Connection]:
    path = config_folder() / "connections.toml"
    try:
        text = path.read_text(encoding="utf-8")
        mode = path.stat().st_mode
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise SourceError(f"cannot read {path}: {error.strerror}") from None
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise SourceError(f"{path} is readable by other users", hint=f"chmod 600 {path}")
    try:
        return msgspec.convert(tomllib.loads(text), dict[str, _Connection])
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise SourceError(
            f"{path} is damaged: {error}", hint='an entry looks like [shop] url = "mysql://reader@host/shop"'
        ) from None


def _of_session(shown: str) -> str:
    """Return the password in the URL that the environment sets for every session."""
    text = os.environ.get(SOURCE, "")
    scheme = text.partition("://")[0].lower()
    if ALIASES.get(scheme, scheme) != shown.partition("://")[0]:
        return ""
    url = parse_server(text)
    return url.password if _is_same_account(str(url), shown) else ""


def _find_configured_url(account: ServerURL) -> str:
    for name, entry in _connections().items():
        url = parse_server(entry.url)
        if _is_same_account(str(url), str(account)):
            if entry.password_from and entry.password_from not in os.environ:
                raise SourceError(
                    f"the environment has no {entry.password_from}, which holds the password of {name}"
                )
            if entry.keyring:
                password = _of_keyring(entry.keyring, url.user, name)
                account.keep(password)  # child processes do not ask the keyring
                return password
            return entry.password or os.environ.get(entry.password_from, "") or url.password
    return ""


def _of_keyring(service: str, user: str, connection: str) -> str:
    try:
        import keyring
        from keyring.errors import KeyringError
    except ImportError:
        raise SourceError(
            f"the password of {connection} is in the keyring, and keyring is not installed",
            hint=install_extras("keyring"),
        ) from None
    try:
        password = keyring.get_password(service, user)
    except KeyringError as error:
        raise SourceError(f"the keyring cannot be read: {error}") from None
    if password is None:
        raise SourceError(
            f"the keyring has no password of {user} for {service}, which {connection} names",
            hint=f"keyring set {service} {user}",
        )
    return password


def _is_same_account(configured: str, shown: str) -> bool:
    """Return True if two displayed URLs are of one account. A port that only one of them has is the default port."""
    one, other = parse_server(configured), parse_server(shown)
    if None in (one.port, other.port):
        one, other = replace(one, port=None), replace(other, port=None)
    return one == other


def _read_secrets() -> dict[str, str]:
    kept = msgspec.json.decode(os.environ.get(SECRETS, "{}"), type=dict[str, str])
    if folder := os.environ.get(MOUNTED):
        with suppress(OSError):  # such as a program of a user, which has no account to read it
            mounted = msgspec.json.decode((Path(folder) / PASSWORDS).read_bytes(), type=dict[str, str])
            return {**mounted, **kept}
    return kept
