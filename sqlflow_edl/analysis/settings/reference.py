"""Reference page of models and WITH attributes, made from the same tables that check statements.

`python -m sqlflow_edl.analysis.settings.reference > docs/attributes.md` writes it; a test compares the two.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator

from edl.extension_loader import load_or
from sqlflow_edl.analysis.catalog import BOOSTING, MODELS, OPTIMIZERS, SCHEDULES
from sqlflow_edl.analysis.entries import NETWORKS, Catalog, Entry
from sqlflow_edl.analysis.losses import LOSSES
from sqlflow_edl.analysis.models.base import WIDE, Model
from sqlflow_edl.analysis.settings import trees
from sqlflow_edl.analysis.settings.attribute_dictionary import WITHOUT_EFFECT, AttributeRow
from sqlflow_edl.analysis.settings.attributes import BY_VERB
from sqlflow_edl.analysis.settings.kubernetes import KUBERNETES
from sqlflow_edl.analysis.settings.measurement import MEASUREMENT
from sqlflow_edl.analysis.settings.search import ACTIVATE, SEARCH, SHARED, TIME_LIMIT
from sqlflow_edl.analysis.settings.values import Setting, describe_bound

OF_STATEMENTS = {
    **BY_VERB,
    "EVALUATE without a model": MEASUREMENT,
    "MAXIMIZE and MINIMIZE": load_or("sqlflow_edl.extensions.optimization.settings", "OPTIMIZATION", ()),
}

_HEAD = """\
# Models and attributes

The attributes of `WITH name = value, …`. Names are case-insensitive; the last column has synonyms. A wrong
name or value is an error with the nearest valid one. [Language](language.md) describes the statements.
"""

_BOOSTING = (
    "Models of trees take these instead of an optimizer, and have no attributes of networks: "
    + ", ".join(f"`{name}`" for name in trees.OF_NETWORKS)
    + ". Accepted with a note, but without effect: "
    + ", ".join(f"`{name}`" for name in trees.WITHOUT_EFFECT)
    + "."
)


def page() -> str:
    """Return the whole page, in Markdown."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield _HEAD
    for title, rows in OF_STATEMENTS.items():
        yield f"## {title}\n"
        yield from _table(rows)
    shared = ", ".join(f"`{name}`" for name in (*SHARED, TIME_LIMIT, ACTIVATE))
    yield f"## Search\n\nThe [short form](search.md) of TRAIN takes these, and from above {shared}.\n"
    yield from _table(SEARCH)
    yield "## Jobs on Kubernetes\n\nThese apply to jobs [on Kubernetes](kubernetes.md), and have no effect on others.\n"
    yield from _table(KUBERNETES)
    ignored = ", ".join(f"`{name}` ({why})" for name, why in WITHOUT_EFFECT.items())
    yield f"Accepted with a note, but without effect: {ignored}.\n"
    yield f"## Boosting\n\n{_BOOSTING}\n"
    yield from _table((*BOOSTING.params, trees.DISK_CACHE))
    for title, catalog in (
        ("Models", MODELS),
        ("Optimizers", OPTIMIZERS),
        ("Learning-rate schedules", SCHEDULES),
        ("Losses", LOSSES),
    ):
        yield f"## {title}\n"
        yield from _catalog(catalog)


def _catalog(catalog: Catalog[Entry]) -> Iterator[str]:
    for entry in catalog.entries.values():
        also = f" Also: {', '.join(f'`{alias}`' for alias in entry.aliases)}." if entry.aliases else ""
        only = _framework_note(entry.frameworks) if catalog is not MODELS else ""
        task = f" For {entry.task}." if entry.task and catalog is LOSSES else ""
        yield f"### {entry.name}\n\n{entry.doc}{task}{only}{also}\n"
        if isinstance(entry, Model) and entry.defaults:
            others = (name for name in entry.defaults if name not in {row.name for row in entry.params})
            of_wide = ", ".join(f"`{name} = {_default(value)}`" for name, value in entry.wide.items())
            wide = f" For more than {WIDE} columns, {of_wide}." if of_wide else ""
            defaults = ", ".join(f"`{name} = {_default(entry.defaults[name])}`" for name in others)
            yield f"If not written: {defaults}.{wide}\n"
        if entry.params:
            yield from _table(entry.params)


def _framework_note(frameworks: tuple[str, ...]) -> str:
    """Return a sentence on the frameworks that have a model, an optimizer or a loss; empty if all do."""
    if len(frameworks) == 1:
        return f" {frameworks[0].capitalize()} only."
    only = {NETWORKS: " Networks only.", tuple(trees.LIBRARIES): " Trees only."}
    return only.get(frameworks, "")


def _table(rows: Iterable[AttributeRow]) -> Iterator[str]:
    yield "| name | type | default | effect | synonyms |"
    yield "|---|---|---|---|---|"
    for row in rows:
        also = ", ".join(f"`{alias}`" for alias in row.aliases)
        yield f"| `{row.name}` | {_type(row)} | {_default(row.default)} | {row.doc} | {also} |"
    yield ""


def _type(row: AttributeRow) -> str:
    if row.choices:
        return ", ".join(row.choices)
    if row.low is None and row.high is None:
        return row.type
    low, high = map(describe_bound, (row.low, row.high))
    return (
        f"{row.type}, {low} to {high}"
        if low and high
        else f"{row.type}, from {low}"
        if low
        else f"{row.type}, to {high}"
    )


def _default(value: Setting) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, tuple):
        return "[" + ", ".join(map(str, value)) + "]"
    return f"{value:g}" if isinstance(value, float) else str(value)


if __name__ == "__main__":
    sys.stdout.write(page())
