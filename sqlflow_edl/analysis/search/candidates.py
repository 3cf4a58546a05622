"""Candidates of a search as statements: of the portfolio, or of the points of a search space."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from edl.errors import Span
from sqlflow_edl.analysis import expressions
from sqlflow_edl.analysis.rows.splits import SPLIT
from sqlflow_edl.analysis.rows.validation import FRACTION, SELECT, TEST
from sqlflow_edl.analysis.search import local, portfolio, space, split
from sqlflow_edl.analysis.search.generating import (
    CROSS,
    GROUP_DIFFERENCE,
    NGRAMS,
    RUN,
    VOCABULARIZE,
    Generated,
    GeneratedFeature,
)
from sqlflow_edl.analysis.settings import search as settings
from sqlflow_edl.analysis.settings.attribute_dictionary import Resolved
from sqlflow_edl.syntax import ast


@dataclass(frozen=True, slots=True)
class CandidateDraft:
    """TRAIN statement of a candidate, with the source spans of the search.

    shared: the statement without the attributes by which candidates differ. model: its name as the search's statement
    writes it; empty if the label decides. kept: attributes of the search that it takes over. lines: the text of the
    attributes by which it differs. attributes: the same, if the statement of the search writes their values. variant:
    the model with its attributes otherwise. items: the text of items of COLUMN, by the span of the search's item.
    point: its place in a search space. encodes, generates: see `portfolio.Variant`. encoded: the columns that are
    encoded. encoding, generated: the COLUMN clauses of these columns and of the generated features.
    """

    shared: ast.Statement
    model: str
    kept: tuple[ast.Attribute, ...]
    lines: portfolio.Lines
    attributes: tuple[ast.Attribute, ...] = ()
    variant: portfolio.Variant | None = None
    items: Mapping[Span, str] = field(default_factory=dict)
    point: tuple[float | str, ...] = ()
    encodes: bool = False
    generates: bool = False
    encoded: tuple[str, ...] = ()
    encoding: str = ""
    generated: str = ""

    @property
    def statement(self) -> ast.Statement:
        """The TRAIN statement."""
        span = self.shared.model.span if self.shared.model is not None else self.shared.span
        attributes = self.attributes
        if self.variant is not None:
            values = self.variant.values.items()
            attributes = tuple(ast.Attribute(name, _value(value, span), span) for name, value in values)
        return replace(self.shared, attributes=(*self.shared.attributes, *attributes))

    def name(self, model: str) -> str:
        """Return the model with the parameters by which the candidate differs, for people."""
        framework, parts = "", []
        for name, value in self.lines:
            if name == "model.framework":
                framework = value
            elif self.model or not name.startswith("train."):
                parts.append(f"{name.rpartition('.')[2]} {value}")
        marks = ["texts encoded"] if self.encoding else []
        marks += ["generated features"] if self.generates and self.generated else []
        return ", ".join(
            [f"{model} ({framework})" if framework else model, *parts, *self.items.values(), *marks]
        )


def encode_texts(
    drafts: Iterable[CandidateDraft], columns: Sequence[str], dialect: str
) -> Iterator[CandidateDraft]:
    """Yield the drafts; those that encode texts with TARGET_ENCODE of these columns in place of others."""
    shared_by_model: dict[int, ast.Statement] = {}
    names = [expressions.name(column, dialect) for column in columns]
    text = f"COLUMN {', '.join(f'TARGET_ENCODE({name})' for name in names)}" if names else ""
    for draft in drafts:
        if not draft.encodes:
            yield draft
            continue
        shared = shared_by_model.get(id(draft.shared))
        if shared is None:
            shared = _encode_columns(draft.shared, columns, names, again=bool(draft.encoded))
            shared_by_model[id(draft.shared)] = shared
        yield replace(draft, shared=shared, encoded=tuple(columns), encoding=text)


def _encode_columns(
    statement: ast.Statement, columns: Sequence[str], names: Sequence[str], *, again: bool
) -> ast.Statement:
    """Return the statement with TARGET_ENCODE of the columns. again: in place of the last clause."""
    span, clauses = statement.span, statement.columns[:-1] if again else statement.columns
    items = tuple(
        ast.ColumnItem(ast.Call("TARGET_ENCODE", (ast.Name((column,), name, span),), (), span, span), None)
        for column, name in zip(columns, names, strict=True)
    )
    clauses = (*clauses, ast.ColumnClause(items, None, span)) if items else clauses
    return replace(statement, columns=clauses)


class FeatureAdder:
    """Adder of generated features to candidates: pairs to those that generate features, parts of texts to all."""

    def __init__(self, generated: Generated, dialect: str) -> None:
        self._generated, self._dialect = generated, dialect
        self._added: dict[tuple[int, bool], tuple[ast.Statement, CandidateDraft]] = {}

    def add_to(self, draft: CandidateDraft) -> CandidateDraft:
        """Return the draft with its features, at least one. Drafts that share a statement share the new one."""
        key = id(draft.shared), draft.generates
        if key not in self._added:  # the old statement is kept, so that its id is not used again
            pairs = self._generated.pairs if draft.generates else ()
            features = (*pairs, *self._generated.of_texts)
            self._added[key] = draft.shared, _add_features(draft, features, self._dialect)
        added = self._added[key][1]
        return replace(draft, shared=added.shared, generated=added.generated)


def _add_features(
    draft: CandidateDraft, features: Sequence[GeneratedFeature], dialect: str
) -> CandidateDraft:
    """Return the draft with generated features behind its columns, and with the columns that pairs are made of."""
    span = draft.shared.span
    used = [("" if feature.is_of_text else feature.first, feature.second) for feature in features]
    names = dict.fromkeys(name for pair in used for name in pair if name)
    items: list[ast.Value] = [ast.Name((name,), expressions.name(name, dialect), span) for name in names]
    texts = [expressions.name(name, dialect) for name in names]
    for feature in features:
        item, text = _write_feature(feature, span, dialect)
        items.append(item)
        texts.append(text)
    clause = ast.ColumnClause(tuple(ast.ColumnItem(item, None) for item in items), None, span)
    written = len(draft.shared.columns) - bool(draft.encoding)  # the clause of encoded texts stays the last
    columns = (*draft.shared.columns[:written], clause, *draft.shared.columns[written:])
    shared = replace(draft.shared, columns=columns)
    return replace(draft, shared=shared, generated=f"COLUMN {', '.join(texts)}")


def _write_feature(feature: GeneratedFeature, span: Span, dialect: str) -> tuple[ast.Value, str]:
    """Return a generated feature as an item of COLUMN and as text."""
    names = feature.first, feature.second or feature.first
    first, second = (ast.Name((name,), expressions.name(name, dialect), span) for name in names)
    operator, size = feature.operator, ast.Constant(feature.size, span)
    if operator == VOCABULARIZE:
        named = (("delimiter", ast.Constant(" ", span)), ("max_size", size))
        text = f"{operator}({first.text}, delimiter=' ', max_size={feature.size})"
        return ast.Call(operator, (first,), named, span, span), text
    if operator == NGRAMS:
        call = ast.Call(operator, (first, ast.Constant(RUN, span), size), (), span, span)
        return call, f"{operator}({first.text}, {RUN}, {feature.size})"
    if operator == CROSS:
        call = ast.Call(CROSS, (ast.ListValue((first, second), span), size), (), span, span)
        return call, f"{CROSS}([{first.text}, {second.text}], {feature.size})"
    if operator == GROUP_DIFFERENCE:
        call = ast.Call(operator, (first, second), (), span, span)
        return call, f"{operator}({first.text}, {second.text})"
    text = f"{first.text} {operator} {second.text}"
    if operator == "-":  # as the parser has it: a sum of the first and the negative of the second
        return ast.Operation("+", (first, ast.Operation("-", (second,), span)), span), text
    return ast.Operation(operator, (first, second), span), text


class StatementWriter:
    """Writer of the statements of candidates as text, each in one line.

    search: the statement of the search. kept: its attributes that all candidates have. shares: the attributes of their
    validation and test rows.
    """

    def __init__(
        self,
        search: ast.Statement,
        kept: Iterable[ast.Attribute],
        dialect: str,
        label: str,
        shares: portfolio.Lines,
    ) -> None:
        self._search, self._dialect = search, dialect
        self._end = f"LABEL {label}"
        self._attributes = [
            *(f"{attribute.key} = {_literal(attribute.value, self._source)}" for attribute in kept),
            *(f"{name} = {value}" for name, value in shares),
        ]
        self._columns = [self._source(clause.span) for clause in search.columns]
        self._validate = [self._source(search.validate.span)] if search.validate is not None else []
        parts = search.into[0].parts if search.into else ()
        self._places = [expressions.name(part, dialect) for part in parts[:-1]]
        self._last = parts[-1] if parts else ""

    def write(self, draft: CandidateDraft, model: str, number: int) -> str:
        """Return the statement of a candidate. model: the one that is trained."""
        attributes = [*self._attributes, *[f"{name} = {value}" for name, value in draft.lines]]
        columns = self._columns
        if draft.items:
            columns = [self._with_items(clause, draft.items) for clause in self._search.columns]
        clauses = [*columns, *filter(None, (draft.generated, draft.encoding)), *self._validate]
        with_clause = ["WITH", ", ".join(attributes)] if attributes else []
        into = []
        if self._last:
            name = expressions.name(f"{self._last}_{number}", self._dialect)
            into = [f"INTO {'.'.join([*self._places, name])}"]
        start = [self._search.select, "TO TRAIN", draft.model or model]
        return " ".join([*start, *with_clause, *clauses, self._end, *into])

    def _source(self, span: Span) -> str:
        start = self._search.span.start
        return self._search.text[span.start - start : span.end - start]

    def _with_items(self, clause: ast.ColumnClause, items: Mapping[Span, str]) -> str:
        """Return a COLUMN clause as text, with the candidate's own items."""
        text, end = "", clause.span.start
        for item in clause.items:
            if item.span in items:
                text += self._source(Span(end, item.span.start)) + items[item.span]
                end = item.span.end
        return text + self._source(Span(end, clause.span.end))


