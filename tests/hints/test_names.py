"""Commands, options, attributes and packages that a hint names exist, also in hints that no case executes."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable, Mapping
from configparser import ConfigParser
from functools import cache

from edl.cli import main as edl_command
from sqlflow_edl.analysis.settings import reference
from sqlflow_edl.cli import main as sqlflow_command
from tests.documentation import REPOSITORY, subcommands
from tests.hints import register

_COMMAND = re.compile(
    r"(?:^|`|\b(?:by|with|see|or|and) |: )(sqlflow|edl) (?!is\b|wants\b)([a-z]+)([^`;,()]*)"
)
_OPTION = re.compile(r"(?<![\w-])--[a-z][\w-]*")
_ATTRIBUTE = re.compile(
    r"(?<![/\"])\b(?:train|model|optimizer|validation|predict|evaluate|explain|auto|forecast|solver|kubernetes)"
    r"\.(?!py\b)[a-z_]+\b(?![({])"
)
_ELSEWHERE = re.compile(r"kubectl|CMD|%sqlflow|--persist")  # options of other programs and of the notebook
_EXTRA = re.compile(r"sqlflow-edl\[([\w,-]+)\]")


@cache
def hints() -> tuple[str, ...]:
    return tuple(sorted({site.pattern for site in register.read()}))


@cache
def parsers() -> Mapping[str, Mapping[str, argparse.ArgumentParser]]:
    return {"sqlflow": subcommands(sqlflow_command._parser()), "edl": edl_command._parser()[1]}


def options(parsers: Iterable[argparse.ArgumentParser]) -> set[str]:
    return {option for parser in parsers for option in parser._option_string_actions}


def test_commands_in_hints_exist_and_have_the_options_beside_them() -> None:
    unknown = [
        (program, command, hint)
        for hint in hints()
        for program, command, rest in _COMMAND.findall(hint)
        if command not in parsers()[program]
        or set(_OPTION.findall(rest)) - options([parsers()[program][command]])
    ]
    assert not unknown


def test_options_in_hints_are_those_of_a_command() -> None:
    known = options(parser for commands in parsers().values() for parser in commands.values())
    unknown = [
        (option, hint)
        for hint in hints()
        if not _ELSEWHERE.search(hint)
        for option in _OPTION.findall(hint)
        if option not in known
    ]
    assert not unknown


def test_attributes_in_hints_are_in_the_reference() -> None:
    known = {*_ATTRIBUTE.findall(reference.page())}
    unknown = [(name, hint) for hint in hints() for name in _ATTRIBUTE.findall(hint) if name not in known]
    assert not unknown


def test_packages_in_hints_are_extras_of_the_distribution() -> None:
    setup = ConfigParser()
    setup.read(REPOSITORY / "setup.cfg", encoding="utf-8")
    known = set(setup["options.extras_require"])
    unknown = [hint for hint in hints() for names in _EXTRA.findall(hint) if set(names.split(",")) - known]
    assert not unknown
