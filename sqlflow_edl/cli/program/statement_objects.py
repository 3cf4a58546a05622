"""`--json`: a line with one JSON object for each statement, as soon as the statement has ended.

Rows are written as they are read, so that an object may be larger than the memory. The fields that are known
only then, such as the outcome, come after them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import IO, TYPE_CHECKING, Any

import msgspec

from edl.data.cells import format_count
from edl.errors import ErrorList, SQLFlowError
from edl.jobs.outcome import JobInterruptedError
from edl.jobs.termination import TerminatedError
from sqlflow_edl.cli.program.inputs import Text
from sqlflow_edl.cli.program.output import UNREAD, Sheet
from sqlflow_edl.display.narrator import ProgramStep
from sqlflow_edl.display.output import keys, objects
from sqlflow_edl.errors.render import locate
from sqlflow_edl.reports.result import Result

if TYPE_CHECKING:
    from sqlflow_edl.cli.program.output import ProgramOutput


class ObjectSheet(Sheet):
    """Object of one statement."""

    def __init__(self, output: ProgramOutput, out: IO[str], step: ProgramStep, kind: str) -> None:
        super().__init__(output, out, step, kind)
        self._begun = False

    def rows(self, result: Result) -> str:
        """Write the columns and the rows."""
        if result.reader is None:
            return ""
        schema = result.reader.schema
        columns = [
            {"name": name, "type": str(field.type)}
            for name, field in zip(keys(schema.names), schema, strict=True)
        ]
        total = 0
        footer = UNREAD
        with self._output.adding():
            self._add({"columns": columns})
            self._out.write(',"rows":[')
            try:
                for row in objects(result.reader):
                    self._out.write(f",{row}" if total else row)
                    total += 1
            finally:
                self._out.write("]")
            footer = format_count(total, "row")
        self._add({"row_count": total})
        return footer

    def text(self, text: str) -> None:
        """Write a text, such as the objects of a job on Kubernetes."""
        with self._output.adding():
            self._add({"text": text})

    def ends(
        self, outcome: str, seconds: float = 0.0, *, result: Result | None = None, why: str = ""
    ) -> None:
        self._end({"outcome": outcome, **_facts(result), **_drop_empty_fields(reason=why)}, seconds)

    def interrupts(self, error: JobInterruptedError | TerminatedError, seconds: float) -> None:
        if isinstance(error, TerminatedError) and error.cancels:
            self.ends("cancelled", seconds)
            return
        kept = next(iter(error.kept), "")
        more = {"job": kept, "command": f"sqlflow resume {kept}"} if kept else {}
        self._end({"outcome": "interrupted", "resumable": bool(kept), **more}, seconds)

    def fails(self, error: SQLFlowError, text: Text, seconds: float = 0.0) -> None:
        errors = error.errors if isinstance(error, ErrorList) else (error,)
        self._end({"outcome": "error", "errors": [_error(one_error, text) for one_error in errors]}, seconds)

    def _end(self, fields: Mapping[str, Any], seconds: float) -> None:
        with self._output.writing():
            self._add({**fields, "seconds": round(seconds, 3)})
            self._out.write("}\n")
            self._out.flush()

    def _add(self, fields: Mapping[str, Any]) -> None:
        """Write fields, after the fields of the statement itself if they are the first."""
        if not self._begun:
            head = {"statement": self._step.number, "kind": self._kind, "title": self._step.title}
            fields = {name: value for name, value in head.items() if value} | dict(fields)
        self._out.write(("," if self._begun else "{") + _members(fields))
        self._begun = True


def _members(fields: Mapping[str, Any]) -> str:
    return msgspec.json.encode(fields).decode()[1:-1]


def _drop_empty_fields(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value not in ("", 0, None) and value != ()}


def _facts(result: Result | None) -> dict[str, Any]:
    if result is None:
        return {}
    return _drop_empty_fields(
        message=result.message,
        verdict=result.verdict,
        model=result.model,
        figures=dict(result.figures) if result.figures is not None else None,
        measured_on=result.measured_on,
        compared_with=result.rival.reference if result.rival is not None else None,
        figures_of_compared=dict(result.rival.figures) if result.rival is not None else None,
        importances=dict(result.importances) if result.importances else None,
        ending=result.ending,
        rows_written=result.rows,
        notes=result.notes,
        warnings=result.warnings,
    )


def _error(error: SQLFlowError, text: Text) -> dict[str, Any]:
    fields = {
        "code": error.code,
        "message": error.message,
        **_drop_empty_fields(hint=error.hint, corrected=error.corrected),
    }
    if error.span is not None and text.text:
        place = locate(text.text, error.span)
        fields |= {
            **_drop_empty_fields(file=text.name),
            "line": place.line,
            "column": place.column,
            "width": place.width,
        }
    return fields
