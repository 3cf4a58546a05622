"""Data source of a command: its session, the message where it is missing, and the question for its password."""

from __future__ import annotations

import argparse
import glob
import itertools
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from getpass import getpass
from pathlib import Path
from typing import TYPE_CHECKING

from sqlflow_edl.cli import exit_codes

if TYPE_CHECKING:
    from edl.data.server_url import ServerURL
    from sqlflow_edl.backends.kubernetes.settings import Configuration
    from sqlflow_edl.session.observer import Observer
    from sqlflow_edl.session.session import Session

_NONE = """\
sqlflow {command}: no data source; give --source URL or set SQLFLOW_SOURCE
  sqlflow samples --source duckdb:///demo.duckdb   creates a database with sample tables
  sqlflow {command} --source duckdb:///demo.duckdb   then opens it; sqlflow help sources has the other URLs"""


# of a file in a query: in quotes, in curly ones, or with a suffix and none
_PATH = re.compile(
    r"\b(?:FROM|JOIN)\s+(?:'(?P<quoted>[^'\n]+)'|[‘“](?P<curly>[^’”\n]+)[’”]|(?P<unquoted>[\w./\\:-]+\.\w+))",
    re.IGNORECASE,
)


def no_source(options: argparse.Namespace) -> int:
    """Print that the command has no data source, and how to name one; return the exit code."""
    program = "\n".join(getattr(options, "execute", None) or [])
    missing = describe_missing_file(program, getattr(options, "files", None) or [])
    if missing:
        print(f"sqlflow {options.command}: {missing}", file=sys.stderr)
    else:
        print(_NONE.format(command=options.command), file=sys.stderr)
        for store, source in _stores_of_files():
            print(f"  {store} keeps models of {source}: --source {source}", file=sys.stderr)
    return exit_codes.USAGE


def _stores_of_files() -> Iterator[tuple[str, str]]:
    """Yield the databases with models of files in this folder, and the files, at most three."""
    from edl.data.url import SUFFIXES, TABLE_FILES
    from edl.sources.files import STORE

    files = [path for path in Path().iterdir() if SUFFIXES.get(path.suffix) in TABLE_FILES]
    for store in sorted(Path().glob(f"*{STORE}"))[:3]:
        for file in files:
            if file.stem == store.name.removesuffix(STORE):
                yield store.name, file.name


def describe_missing_file(program: str, files: Sequence[str] = ()) -> str:
    """Return what is wrong with the path of a file in the FROM of a query, or of a command; empty if there is none."""
    from edl.data.missing_files import missing_file_hint
    from edl.data.url import SUFFIXES

    for match in _PATH.finditer(program):
        quoted, unquoted = match["quoted"] or match["curly"], match["unquoted"]
        path = quoted or unquoted
        if match["curly"]:
            return f"‘ and “ are no quotes of SQL; write straight quotes: '{path}'"
        if unquoted and not unquoted.lower().endswith(tuple(SUFFIXES)):
            continue
        if unquoted and Path(unquoted).is_file():
            return f"the path of a file has quotes: FROM '{path}'"
        if not Path(path).is_file() and not glob.has_magic(path.partition("?")[0]):
            hint = missing_file_hint(path, quote="'") or "check the path"
            return hint if Path(path).is_dir() else f"there is no file {path}; {hint}"
    for file in files:
        if file.lower().endswith(tuple(SUFFIXES)) and not Path(file).exists():
            return f"there is no file {file}; {missing_file_hint(file) or 'check the path'}"
    return ""


def find_file(program: str) -> str:
    """Return the file of rows, or the pattern of files, that queries of the program read by its path, as in
    `FROM 'customers.csv'`; empty if there is none, or there are several.
    """
    from edl.data.url import SUFFIXES, names_file
    from sqlflow_edl.syntax.dialects import DIALECTS
    from sqlflow_edl.syntax.lexer import code_tokens

    tokens = list(code_tokens(program, 0, DIALECTS["duckdb"]))
    paths = {
        path.text[1:-1]
        for before, path in itertools.pairwise(tokens)
        if before.word in ("FROM", "JOIN") and path.kind == "string"
    }
    if len(paths) != 1:
        return ""
    [path] = paths
    matches = glob.iglob(path) if path.lower().endswith(tuple(SUFFIXES)) else ()  # noqa: PTH207 - a pattern of any folder
    return path if names_file(path) or any(map(names_file, matches)) else ""


def open_session(
    options: argparse.Namespace,
    source: str,
    observer: Observer,
    place: Configuration | None,
    *,
    create: bool = False,
    share: int = 1,
) -> Session:
    """Open the session of a command that runs statements, by its options."""
    from sqlflow_edl.session.session import Session

    session = Session(
        source,
        dialect=options.dialect,
        create=create,
        observer=observer,
        workers=options.workers,
        quota=options.quota,
        priority=options.priority,
        deadline=options.deadline,
        model_store=options.model_store,
        place=place,
        share=share,
        retrained=options.model if options.command == "retrain" else "",
    )
    session.maintain()
    return session


def ask_password(options: argparse.Namespace) -> str:
    """Ask for the password of the data source, and keep it for the session; return an error, or an empty string."""
    from edl.data.server_url import ServerURL
    from edl.data.url import parse
    from edl.errors import SourceError

    try:
        url = parse(options.source or "")
    except SourceError:
        return ""  # the command reports it
    if not isinstance(url, ServerURL):
        return f"--password is for databases on servers, not for {url.scheme}"
    if url.password:
        return "--password asks for the password, and the URL has one"
    if not sys.stdin.isatty():
        return "--password needs a terminal; connections.toml can name a variable of the environment instead"
    password = type_password(url)
    if not password:
        return "no password was typed"
    url.keep(password)
    return ""


def type_password(url: ServerURL) -> str:
    """Ask for the password of a URL at the terminal; return an empty text at the end of input."""
    try:
        return getpass(f"Password for {url}: ")
    except EOFError:
        return ""


@contextmanager
def password_prompt(at_terminal: bool) -> Iterator[None]:
    """Let connections that a server refuses without a password ask for one, inside the context."""
    from edl.data.server_url import PROMPT

    token = PROMPT.set(type_password if at_terminal else None)
    try:
        yield
    finally:
        PROMPT.reset(token)
