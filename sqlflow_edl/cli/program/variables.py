"""`--var name=value`: a variable of the programs, which are templates if there is one."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from edl.errors import SQLFlowError


@dataclass(frozen=True, slots=True)
class ProgramVariable:
    """Variable of the programs.

    written: value on the command line. at: time of the dates in it. value: what it is then.
    """

    name: str
    written: str
    at: datetime
    value: str


def variable(name: str, text: str, at: datetime) -> ProgramVariable:
    """Make a variable. Raises SQLFlowError if its value cannot be expanded."""
    from sqlflow_edl.session.texts.expansion import expand_variables

    return ProgramVariable(name, text, at, expand_variables(text, at, os.environ))


def assignment(text: str) -> ProgramVariable:
    """Parse `name=value` of the command line, with `${…}` in the value expanded.

    Raises ArgumentTypeError if the text has another form or cannot be expanded.
    """
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise argparse.ArgumentTypeError(f"expected NAME=VALUE, not {text!r}")
    try:
        return variable(name, value, datetime.now().astimezone())
    except SQLFlowError as error:
        raise argparse.ArgumentTypeError(f"{error.message}; {error.hint}".removesuffix("; None")) from None


def setting(text: str) -> tuple[str, str]:
    """Parse `name=value` of the command line, like `assignment`, where neither is a variable of the programs."""
    parsed = assignment(text)
    return parsed.name, parsed.value


def fill_variables(text: str, variables: Iterable[ProgramVariable], dialect: str) -> str:
    """Fill in the variables, and dates such as `${yyyyMMdd -1d}`.

    Without variables the other text is unchanged, so that braces in ordinary SQL mean nothing special. Raises
    SQLFlowError with the place in `text`.
    """
    if "${" in text:
        from sqlflow_edl.session.texts.expansion import expand_dates

        text = expand_dates(text, datetime.now().astimezone())
    values = {one_variable.name: one_variable.value for one_variable in variables}
    if not values:
        return text
    from sqlflow_edl.session.texts.templates import render_template

    return render_template(text, values, dialect)
