"""Candidates of a search as statements: of the portfolio, or of the points of a search space."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from edl.errors import Span
from sqlflow_edl.analysis import expressions
from sqlflow_edl.analysis.rows.splits import SPLIT
from sqlflow_edl.analysis.rows.validation import FRACTION, SELECT, TEST
from sqlflow_edl.analysis.search import local, portfolio, space, split
from sqlflow_edl.analysis.settings import search as settings
from sqlflow_edl.analysis.settings.attribute_dictionary import Resolved
from sqlflow_edl.syntax import ast

Lines = tuple[tuple[str, str], ...]  # attributes as text: name, value


@dataclass(frozen=True, slots=True)
class CandidateDraft:
    """TRAIN statement of a candidate, with the source spans of the search.

    model: its name as the search's statement writes it; empty if the label decides. kept: attributes of the search
    that it takes over. own: attributes by which it differs from other candidates. items: the same, for items of COLUMN,
    by the span of the search's item. point: its place in a search space. encodes: see `portfolio.Variant`. encoded: the
    columns of which that is so. clause: their COLUMN clause.
    """

    statement: ast.Statement
    model: str
    kept: tuple[ast.Attribute, ...]
    own: Lines
    items: Mapping[Span, str] = field(default_factory=dict)
    point: tuple[float | str, ...] = ()
    encodes: bool = False
    encoded: tuple[str, ...] = ()
    clause: str = ""

    def name(self, model: str) -> str:
        """Return the model with the parameters by which the candidate differs, for people."""
        settings_here = [item for item in self.own if self.model or not item[0].startswith("train.")]
        shown = [
            f"{name.rpartition('.')[2]} {value}" for name, value in settings_here if name != "model.framework"
        ]
        framework = next((value for name, value in self.own if name == "model.framework"), "")
        encoded = ["texts encoded"] if self.clause else []
        named = f"{model} ({framework})" if framework else model
        return ", ".join([named, *shown, *self.items.values(), *encoded])

    def with_encodings(self, columns: Sequence[str], dialect: str) -> CandidateDraft:
        """Return the draft with TARGET_ENCODE of these columns in place of others, if it encodes texts."""
        if not self.encodes:
            return self
        names = [expressions.name(column, dialect) for column in columns]
        span, clauses = self.statement.span, self.statement.columns
        clauses = clauses[:-1] if self.encoded else clauses
        items = tuple(
            ast.ColumnItem(
                ast.Call("TARGET_ENCODE", (ast.Name((column,), name, span),), (), span, span), None
            )
            for column, name in zip(columns, names, strict=True)
        )
        text = f"COLUMN {', '.join(f'TARGET_ENCODE({name})' for name in names)}" if items else ""
        clauses = (*clauses, ast.ColumnClause(items, None, span)) if items else clauses
        statement = replace(self.statement, columns=clauses)
        return replace(self, statement=statement, encoded=tuple(columns), clause=text)

    def text(
        self, search: ast.Statement, dialect: str, model: str, label: str, shares: Lines, number: int
    ) -> str:
        """Return the statement as text, in one line. shares: the attributes of its validation and test rows."""
        start = search.span.start

        def written(span: Span) -> str:
            return search.text[span.start - start : span.end - start]

        attributes = [f"{attribute.key} = {_literal(attribute.value, written)}" for attribute in self.kept]
        attributes += [f"{name} = {value}" for name, value in (*shares, *self.own)]
        clauses = [self._columns(clause, written) for clause in search.columns]
        clauses += [self.clause] if self.clause else []
        if search.validate is not None:
            clauses.append(written(search.validate.span))
        into = []
        if search.into:
            *places, last = search.into[0].parts
            names = (expressions.name(part, dialect) for part in (*places, f"{last}_{number}"))
            into = [f"INTO {'.'.join(names)}"]
        model = self.model or model
        with_clause = ["WITH", ", ".join(attributes)] if attributes else []
        return " ".join([search.select, "TO TRAIN", model, *with_clause, *clauses, "LABEL", label, *into])

    def _columns(self, clause: ast.ColumnClause, source_text: Callable[[Span], str]) -> str:
        """Return a COLUMN clause as text, with the candidate's own items."""
        text, end = "", clause.span.start
        for item in clause.items:
            if item.span in self.items:
                text += source_text(Span(end, item.span.start)) + self.items[item.span]
                end = item.span.end
        return text + source_text(Span(end, clause.span.end))


