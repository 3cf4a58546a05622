"""Templates of the pages. All text is escaped; only charts, which escape their own, enter as markup."""

from __future__ import annotations

import functools
import re
import shlex
from collections.abc import Callable, Mapping
from importlib import resources
from urllib.parse import quote, urlencode

import jinja2

from edl.data.cells import format_count
from edl.installation import VERSION
from sqlflow_edl.charts import bars, curves, matrix
from sqlflow_edl.reports import text

_PASSWORD = re.compile(r"(\w[\w+.-]*://[^\s:/@'\"]*):[^\s'\"]*@")
_COLOURS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_SYMBOLS = {
    "running": "▶",
    "finished": "●",
    "done": "✓",
    "ready": "✓",
    "failed": "✕",
    "died": "✕",
    "unknown": "?",
    "damaged": "✕",
    "paused": "⏸",
    "interrupted": "⏸",
    "cancelled": "■",
}


def render(template: str, **values: object) -> str:
    """Render a template of this package."""
    return _environment().get_template(f"{template}.html.jinja").render(**values)


def asset(name: str) -> str:
    """Return the text of a static file."""
    return (resources.files("sqlflow_edl.extensions.web") / "static" / name).read_text(encoding="utf-8")


def without_secrets(words: str) -> str:
    """Return the text without the passwords of its URLs and without the colours of a terminal."""
    return _PASSWORD.sub(r"\1@", _COLOURS.sub("", words))


def path_of(reference: str) -> str:
    """Return the path of a model's page."""
    return f"/models/{quote(reference, safe='@')}"


def link(path: str, **parameters: object) -> str:
    """Return a path with its parameters."""
    present = {name: value for name, value in parameters.items() if value}
    return f"{path}?{urlencode(present, doseq=True)}" if present else path


def state_class(state: str) -> str:
    """Return the class of a state's badge: its first word."""
    return re.split(r"[^a-z]", state.casefold())[0]


def symbol(state: str) -> str:
    """Return a sign for the state, because colour alone does not tell it to everybody."""
    return _SYMBOLS.get(state_class(state), "○")


@functools.cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("sqlflow_edl.extensions.web"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "number": text.number,
        "percent": text.percent,
        "counted": format_count,
        "duration": text.duration,
        "size": text.size,
        "length_of_trial": text.length_of_trial,
        "plain_type": text.plain_type,
        "path_of": path_of,
        "state_class": state_class,
        "symbol": symbol,
        "shell": shlex.quote,
        "without_secrets": without_secrets,
        "time": lambda time_text: time_text[:19].replace("T", " "),
    }
    environment.globals |= {"version": VERSION, "link": link, **_charts(environment.filters["safe"])}
    return environment


def _charts(safe: Callable[[str], str]) -> Mapping[str, object]:
    """Return the charts as functions that make markup. safe: marks text as such."""
    functions = (
        bars.bars,
        bars.contributions,
        bars.histogram,
        bars.top_values,
        curves.error_curve,
        curves.gain,
        curves.learning_curve,
        curves.lift,
        curves.line_chart,
        curves.metric_curve,
        curves.precision_recall_chart,
        curves.predicted_actual,
        curves.reliability,
        curves.roc,
        matrix.confusion,
    )

    def marked(function: Callable[..., str]) -> Callable[..., str]:
        return lambda *values, **named: safe(function(*values, **named))

    return {function.__name__: marked(function) for function in functions}