def of_portfolio(
    statement: ast.Statement, variants: Iterable[portfolio.Variant], shared_attributes: Mapping[str, Resolved]
) -> Iterator[CandidateDraft]:
    """Yield the candidates of the short form, of the portfolio and around it."""
    span = statement.labels[0].span if statement.labels else statement.span
    kept = tuple(
        attribute.written for name, attribute in shared_attributes.items() if name in settings.SHARED
    )
    apart = [
        ast.Attribute(name, _value(value, span), span)
        for name, value in shares(statement, shared_attributes).items()
    ]
    by_family: dict[str, ast.Statement] = {}
    for variant in variants:
        if variant.family not in by_family:
            model = ast.Name((variant.family,), variant.family, span)
            by_family[variant.family] = replace(
                statement, kind="train", model=model, attributes=(*kept, *apart)
            )
        yield CandidateDraft(
            by_family[variant.family],
            "",
            kept,
            variant.lines,
            variant=variant,
            point=local.coordinates(variant),
            encodes=variant.encodes,
            generates=variant.generates,
        )


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
    shared_by_items: dict[tuple[int, ...], ast.Statement] = {}  # by the values, which candidates share
    for point in space.points(list(dimensions), trials, count, seed):
        chosen = list(zip(varied, point.values, strict=True))
        attributes = tuple(
            replace(item, value=value) for item, value in chosen if isinstance(item, ast.Attribute)
        )
        texts = tuple((attribute.key, _source(attribute.value, statement)) for attribute in attributes)
        items = {item.span: value for item, value in chosen if isinstance(item, ast.ColumnItem)}
        key = tuple(map(id, items.values()))
        if key not in shared_by_items:
            columns = tuple(_with_items(clause, items) for clause in statement.columns)
            shared_by_items[key] = replace(statement, attributes=(*kept, *apart), columns=columns)
        item_texts = {place: _source(value, statement).strip("[]") for place, value in items.items()}
        yield CandidateDraft(
            shared_by_items[key], model, kept, texts, attributes, items=item_texts, point=point.coordinates
        )


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


def _source(value: ast.Value, statement: ast.Statement) -> str:
    """Return a value of CANDIDATES as it is written, or a drawn number."""
    if isinstance(value, ast.Constant) and isinstance(value.value, int | float):
        return f"{value.value}"
    start = statement.span.start
    return statement.text[value.span.start - start : value.span.end - start]
