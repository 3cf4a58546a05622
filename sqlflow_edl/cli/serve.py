"""`sqlflow serve`: predictions of the models of a data source over HTTP."""

from __future__ import annotations

import argparse
import os
import sys
from importlib.util import find_spec
from pathlib import Path

from edl.errors import SQLFlowError
from sqlflow_edl.cli import exit_codes
from sqlflow_edl.cli.errors import reported
from sqlflow_edl.cli.source import no_source

TOKEN = "SQLFLOW_SERVE_TOKEN"  # noqa: S105 - name of the variable


@reported
def serve(options: argparse.Namespace) -> int:
    """Run the command until SIGTERM or Ctrl-C, and return the exit code."""
    if not (options.source or options.model_store):
        return no_source(options)
    _check_installed()
    from sqlflow_edl.serving.app import Limits
    from sqlflow_edl.serving.catalog import Catalog, Store
    from sqlflow_edl.serving.guard import is_local
    from sqlflow_edl.serving.server import listen, run

    token = _token(options.token_file)
    if token is None and not is_local(options.host):
        raise SQLFlowError(
            f"{options.host} can be reached from other machines, so requests need a token",
            hint=f"set {TOKEN}, or name a file with --token-file; --host 127.0.0.1 needs none",
        )
    listening = listen(options.host, options.port)
    catalog = Catalog(Store(options.source or "", options.model_store), options.model, _say)
    with listening:
        catalog.start()
        limits = Limits(options.max_bytes, options.max_rows, options.timeout)
        try:
            run(listening, catalog, limits, token=token, poll=options.poll, log=_say)
        except KeyboardInterrupt:  # also SIGTERM; requests under way have been answered
            _say("ended")
    return exit_codes.OK


def _check_installed() -> None:
    for package in ("starlette", "uvicorn"):
        if find_spec(package) is None:
            raise SQLFlowError(f"{package} is not installed", hint="pip install 'sqlflow-edl[serve]'")


def _token(file: Path | None) -> str | None:
    """Return the token of the file or the variable, or None. Raises SQLFlowError if it is empty or no header."""
    if file is not None:
        try:
            found, where = file.read_text().strip(), str(file)
        except (OSError, UnicodeDecodeError) as error:
            raise SQLFlowError(f"cannot read {file}: {getattr(error, 'strerror', None) or error}") from None
    elif TOKEN in os.environ:
        found, where = os.environ[TOKEN].strip(), TOKEN
    else:
        return None
    if not found or not found.isascii() or not found.isprintable() or " " in found:
        raise SQLFlowError(
            f"{where} holds no token", hint="a token has letters, digits and signs, without spaces"
        )
    return found


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
