"""`sqlflow completion bash|zsh|fish`: print a script that completes commands and options, made from the parser.

Options without a command are the options of `run`: `sqlflow -e SQL` is its short form. Options of the commands of a
command, as of `image`, are offered together.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from sqlflow_edl.cli import exit_codes
from sqlflow_edl.cli.arguments import Commands, subcommand

LEFT_OUT = "run"  # command of options without one


@dataclass(frozen=True, slots=True)
class Option:
    """Option of a command. values: its choices. takes: it has a value."""

    names: tuple[str, ...]
    doc: str
    values: tuple[str, ...]
    takes: bool


@dataclass(frozen=True, slots=True)
class Completed:
    """Command with its one-line description and its options."""

    name: str
    doc: str
    options: tuple[Option, ...]
    words: tuple[str, ...]  # choices of its arguments, such as its own commands


def completion(options: argparse.Namespace) -> int:
    """Run the command and return the exit code."""
    from sqlflow_edl.cli.main import _parser

    print(SHELLS[options.shell](commands(_parser())))
    return exit_codes.OK


def commands(parser: argparse.ArgumentParser) -> list[Completed]:
    """Return the commands of the parser."""
    subparsers = next(action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    docs = {action.dest: action.help or "" for action in subparsers._choices_actions}
    return [_command(name, docs.get(name, ""), subparser) for name, subparser in subparsers.choices.items()]


def _command(name: str, doc: str, parser: argparse.ArgumentParser) -> Completed:
    options, words = dict[tuple[str, ...], Option](), list[str]()
    for action in parser._actions:
        values = tuple(map(str, action.choices or ()))
        if isinstance(action, argparse._SubParsersAction):
            parts = [_command(part, "", of_part) for part, of_part in action.choices.items()]
            options |= {option.names: option for part in parts for option in part.options}
        if action.option_strings:
            names = tuple(action.option_strings)
            options[names] = Option(names, _doc(action.help or ""), values, action.nargs != 0)
        else:
            words += values
    return Completed(name, doc, tuple(options.values()), tuple(words))


def _doc(text: str) -> str:
    """Return the first part of a help text, without remarks in parentheses."""
    return re.sub(r" ?\([^)]*\)", "", text.partition(";")[0]).strip().replace("%%", "%")


def _quote(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def bash(all_commands: list[Completed]) -> str:
    """Return a script for Bash, 3.2 or later."""
    cases = "\n".join(_bash_case(command) for command in all_commands)
    return f"""\
_sqlflow() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}} options= values=
  COMPREPLY=()
  case $before$word in  # Bash has = as a word of its own
    *=) before=${{COMP_WORDS[COMP_CWORD-1]}} word= ;;
    =*) before=${{COMP_WORDS[COMP_CWORD-2]}} ;;
  esac
  if [ "$COMP_CWORD" -eq 1 ] && [ "${{word#-}}" = "$word" ]; then
    COMPREPLY=($(compgen -W {_quote(" ".join(command.name for command in all_commands))} -- "$word"))
    return
  fi
  case ${{COMP_WORDS[1]}} in
{cases}
  esac
  case $word in
    -*) COMPREPLY=($(compgen -W "$options" -- "$word")) ;;
    *) COMPREPLY=($(compgen -W "$values" -- "$word")) ;;
  esac
}}
complete -o default -F _sqlflow sqlflow"""


def _bash_case(command: Completed) -> str:
    names = " ".join(name for option in command.options for name in option.names)
    chosen = "".join(
        f" {'|'.join(option.names)}) values={_quote(' '.join(option.values))} ;;"
        for option in command.options
        if option.values
    )
    pattern = f"{command.name}|-*" if command.name == LEFT_OUT else command.name
    return (
        f"    {pattern}) options={_quote(names)}; values={_quote(' '.join(command.words))}\n"
        f"      case $before in{chosen} esac ;;"
    )


def zsh(all_commands: list[Completed]) -> str:
    """Return a script for zsh: to be evaluated, or to be a file `_sqlflow` in a folder of `fpath`."""
    listed = "\n".join(f"    {_quote(_escape(command.name) + ':' + command.doc)}" for command in all_commands)
    cases = "\n".join(
        f"    {command.name}) _arguments {' '.join(_zsh_options(command))} {_zsh_words(command)} ;;"
        for command in all_commands
    )
    return f"""\
#compdef sqlflow
_sqlflow() {{
  local -a commands=(
{listed}
  )
  local command={LEFT_OUT}
  if [[ $words[2] != -* ]]; then
    if (( CURRENT == 2 )); then
      _describe command commands
      return
    fi
    command=$words[2]
    shift words
    (( CURRENT-- ))
  fi
  case $command in
{cases}
  esac
}}
compdef _sqlflow sqlflow"""


def _zsh_options(command: Completed) -> Iterator[str]:
    for option in command.options:
        values = f"({' '.join(option.values)})" if option.values else "_files"
        for name in option.names:
            doc = _escape(option.doc).replace("[", "\\[").replace("]", "\\]")
            yield _quote(f"*{name}[{doc}]" + (f":value:{values}" if option.takes else ""))


def _zsh_words(command: Completed) -> str:
    return _quote(f"*:value:({' '.join(command.words)})" if command.words else "*:file:_files")


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace(":", "\\:")


def fish(all_commands: list[Completed]) -> str:
    """Return a script for fish."""
    lines = []
    for command in all_commands:
        lines.append(
            f"complete -c sqlflow -n __fish_use_subcommand -f -a {command.name} -d {_fish_quoted(command.doc)}"
        )
        seen = f"__fish_seen_subcommand_from {command.name}"
        if command.name == LEFT_OUT:
            others = " ".join(other.name for other in all_commands if other is not command)
            seen = f"not __fish_seen_subcommand_from {others}"
        within = f"complete -c sqlflow -n {_fish_quoted(seen)}"
        if command.words:
            lines.append(f"{within} -f -a {_fish_quoted(' '.join(command.words))}")
        for option in command.options:
            names = " ".join(
                f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in option.names
            )
            values = f" -x -a {_fish_quoted(' '.join(option.values))}" if option.values else ""
            takes = " -r" if option.takes and not option.values else ""
            lines.append(f"{within} {names} -d {_fish_quoted(option.doc)}{values}{takes}")
    return "\n".join(lines)


def _fish_quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


SHELLS: dict[str, Callable[[list[Completed]], str]] = {"bash": bash, "zsh": zsh, "fish": fish}


def add_command(commands: Commands) -> None:
    """Add the command."""
    parser = subcommand(commands, "completion", "print a script for completion in a shell")
    parser.add_argument("shell", choices=tuple(SHELLS))