def of_portfolio(
    statement: ast.Statement, variants: Iterable[portfolio.Variant], shared_attributes: Mapping[str, Resolved]
) -> Iterator[CandidateDraft]:
    """Yield the candidates of the short form, of the portfolio and around it."""
    span = statement.labels[0].span if statement.labels else statement.span
    kept = tuple(
        attribute.written for name, attribute in shared_attributes.items() if name in settings.SHARED
    )
    apart = shares(statement, shared_attributes)
    for variant in variants:
        values = {"model.framework": variant.framework, **variant.attributes}
        candidate_attributes = [
            ast.Attribute(name, _value(value, span), span) for name, value in (apart | values).items()
        ]
        model = ast.Name((variant.family,), variant.family, span)
        train = replace(statement, kind="train", model=model, attributes=(*kept, *candidate_attributes))
        texts = tuple((name, _text(value)) for name, value in values.items())
        point = local.coordinates(variant)
        yield CandidateDraft(train, "", kept, texts, point=point, encodes=variant.encodes)


def of_space(
    statement: ast.Statement, dimensions: Sequence[space.Dimension], trials: int, count: int, seed: int
) -> Iterator[CandidateDraft]:
    """Yield a candidate for each point of the space of a TRAIN statement, at most `count`; see `space.points`."""
    varied = [dimension.varied for dimension in dimensions]
    kept = tuple(
        attribute
        for attribute in statement.attributes
        if attribute not in varied and not settings.is_of_search(attribute.key)
    )
    span = statement.model.span if statement.model else statement.span
    kept_settings = {row.name: row for attribute in kept if (row := settings.find(attribute.key))}
    apart = [
        ast.Attribute(name, _value(value, span), span)
        for name, value in shares(statement, kept_settings).items()
    ]
    model = statement.model.text if statement.model else ""
    for point in space.points(list(dimensions), trials, count, seed):
        chosen = list(zip(varied, point.values, strict=True))
        candidate_attributes = [
            replace(item, value=value) for item, value in chosen if isinstance(item, ast.Attribute)
        ]
        texts = tuple(
            (attribute.key, _source(attribute.value, statement)) for attribute in candidate_attributes
        )
        items = {item.span: value for item, value in chosen if isinstance(item, ast.ColumnItem)}
        columns = tuple(_with_items(clause, items) for clause in statement.columns)
        item_texts = {place: _source(value, statement).strip("[]") for place, value in items.items()}
        train = replace(statement, attributes=(*kept, *apart, *candidate_attributes), columns=columns)
        yield CandidateDraft(train, model, kept, texts, item_texts, point.coordinates)


def _with_items(clause: ast.ColumnClause, chosen: Mapping[Span, ast.Value]) -> ast.ColumnClause:
    """Return the clause with the chosen items, by the span of what they replace; a list is several items."""
    items: list[ast.ColumnItem] = []
    for item in clause.items:
        value = chosen.get(item.span, item.value)
        several = value.items if isinstance(value, ast.ListValue) and item.span in chosen else (value,)
        items += (replace(item, value=one_value) for one_value in several)
    return replace(clause, items=tuple(items))


def shares(statement: ast.Statement, names_written: Collection[str]) -> dict[str, portfolio.Value]:
    """Return the shares of validation and test rows that the statement leaves out. names_written: names in it."""
    if (
        statement.validate is not None
        or FRACTION in names_written
        or SELECT in names_written
        or _is_marked(statement)
    ):
        return {}
    fractions: dict[str, portfolio.Value] = {FRACTION: split.VALIDATION}
    return fractions if TEST in names_written else {**fractions, TEST: split.TEST}


def _is_marked(statement: ast.Statement) -> bool:
    """Return True if a column marks the validation rows, so that they are no share."""
    attribute = statement.attribute(SPLIT)
    return (
        attribute is not None
        and str(getattr(attribute.value, "value", attribute.value)).casefold() == "column"
    )


def _literal(value: ast.Value, source_text: Callable[[Span], str]) -> str:
    """Return a value as a statement writes it: a constant by its value, which may differ from what is written there."""
    if not isinstance(value, ast.Constant) or value.value is None:
        return source_text(value.span)
    if isinstance(value.value, str):
        return "'" + value.value.replace("\\", "\\\\").replace("'", "''") + "'"
    return str(value.value).upper() if isinstance(value.value, bool) else str(value.value)


def _value(value: portfolio.Value, span: Span) -> ast.Value:
    if isinstance(value, tuple):
        return ast.ListValue(tuple(ast.Constant(item, span) for item in value), span)
    return ast.Constant(value, span)


def _text(value: portfolio.Value) -> str:
    return f"[{', '.join(map(str, value))}]" if isinstance(value, tuple) else f"{value}"


def _source(value: ast.Value, statement: ast.Statement) -> str:
    """Return a value of CANDIDATES as it is written, or a drawn number."""
    if isinstance(value, ast.Constant) and isinstance(value.value, int | float):
        return f"{value.value}"
    start = statement.span.start
    return statement.text[value.span.start - start : value.span.end - start]
