"""`--var name=value`: a variable of the programs, which are templates if there is one."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable
from datetime import datetime

from edl.errors import SQLFlowError
from sqlflow_edl.session.texts.expansion import expanded
from sqlflow_edl.session.texts.templates import rendered


def assignment(text: str) -> tuple[str, str]:
    """Parse `name=value` of the command line, with `${…}` in the value expanded.

    Raises ArgumentTypeError if the text has another form or cannot be expanded.
    """
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise argparse.ArgumentTypeError(f"expected NAME=VALUE, not {text!r}")
    try:
        return name, expanded(value, datetime.now().astimezone(), os.environ)
    except SQLFlowError as error:
        raise argparse.ArgumentTypeError(f"{error.message}; {error.hint}".removesuffix("; None")) from None


def filled(text: str, variables: Iterable[tuple[str, str]]) -> str:
    """Fill in the variables.

    Without variables the text is unchanged, so that braces in ordinary SQL mean nothing special. Raises
    SQLFlowError with the place in `text`.
    """
    given = dict(variables)
    return rendered(text, given) if given else text
