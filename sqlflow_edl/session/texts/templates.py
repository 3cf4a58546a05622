"""Programs as Jinja templates, with the variables of a command line or a notebook.

The template runs in Jinja's sandbox. An undefined variable is an error with its place. The filter `literal` makes a
value a literal of SQL: `{{ city | literal }}` is 'O''Slo'.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial
from types import TracebackType
from typing import Any

from edl.errors import SemanticError, Span, SQLFlowError, StatementSyntaxError, did_you_mean
from sqlflow_edl.syntax.dialects import dialect_named, sqlglot_name

_MOST_GIVEN = 8  # names in a hint


def render_template(
    text: str, variables: Mapping[str, Any], dialect: str, way: str = "add --var {name}=…"
) -> str:
    """Render the text as a template. Raises SQLFlowError with the place in `text`.

    dialect: for the filter `literal`. way: how to define a variable, as a format with {name}.
    """
    from jinja2 import StrictUndefined, TemplateSyntaxError, UndefinedError
    from jinja2.sandbox import SandboxedEnvironment

    environment = SandboxedEnvironment(
        undefined=StrictUndefined, keep_trailing_newline=True, autoescape=False
    )
    environment.filters["literal"] = partial(literal, dialect=dialect)
    try:
        return environment.from_string(text).render(variables)
    except TemplateSyntaxError as error:
        raise StatementSyntaxError(
            (error.message or "the template is wrong").rstrip("."), span=_line(text, error.lineno)
        ) from None
    except UndefinedError as error:
        raise _undefined_variable_error(error, text, variables, way) from None
    except SQLFlowError as error:  # from a variable that is not text
        raise SemanticError(error.message, span=_line(text, _template_line(error.__traceback__))) from None
    except Exception as error:  # expressions of a template may raise anything
        message = f"{type(error).__name__}: {error}".rstrip(".")
        raise SemanticError(message, span=_line(text, _template_line(error.__traceback__))) from None


def literal(value: Any, dialect: str) -> str:
    """Format a value in SQL: a number, a string in quotes, NULL, a date."""
    from sqlglot import exp

    return exp.convert(value).sql(sqlglot_name(dialect_named(dialect)))


def _undefined_variable_error(
    error: Exception, text: str, variables: Mapping[str, Any], way: str
) -> SemanticError:
    line = _line(text, _template_line(error.__traceback__))
    quoted = re.match(r"'(\w+)' is undefined", str(error))
    if quoted is None:  # an attribute of an object; Jinja's message is complete
        return SemanticError(str(error).rstrip("."), span=line)
    name = quoted[1]
    word = re.compile(rf"\b{name}\b").search(text, line.start, line.end)
    hint = did_you_mean(name, variables, list_up_to=0) or way.format(name=name) + _list_variables(variables)
    return SemanticError(
        f"the variable {name} is not given", span=Span(*word.span()) if word else line, hint=hint
    )


def _list_variables(variables: Mapping[str, Any]) -> str:
    return f"; given: {', '.join(variables)}" if 0 < len(variables) <= _MOST_GIVEN else ""


def _template_line(trace: TracebackType | None) -> int:
    """Return the line of the template that the error comes from, counted from 1."""
    line = 1
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == "<template>":
            line = trace.tb_lineno
        trace = trace.tb_next
    return line


def _line(text: str, number: int) -> Span:
    """Return the span of that line, without the white space around it."""
    lines = text.splitlines(keepends=True)
    number = min(max(number, 1), max(len(lines), 1))
    start = sum(map(len, lines[: number - 1]))
    line = lines[number - 1] if lines else ""
    return Span(start + len(line) - len(line.lstrip()), start + len(line.rstrip()))
