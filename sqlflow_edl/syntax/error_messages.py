"""Messages of syntax errors: the unexpected text, what was expected, and the keyword that was probably meant."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from edl.errors import Advice, Span, StatementSyntaxError, nearest, suggest_name
from sqlflow_edl.syntax.keywords import CLAUSES, QUERY_CLAUSES, LazyTokens
from sqlflow_edl.syntax.lexer import Token, name_value, quoted_name
from sqlflow_edl.syntax.rewrites import likely_label

_UNCLOSED = {"/": "comment", "(": "parenthesis", "[": "bracket", "{": "brace", "$": "dollar quote"}
_BRACKETS = {"(": ")", "[": "]", "{": "}"}
_UNDECODED = re.compile("[\ud800-\udfff]")  # surrogates for undecodable bytes of arguments and file names
_NUL = re.compile("\0")
_MOST_COLUMNS = 12  # in a hint
_FIRST_WORD = re.compile(r"\w[\w.%*/:-]*")
# of a template: {{ name }}, {% if … %}
_VARIABLE = re.compile(r"\{\{-?\s*([^\W\d]\w*)[^{}]*\}\}|\{%[^%]*%\}")
_VALUE = frozenset(("WORD", "NUMBER", "STRING", "LSQB", "TRUE"))
_COMPARED = frozenset(("<", "<=", ">", ">=", "<>", "!=", "==", "="))
_OPERATORS = frozenset(("SLASH", "PERCENT", "POWER", "COMPARISON"))

# Descriptions of terminals in hints, in the order in which a hint lists them; keywords need none.
_WORDS = {
    "WORD": "a name",
    "PATH": "a name",
    "QUOTED": "a name",
    "STRING": "a text in quotes",
    "NUMBER": "a number",
    "QUERY": "a query",
    "STAR": '"*"',
    "COMMA": "a comma",
    "DOT": "",
    "AT": "",
    "EQUAL": '"="',
    "COLON": '":"',
    "LPAR": '"("',
    "RPAR": '")"',
    "LSQB": '"["',
    "RSQB": '"]"',
    "LBRACE": '"{"',
    "RBRACE": '"}"',
    "MINUS": "",
    "PLUS": "",
    "$END": "the end of the statement",
}


def unclosed_error(token: Token) -> StatementSyntaxError:
    """Return the error of an unclosed quote, comment or parenthesis, at its opening."""
    what = _UNCLOSED.get(token.text[0], "quote")
    opening = token.text[: 2 if what == "comment" else 1]
    return StatementSyntaxError(
        f"the {what} {opening} is never closed",
        span=Span(token.start, token.start + len(opening)),
        hint=_closing_hint(token.text, opening, token.start) or f"close it, or remove the {opening}",
    )


def _closing_hint(text: str, opening: str, start: int) -> str | None:
    """Return the hint with the first word behind an opening quote, closed. start: of the quote in the program."""
    if len(opening) != 1 or opening not in "'\"`" or not (word := _FIRST_WORD.match(text, 1)):
        return None
    closed = f"{opening}{word[0]}{opening}"
    place = Span(start, start + len(closed) - 1)
    return Advice(f"close it, such as {closed}, or remove the {opening}", closed, place)


def complaint(tokens: LazyTokens, position: int, accepted: Collection[str]) -> StatementSyntaxError:
    """Return the error at the token that does not fit. accepted: the terminals that would have fitted."""
    token = tokens[position]
    if token.kind == "unclosed":
        return unclosed_error(token)
    if wrong := _unfilled_variable_error(tokens, position) or _unclosed_bracket(tokens, position):
        return wrong
    if near := _misspelt(tokens, position, accepted):
        return near
    if position > 1 and tokens[position - 2].text == "=" and tokens[position - 1].word in CLAUSES:
        return _no_value(tokens[position - 1])
    if position > 1 and tokens[position - 2].word == "TRAIN" and tokens[position - 1].word in CLAUSES:
        return _no_model(tokens, position - 1)
    if (
        position > 1
        and tokens[position - 2].word in ("LABEL", "TARGET")
        and tokens[position - 1].word == "INTO"
    ):
        return NoLabelError(tokens[position - 2], tokens[position - 1])
    message = f"unexpected {_show_token(token)}"
    if position:
        message += f" after {_show_token(tokens[position - 1])}"
    hint = _special_hint(tokens, position, accepted) or "expected " + describe_expected(accepted)
    return StatementSyntaxError(message, span=_place(tokens, position), hint=hint)


def _unfilled_variable_error(tokens: LazyTokens, position: int) -> StatementSyntaxError | None:
    """Return the error of `{{ name }}` if the token is one of its opening braces."""
    for index in (max(position - 1, 0), position):
        first, second, name = tokens[index], tokens[index + 1], tokens[index + 2]
        if (
            first.text == "{"
            and second.text in ("{", "%")
            and first.end == second.start
            and name.kind == "word"
        ):
            return _no_variable(name.text if second.text == "{" else "", Span(first.start, name.end))
    return None


def _unclosed_bracket(tokens: LazyTokens, position: int) -> StatementSyntaxError | None:
    """Return the error of the innermost bracket that is open before the token, if nothing after it closes it."""
    open_ones: list[int] = []
    index = 0
    while (token := tokens[index]).kind != "end":
        if token.text in _BRACKETS and token.kind == "symbol":
            open_ones.append(index)
        elif token.kind == "symbol" and token.text in _BRACKETS.values():
            if not open_ones or _BRACKETS[tokens[open_ones[-1]].text] != token.text:
                break
            open_ones.pop()
        index += 1
    unclosed_before = [place for place in open_ones if place < position]
    if not unclosed_before:
        return None
    opening, stumbled_at = tokens[unclosed_before[-1]], tokens[position]
    error = unclosed_error(opening)
    if stumbled_at.kind == "end" or stumbled_at.word in CLAUSES:
        closing = _BRACKETS[opening.text]
        error.hint = (
            f"put {closing} before {_show_token(stumbled_at)}"
            if stumbled_at.kind != "end"
            else f"put {closing} where it ends"
        )
    return error


def describe_expected(accepted: Collection[str]) -> str:
    """Describe the terminals: `a comma, LABEL or the end of the statement`."""
    left = set(accepted)
    parts: list[str] = []
    if left >= _VALUE:
        parts.append("a value (number, text, name, list or map)")
        left -= _VALUE | {"PATH", "QUOTED", "LBRACE", "FALSE", "NULL", "MINUS", "PLUS"}
    if left & _OPERATORS:
        parts.append("an operator")
        left -= _OPERATORS | {"EQUAL", "STAR", "AND", "OR"}
    if "WORD" in left:
        left -= {"TRUE", "FALSE", "NULL"}
    parts += [words for terminal, words in _WORDS.items() if terminal in left and terminal != "$END"]
    parts += sorted(terminal for terminal in left if terminal not in _WORDS)
    parts += [_WORDS["$END"]] if "$END" in left else []
    distinct = [words for words in dict.fromkeys(parts) if words]
    return " or ".join(filter(None, (", ".join(distinct[:-1]), *distinct[-1:])))


def _misspelt(tokens: LazyTokens, position: int, accepted: Collection[str]) -> StatementSyntaxError | None:
    """Return the error of a misspelt keyword: the token, or the one before it that was taken for a name."""
    keywords = [terminal for terminal in accepted if terminal.isalpha() and terminal not in _WORDS]
    token, before = tokens[position], tokens[position - 1] if position else None
    if token.kind == "word" and (near := nearest(token.text, keywords)) and near != token.word:
        return did_you_mean_keyword(token, near)
    if before and before.kind == "word" and before.word not in CLAUSES and token.kind in ("word", "quoted"):
        follows_comma = position > 1 and tokens[position - 2].text == ","
        near = nearest(before.text, CLAUSES) if follows_comma else None
        return did_you_mean_keyword(before, near) if near else None
    return None


_ADDED = {
    "APPEND": "only PREDICT takes APPEND; other rows are added by INSERT INTO my_table SELECT …",
    "PARTITION": "the partition is a column of the query: SELECT *, '20261126' AS ds FROM … APPEND",
}


def did_you_mean_keyword(token: Token, keyword: str) -> StatementSyntaxError:
    """Return the error at a word that is nearly that keyword."""
    return StatementSyntaxError(
        f"unexpected {_show_token(token)}", span=Span(token.start, token.end), hint=suggest_name(keyword)
    )


def _no_value(keyword: Token) -> StatementSyntaxError:
    return StatementSyntaxError(
        f"unexpected {_show_token(keyword)} after =",
        span=Span(keyword.start, keyword.end),
        hint=f"put a value before {keyword.word}",
    )


def _no_model(tokens: LazyTokens, position: int) -> StatementSyntaxError:
    """Return the error of TO TRAIN before the clause at a position."""
    clause, first = tokens[position], tokens[position - 1]
    if position > 1 and tokens[position - 2].word == "TO":
        first = tokens[position - 2]
    return StatementSyntaxError(
        f"TO TRAIN {clause.word} names no model",
        span=Span(clause.start, clause.end),
        hint=Advice(
            f"put one before {clause.word}, such as DNNClassifier; or leave TO TRAIN out, and the best model is "
            "searched: SELECT … LABEL y INTO m",
            "",
            Span(first.start, clause.start),
        ),
    )


class NoLabelError(StatementSyntaxError):
    """LABEL is followed by INTO."""

    def __init__(self, clause: Token, into: Token) -> None:
        super().__init__(
            f"{clause.word} names no column",
            span=Span(into.start, into.end),
            hint=f"put the column that is to be predicted before {into.word}",
        )

    def suggest(self, columns: Sequence[str]) -> None:
        """Name the columns that may be meant in the hint."""
        if columns and self.span:
            shown = f"{', '.join(columns[:_MOST_COLUMNS])}{', …' if len(columns) > _MOST_COLUMNS else ''}"
            place = Span(self.span.start, self.span.start)
            hint = f"put the column that is to be predicted before INTO: one of {shown}"
            self.hint = Advice(hint, f"{likely_label(columns)} ", place)


def _special_hint(tokens: LazyTokens, position: int, accepted: Collection[str]) -> str | None:
    token = tokens[position]
    clauses = sorted(CLAUSES & set(accepted))
    if hint := _quoting_hint(token, accepted) or _comma_before_clause_hint(token, tokens[position + 1]):
        return hint
    if token.text == "@":
        return (
            "a version or a tag, as in name@2, stands behind USING, EVALUATE, SHOW TRAIN, SHOW CURVE, DESCRIBE MODEL "
            "and DROP MODEL; SET MODEL takes ACTIVE 2"
        )
    if token.word == "APPEND" or (token.word == "PARTITION" and tokens[position - 1].word == "APPEND"):
        return _ADDED[token.word]
    if hint := _expression_hint(tokens, position, accepted):
        return hint
    if token.word in CLAUSES:
        verb = next((tokens[i].word for i in (0, 1) if tokens[i].word != "TO"), "")
        return f"{verb} takes {', '.join(clauses)}, and not {token.word}" if clauses else None
    if token.word in QUERY_CLAUSES:
        start = f"TO {tokens[1].word}" if tokens[0].word == "TO" else tokens[0].word
        return f"{token.word} is of the query: write it before {start}"
    if "COMMA" in accepted and token.kind in ("word", "quoted", "string", "path", "number"):
        return _comma_hint(tokens, position, clauses)
    return None


def _quoting_hint(token: Token, accepted: Collection[str]) -> str | None:
    """Return the hint for a token whose quotes are wrong or missing, or None."""
    if token.kind == "string" and "QUOTED" in accepted:
        quoted = quoted_name(name_value(token.text))
        return f"a name is expected, not a text: write it without quotes, or as {_shorten_text(quoted)}"
    if token.kind == "string" and "WORD" in accepted:
        return "write it without quotes"
    if token.kind == "path" and "QUOTED" in accepted:
        return f"quote a name that is not one word: {_shorten_text(quoted_name(token.text))}"
    if token.kind == "unknown" and token.text in "‘’“”":
        return "write straight quotes, ' or \""
    return None


def _comma_before_clause_hint(token: Token, following: Token) -> str | None:
    if token.text != "," or following.word not in CLAUSES:
        return None
    return Advice(f"leave out the comma before {following.word}", "", Span(token.start, token.end))


def _comma_hint(tokens: LazyTokens, position: int, clauses: Sequence[str]) -> str:
    token, before = tokens[position], tokens[position - 1]
    hint = f"put a comma before {_show_token(token)}"
    hint += f", or a clause: {', '.join(clauses)}" if clauses else ""
    if token.kind == before.kind == "word" and before.word not in CLAUSES:
        name = quoted_name(f"{before.text} {token.text}")
        hint += f"; a name of two words has quotes: {_shorten_text(name)}"
    if token.kind == before.kind == "number":  # of a list
        return Advice(hint, ",", Span(before.end, before.end))
    return hint


def _is_in_name(tokens: LazyTokens, position: int) -> bool:
    """Return True if the token joins two words behind INTO or a verb, as in my-model."""
    if position < 2:
        return False
    before, token, after = (tokens[index] for index in (position - 1, position, position + 1))
    joined = before.kind == after.kind == "word" and before.end == token.start and token.end == after.start
    return joined and tokens[position - 2].word in (
        "INTO",
        "USING",
        "EVALUATE",
        "EXPLAIN",
        "PREDICT",
        "MODEL",
    )


def _expression_hint(tokens: LazyTokens, position: int, accepted: Collection[str]) -> str | None:
    """Return the hint for operators of SQL that expressions of COLUMN do not have, or for a minus in a name."""
    token = tokens[position]
    if token.text == "-" and _is_in_name(tokens, position):
        first, last = tokens[position - 1].text, tokens[position + 1].text
        quoted = quoted_name(f"{first}-{last}")
        instead = _shorten_text(f"{first}_{last}")
        return Advice(
            f"write {instead}, or quote a name that is not one word: {_shorten_text(quoted)}",
            f"{first}_{last}",
            Span(tokens[position - 1].start, tokens[position + 1].end),
        )
    if token.text == ">" and position and tokens[position - 1].text == "-":  # payload->'$.user.age'
        return "a value in a JSON text is JSON(payload, '$.user.age')"
    if (token.kind == "symbol" and token.text in _COMPARED and "SLASH" in accepted) or token.word == "WHEN":
        return "COLUMN has no conditions: write BUCKET(x, [3]), or compute it in the SELECT"
    return None


def _place(tokens: LazyTokens, position: int) -> Span:
    """Return the span of the token; at the end of the statement, the position after the last one."""
    token = tokens[position]
    if token.kind != "end":
        return Span(token.start, token.end)
    end = tokens[position - 1].end if position else token.start
    return Span(end, end)


def _show_token(token: Token) -> str:
    return "end of the statement" if token.kind == "end" else _shorten_text(token.text)


def _shorten_text(text: str, most: int = 40) -> str:
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 1] + "…"


# ------------------------------------------------------------------------- errors found by the splitter


def misplaced_clause_error(keyword: Token) -> StatementSyntaxError:
    """Return the error of a clause inside the query without a verb before it."""
    return StatementSyntaxError(
        f"the {keyword.word} clause stands in the SELECT",
        span=Span(keyword.start, keyword.end),
        hint=f"put it behind TO TRAIN, TO PREDICT or another verb; {keyword.word} alone begins nothing",
    )


def not_a_query(first: Token, verb: Token) -> StatementSyntaxError:
    """Return the error of TO TRAIN after a statement that returns no rows."""
    return StatementSyntaxError(
        f"{first.word} … TO {verb.word} is not a statement",
        span=Span(verb.start, verb.end),
        hint=f"put a SELECT before TO {verb.word}, in the place of {first.word}",
    )


def in_parentheses(to: Token, verb: Token) -> StatementSyntaxError:
    """Return the error of an extended statement inside parentheses."""
    return StatementSyntaxError(
        f"TO {verb.word} stands inside parentheses",
        span=Span(to.start, verb.end),
        hint=f"close the parentheses before TO {verb.word}, or leave them out",
    )


def query_of_create(first: Token, to: Token, verb: Token) -> StatementSyntaxError:
    """Return the error of an extended statement as the query of CREATE TABLE … AS."""
    names = {"TRAIN": "INTO names the model", "PREDICT": "TO PREDICT my_table.my_column names the table"}.get(
        verb.word, "INTO names the table"
    )
    return StatementSyntaxError(
        f"{first.word} … TO {verb.word} is not a statement",
        span=Span(to.start, verb.end),
        hint=f"begin with the SELECT; {names}",
    )


def variable(text: str, start: int) -> StatementSyntaxError | None:
    """Return the error of a template variable `{{ name }}` at `start`, or None if there is none."""
    match = _VARIABLE.match(text, start)
    return _no_variable(match[1] or "", Span(*match.span())) if match else None


def _no_variable(name: str, span: Span) -> StatementSyntaxError:
    return StatementSyntaxError(
        f"the variable {name} is not given" if name else "this is a template, and no variables are given",
        span=span,
        hint=f"sqlflow run --var {name or 'name'}=… fills it in",
    )


def unreadable_error(text: str, statement: Span, sql: Span) -> StatementSyntaxError | None:
    """Return the error at a byte that was not UTF-8, or at a NUL in the SQL of the statement."""
    match = _UNDECODED.search(text, statement.start, statement.end) or _NUL.search(text, sql.start, sql.end)
    if match is None:
        return None
    what = "a NUL byte" if match[0] == "\0" else "a byte that is not UTF-8"
    return StatementSyntaxError(
        f"the text holds {what}", span=Span(*match.span()), hint="remove it, or save the text as UTF-8"
    )


def show_train_in_query(show: Token, train: Token) -> StatementSyntaxError:
    """Return the error of SHOW TRAIN directly after a query, with no semicolon between them."""
    return StatementSyntaxError(
        "SHOW TRAIN is a statement of its own",
        span=Span(show.start, train.end),
        hint="put a semicolon before SHOW TRAIN",
    )


def no_into(label: Token, end: Token) -> StatementSyntaxError:
    """Return the error of the short form `query LABEL x` without a name for the model."""
    return StatementSyntaxError(
        f"{label.word} without TO TRAIN needs INTO",
        span=Span(end.start, end.end),
        hint=Advice("end the statement with INTO my_model", " INTO my_model"),
    )
