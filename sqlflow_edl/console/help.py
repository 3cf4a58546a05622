"""/help TOPIC, from the tables that check statements: forms, functions of COLUMN, attributes of WITH."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from edl.errors import SemanticError, did_you_mean
from sqlflow_edl.syntax.forms import STATEMENTS, line


def _words(form: str) -> list[str]:
    """List the keywords of a form."""
    return re.findall(r"\b[A-Z]+\b", form)


_CLAUSES = (
    *("TRAIN", "PREDICT", "EVALUATE", "EXPLAIN", "MAXIMIZE", "MINIMIZE", "RUN", "SHOW", "DESCRIBE"),
    *("WITH", "COLUMN", "LABEL", "VALIDATE"),
)
TOPICS = tuple(
    dict.fromkeys((*STATEMENTS, *(word for each in STATEMENTS.values() for word in _words(each.form))))
)


def help_(topic: str) -> str:
    """Return the help text of a topic. Raises SemanticError if there is none."""
    word = " ".join(topic.upper().split())
    if word == "COLUMN":
        return _text(_functions())
    if word == "WITH":
        return _text(_attributes())
    names = [name for name in STATEMENTS if word in (name, *name.split())]
    names = names or [name for name, form in STATEMENTS.items() if word in _words(form.form)]
    if not names:
        raise SemanticError(f"there is no help on {topic}", hint=did_you_mean(word, TOPICS, list_up_to=20))
    return _text(text for name in names for text in (line(STATEMENTS[name]), f"  {STATEMENTS[name].example}"))


def topic_at(text: str) -> str:
    """Return the topic of the last typed clause, or an empty string: TRAIN for `SELECT 1 TO TRAIN`."""
    return next((word for word in reversed(re.findall(r"\w+", text.upper())) if word in _CLAUSES), "")


def _functions() -> Iterator[str]:
    from sqlflow_edl.analysis.columns import computed
    from sqlflow_edl.analysis.columns.functions import FUNCTIONS

    for function in FUNCTIONS:
        also = f"   also {', '.join(function.aliases)}" if function.aliases else ""
        yield f"{function.usage}{also}"
    yield "In expressions, such as x / (y + 1):"
    yield from (f"{function.usage}   {function.doc}" for function in computed.FUNCTIONS)


def _attributes() -> Iterator[str]:
    from sqlflow_edl.analysis.settings.reference import OF_STATEMENTS

    for verb, rows in OF_STATEMENTS.items():
        yield verb
        width = max((len(row.name) for row in rows), default=0)
        yield from (f"  {row.name:{width}}  {row.doc}" for row in rows)
    yield "The parameters of a model: /estimators NAME"


def _text(lines: Iterable[str]) -> str:
    return "\n".join(lines) + "\n"
