"""What the commands that serve over HTTP share: what must be installed, and the token of requests."""

from __future__ import annotations

import argparse
import ipaddress
import os
import sys
from importlib.util import find_spec
from pathlib import Path

from edl.errors import SQLFlowError
from edl.installation import install_extras

_LOCAL = ("localhost", "127.0.0.1", "::1")
TOKEN = "SQLFLOW_SERVE_TOKEN"  # noqa: S105 - name of the variable


def add_options(command: argparse.ArgumentParser, port: int, sends: str) -> None:
    """Add the options. sends: how requests carry the token."""
    command.add_argument(
        "--host", default="127.0.0.1", help="address to listen on (default: this machine only)"
    )
    command.add_argument(
        "--port", type=int, default=port, help=f"port to listen on; 0 takes a free one (default: {port})"
    )
    command.add_argument(
        "--token-file", metavar="FILE", type=Path, help=f"file with the token that {sends} (default: {TOKEN})"
    )


def check_installed() -> None:
    """Raise SQLFlowError if the packages of a server are missing."""
    for package in ("starlette", "uvicorn"):
        if find_spec(package) is None:
            raise SQLFlowError(f"{package} is not installed", hint=install_extras("serve"))


def token_for(host: str, file: Path | None) -> str | None:
    """Return the token of the file or the variable, or None. Raises SQLFlowError if it is empty or no header, or if
    there is none on an address that other machines reach.
    """
    token = _token(file)
    if token is None and not is_local(host):
        raise SQLFlowError(
            f"{host} can be reached from other machines, so requests need a token",
            hint=f"set {TOKEN}, or name a file with --token-file; --host 127.0.0.1 needs none",
        )
    return token


def _token(file: Path | None) -> str | None:
    if file is not None:
        try:
            token, where = file.read_text().strip(), str(file)
        except (OSError, UnicodeDecodeError) as error:
            raise SQLFlowError(f"cannot read {file}: {getattr(error, 'strerror', None) or error}") from None
    elif TOKEN in os.environ:
        token, where = os.environ[TOKEN].strip(), TOKEN
    else:
        return None
    if not token or not token.isascii() or not token.isprintable() or " " in token:
        raise SQLFlowError(
            f"{where} holds no token", hint="a token has letters, digits and signs, without spaces"
        )
    return token


def is_local(host: str) -> bool:
    """Return True if the host names the loopback interface."""
    if host.casefold() in _LOCAL:
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
