"""Statements of a command line, numbered across its files and texts, and the choice of `--select`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from edl.errors import SemanticError, SQLFlowError, did_you_mean
from sqlflow_edl.analysis.programs.dependencies import Access, accesses, find_needed
from sqlflow_edl.analysis.programs.outline import title
from sqlflow_edl.cli.program.inputs import Text
from sqlflow_edl.display.narrator import ProgramStep
from sqlflow_edl.syntax import Statement


@dataclass(frozen=True, slots=True)
class ProgramEntry:
    """Statement with its place in the run, or the error that stands for an unreadable one.

    text: the text it comes from. problem: error that was found before anything ran, and is reported.
    """

    step: ProgramStep
    statement: Statement | None
    text: Text
    problem: SQLFlowError | None = None

    @property
    def kind(self) -> str:
        return self.statement.kind if self.statement is not None else ""


def entries(read: Sequence[tuple[Statement | SQLFlowError, Text]], dialect: str) -> list[ProgramEntry]:
    """Return the statements with their numbers; an error takes the place of an unreadable one."""
    result = []
    for number, (parsed, text) in enumerate(read, 1):
        if isinstance(parsed, SQLFlowError):
            result.append(ProgramEntry(ProgramStep(number, len(read), ""), None, text, parsed))
        else:
            result.append(ProgramEntry(ProgramStep(number, len(read), title(parsed, dialect)), parsed, text))
    return result


def select_entries(program: Sequence[ProgramEntry], names: Iterable[str], dialect: str) -> list[ProgramEntry]:
    """Return the statements that `--select` chooses, with the earlier ones that they need, in their order.

    names: numbers of statements, and names of the models and tables that they make; several may be joined by
    commas. Unreadable statements stay. Raises SQLFlowError for a number or name that the program does not have.
    """
    readable = [entry for entry in program if entry.statement is not None]
    accessed = accesses([entry.statement for entry in readable if entry.statement is not None], dialect)
    chosen: set[int] = set()
    for name in [part.strip() for names_given in names for part in names_given.split(",") if part.strip()]:
        chosen |= _positions(name, program, readable, accessed)
    kept = {readable[position].step.number for position in find_needed(accessed, chosen)}
    return [entry for entry in program if entry.statement is None or entry.step.number in kept]


def _positions(
    name: str, program: Sequence[ProgramEntry], readable: Sequence[ProgramEntry], accessed: Sequence[Access]
) -> set[int]:
    if name.isdecimal():
        positions = {position for position, entry in enumerate(readable) if entry.step.number == int(name)}
        if not positions and not 0 < int(name) <= len(program):
            raise SemanticError(
                f"--select: there is no statement {name}", hint=f"the program has {len(program)}"
            )
        return positions
    parts_wanted = tuple(name.casefold().split("."))
    things_made = [(position, thing) for position, access in enumerate(accessed) for thing in access.writes]
    positions = {
        position
        for position, thing in things_made
        if tuple(part.casefold() for part in ".".join(thing.parts).split("."))[-len(parts_wanted) :]
        == parts_wanted
    }
    if not positions:
        names = dict.fromkeys(".".join(thing.parts) for _, thing in things_made)
        raise SemanticError(
            f"--select: no statement makes {name}", hint=did_you_mean(name, names) or "--dry-run numbers them"
        )
    return positions
