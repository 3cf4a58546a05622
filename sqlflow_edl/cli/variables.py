"""`--var name=value`: a variable of the programs, which are templates when there is one."""

from __future__ import annotations

import argparse


def assignment(text: str) -> tuple[str, str]:
    """`name=value` of the command line. ArgumentTypeError: it is something else."""
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise argparse.ArgumentTypeError(f"expected NAME=VALUE, not {text!r}")
    return name, value
