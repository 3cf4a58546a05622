"""Options of an import, from a statement or a command line, with their places for errors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from edl.errors import SemanticError, Span, did_you_mean
from edl.spec.imported import FileFormat
from sqlflow_edl.extensions.imported.statement import PATH, TYPE, list_of, text_of
from sqlflow_edl.syntax.ast import Constant, Statement

KINDS = ("number", "probabilities", "logits", "class")


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """Options. spans: places of their values in the statement, by name.

    `columns`: names of the columns in the order of the inputs. `label`: column that is predicted, None for its name in
    the file. `classes`: in the order of the scores. `rounds`: of trees, 0 for those that the file says.
    """

    path: str
    format: FileFormat | None = None
    columns: tuple[str, ...] = ()
    label: str = ""
    classes: tuple[str | int | bool, ...] = ()
    output: str = ""
    kind: str = ""
    rounds: int = 0
    spans: Mapping[str, Span] = field(default_factory=dict)

    def error(self, option: str, message: str, hint: str | None = None) -> SemanticError:
        """Make an error at the place of an option, or of the file without it."""
        return SemanticError(message, span=self.spans.get(option, self.spans.get(PATH)), hint=hint)


def read_options(statement: Statement) -> ImportOptions:
    """Return the options of a statement. Their forms were checked. Raises SemanticError for a wrong value."""
    by_name = {attribute.key.casefold(): attribute for attribute in statement.attributes}
    spans = {name: attribute.value.span for name, attribute in by_name.items()}

    def values(name: str) -> tuple[object, ...]:
        items = list_of(by_name[name]) if name in by_name else ()
        return tuple(item.value for item in items if isinstance(item, Constant))

    options = ImportOptions(
        text_of(by_name[PATH]),
        text_of(by_name[TYPE]).casefold(),  # type: ignore[arg-type]  # one of these, says the parser
        tuple(map(str, values("input_columns"))),
        "".join(map(str, values("input_label_cols"))),
        values("classes"),  # type: ignore[arg-type]  # texts and numbers, says the parser
        text_of(by_name["output"]) if "output" in by_name else "",
        text_of(by_name["output_kind"]).casefold() if "output_kind" in by_name else "",
        next((value for value in values("rounds") if isinstance(value, int)), 0),
        spans,
    )
    check_values(options)
    return options


def check_values(options: ImportOptions) -> None:
    """Raise SemanticError for a column or a class that is named twice, too few classes, or an unknown kind."""
    folded = [name.casefold() for name in options.columns]
    if twice := [name for place, name in enumerate(options.columns) if folded[place] in folded[:place]]:
        raise options.error(
            "input_columns", f"input_columns names {twice[0]} twice", "each column enters once"
        )
    if options.label and options.label.casefold() in folded:
        raise options.error(
            "input_label_cols", f"{options.label} is a column that the model reads, and its label"
        )
    names = list(map(str, options.classes))
    if len(set(names)) < len(names) or len(names) == 1:
        why = "names one class" if len(names) == 1 else "names a class twice"
        raise options.error("classes", f"classes {why}", "write all classes, in the order of the scores")
    if len({type(value) for value in options.classes}) > 1:
        raise options.error("classes", "classes are all texts, all whole numbers or true and false")
    if options.kind and options.kind not in KINDS:
        hint = did_you_mean(options.kind, KINDS)
        raise options.error("output_kind", f"there is no output_kind {options.kind}", hint)
