"""`--var name=value`: a variable of the programs, which are templates if there is one."""

from __future__ import annotations

import argparse
from collections.abc import Iterable

from sqlflow_edl.session.templates import rendered


def assignment(text: str) -> tuple[str, str]:
    """Parse `name=value` of the command line. Raises ArgumentTypeError if the text has another form."""
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise argparse.ArgumentTypeError(f"expected NAME=VALUE, not {text!r}")
    return name, value


def filled(text: str, variables: Iterable[tuple[str, str]]) -> str:
    """Fill in the variables.

    Without variables the text is unchanged, so that braces in ordinary SQL mean nothing special. Raises
    SQLFlowError with the place in `text`.
    """
    given = dict(variables)
    return rendered(text, given) if given else text
