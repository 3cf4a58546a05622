"""Options before the SQL of a magic: `--source URL -o NAME SELECT …`.

The text after them may be any SQL, with quotes that are open at the line's end and with comments; so it is not
tokenized.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterable, Mapping

from edl.errors import SemanticError, did_you_mean

_OPTION = re.compile(r"\s*(--?[A-Za-z][\w-]*)")
_VALUE = re.compile(r"""(?:\s*=\s*|\s+)(?:"([^"]*)"|'([^']*)'|(?!-)(\S+))""")
_INTO = re.compile(r"\s*([^\W\d]\w*)\s*<<")

Options = dict[str, str]


def split_options(line: str, options_known: Mapping[str, str]) -> tuple[Options, str]:
    """Split the line into its options, by name without dashes, and the remaining text.

    options_known: placeholder for the value of each option; empty for a switch, which then has the value "yes". Raises
    SemanticError for an unknown option, or one without its value.
    """
    options: Options = {}
    while match := _OPTION.match(line):
        option = match[1]
        name = option.lstrip("-")
        if name not in options_known:
            hint = did_you_mean(option, map(format_option, options_known))
            raise SemanticError(f"unknown option {option}", hint=hint)
        line = line[match.end() :]
        if not options_known[name]:
            options[name] = "yes"
            continue
        value = _VALUE.match(line)
        if value is None:
            raise SemanticError(f"{option} needs a value", hint=f"{option} {options_known[name]}")
        options[name] = next(text for text in value.groups() if text is not None)
        line = line[value.end() :]
    return options, line


def split_name(text: str) -> tuple[str, str]:
    """Return the name of `name << SELECT …`, or an empty string, and the text with blanks in its place."""
    match = _INTO.match(text)
    if match is None:
        return "", text
    return match[1], _blank_out(match[0]) + text[match.end() :]


def check_names(names: Iterable[str]) -> None:
    """Check that the names are valid for variables. Raises SemanticError for the first that is not."""
    for name in names:
        if not name.isidentifier() or keyword.iskeyword(name):
            raise SemanticError(f"{name} cannot be the name of a variable")


def whole(name: str, value: str, most: int) -> int:
    """Parse a number from 0 to `most`. Raises SemanticError if the value is another text."""
    if not value.isdecimal() or int(value) > most:
        raise SemanticError(f"--{name} must be a whole number from 0 to {most:,}, not {value}")
    return int(value)


def format_option(name: str) -> str:
    """Return the option as it is written."""
    return f"-{name}" if len(name) == 1 else f"--{name}"


def _blank_out(text: str) -> str:
    """Return as many blanks as the text has characters, so that later places stay valid."""
    return "".join("\n" if char == "\n" else " " for char in text)
