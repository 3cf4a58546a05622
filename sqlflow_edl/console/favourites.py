"""Favourite statements of a user, with parameters $1, $2, … that become values of SQL, never other text."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from edl.errors import SemanticError, did_you_mean
from edl.jobs.job_folder import state_folder
from sqlflow_edl.console.secrets import holds_secret
from sqlflow_edl.display.files import name_write_errors
from sqlflow_edl.syntax.dialects import Dialect
from sqlflow_edl.syntax.lexer import Token, sql_tokens

FILE = "favourites.json"

_NAME = re.compile(r"\w[\w-]*")
_PARAMETER = re.compile(r"\$([1-9]\d?)(?!\d)")
_ARGUMENT = re.compile(r"""\s*('(?:[^']|'')*'|"(?:[^"]|"")*"|[^\s'"]+)(?=\s|$)""")
_BARE = re.compile(r"[+-]?(?:0|[1-9]\d*)(?:\.\d+)?(?:e[+-]?\d+)?|null|true|false", re.IGNORECASE)
_OPENING = "'\"`eE"  # of strings and names in which a doubled quote stands for itself


def favourites() -> dict[str, str]:
    """Return the statements by name. Raises SemanticError if their file is damaged or cannot be read."""
    path = state_folder() / FILE
    try:
        return dict(sorted(msgspec.json.decode(path.read_bytes(), type=dict[str, str]).items()))
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise SemanticError(f"cannot read {path}: {error.strerror}") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise SemanticError(f"{path} is damaged: {error}", hint="correct or remove it") from None


def names() -> tuple[str, ...]:
    """Return the names, or none while the file cannot be read."""
    with contextlib.suppress(SemanticError):
        return tuple(favourites())
    return ()


def find(name: str) -> str:
    """Return the statement of that name. Raises SemanticError with the nearest name if there is none."""
    by_name = favourites()
    if name not in by_name:
        hint = did_you_mean(name, by_name) or "/fs NAME STATEMENT makes one"
        raise SemanticError(f"there is no favourite {name}", hint=hint)
    return by_name[name]


def save(name: str, statement: str) -> None:
    """Keep a statement, or replace the one of that name.

    Raises SemanticError for a name that is none, or for a statement that may hold a password.
    """
    if not _NAME.fullmatch(name):
        raise SemanticError(f"{name} cannot name a favourite", hint="letters, digits, - and _")
    if holds_secret(statement):
        raise SemanticError(
            "the statement may contain a password, and is not kept",
            hint="type it each time: no statement with a word such as password or token is kept",
        )
    _write(favourites() | {name: statement})


def remove(name: str) -> None:
    """Remove a favourite. Raises SemanticError if there is none of that name."""
    find(name)
    _write({other: text for other, text in favourites().items() if other != name})


def arguments(text: str) -> list[str]:
    """Split arguments at spaces outside of quotes, which stay. Raises SemanticError for an open quote."""
    result, end = [], 0
    while match := _ARGUMENT.match(text, end):
        result.append(match[1])
        end = match.end()
    if rest := text[end:].strip():
        raise SemanticError(
            f"a quote is not closed, or stands within a word, in {rest}", hint="write it's as 'it''s'"
        )
    return result


def parameters(statement: str, dialect: Dialect) -> int:
    """Return the highest number of a parameter in the statement."""
    pieces = (token.text for token in _holding(statement, dialect))
    return max((int(number) for piece in pieces for number in _PARAMETER.findall(piece)), default=0)


def fill_parameters(statement: str, values: Sequence[str], dialect: Dialect) -> str:
    """Return the statement with the arguments in place of its parameters.

    A number, NULL, TRUE or FALSE without quotes stays so, any other argument becomes a string. A parameter within
    quotes is replaced by the text of its argument, in which those quotes are doubled. Raises SemanticError for a
    wrong number of arguments, and where an argument could end its quotes.
    """
    needed = parameters(statement, dialect)
    if len(values) != needed:
        raise SemanticError(
            f"it takes {needed} argument{'s' * (needed != 1)}, not {len(values)}", hint=statement
        )
    if wrong := next((value for value in values if "\\" in value or "\0" in value), None):
        raise SemanticError(
            f"the argument {wrong} has a backslash, which databases read differently",
            hint="write it in the statement",
        )
    parts, end = [], 0
    for token in _holding(statement, dialect):
        parts += [statement[end : token.start], _replace_parameter(token, values, dialect)]
        end = token.end
    return "".join((*parts, statement[end:]))


def _holding(statement: str, dialect: Dialect) -> Iterator[Token]:
    """Yield the tokens with parameters: words that are one, and quoted texts that have some."""
    for token in sql_tokens(statement, 0, dialect):
        quoted = token.kind in ("string", "name")
        if _PARAMETER.search(token.text) if quoted else _PARAMETER.fullmatch(token.text):
            yield token


def _replace_parameter(token: Token, values: Sequence[str], dialect: Dialect) -> str:
    if token.kind == "word":
        value = values[int(token.text[1:]) - 1]
        if _BARE.fullmatch(value):
            return f" {value}" if value.startswith("-") else value  # `1 -$1` must not begin a comment
        return f"'{_escape_text(_text(value), chr(39), dialect)}'"
    if token.text[0] not in _OPENING:
        raise SemanticError(f"a parameter cannot stand in {token.text}", hint="use quotes: '…'")
    quote = token.text[-1]
    return _PARAMETER.sub(
        lambda match: _escape_text(_text(values[int(match[1]) - 1]), quote, dialect), token.text
    )


def _text(argument: str) -> str:
    """Return the text of an argument without its quotes."""
    quote = argument[0]
    return argument[1:-1].replace(quote * 2, quote) if quote in "'\"" else argument


def _escape_text(text: str, quote: str, dialect: Dialect) -> str:
    # Hive and its like read 'it''s' as two strings; MySQL may be set to take a backslash for itself.
    backslash = dialect.backslash_escapes and dialect.name != "mysql" and quote != "`"
    return text.replace(quote, ("\\" if backslash else quote) + quote)


def _write(kept: dict[str, str]) -> None:
    path: Path = state_folder() / FILE
    partial = path.with_name(f"{FILE}.{secrets.token_hex(4)}.partial")
    with name_write_errors(path):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(msgspec.json.format(msgspec.json.encode(kept)))
        partial.replace(path)
