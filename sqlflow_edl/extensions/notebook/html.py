"""HTML without scripts, which looks the same in a live and an exported notebook, light and dark."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

from edl.data.cells import cell

LONGEST = 300  # characters of one value

INK = "#7a7a7a"  # of texts and axes: an image has no colour of its surroundings, and this is read on white and on black
_SIZE = re.compile(r'width="[\d.]+" height="[\d.]+"')
_LABEL = re.compile(r'aria-label="([^"]*)"')
_NULL = '<span style="opacity:0.5;font-style:italic">NULL</span>'
_CELL = "text-align:{side};vertical-align:top;padding:2px 8px"


def rows(columns: Sequence[tuple[str, bool]], cells: Iterable[Sequence[Any]], footer: str) -> str:
    """Render a table. columns: names, and True for columns of numbers. footer: a line under it."""
    sides = ["right" if number else "left" for _, number in columns]
    head = "".join(_cell("th", escape(name), side) for (name, _), side in zip(columns, sides, strict=True))
    body = "\n".join(
        f"<tr>{''.join(_cell('td', _value(value), side) for value, side in zip(row, sides, strict=True))}</tr>"
        for row in cells
    )
    table = f"<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table>" if columns else ""
    return f"{table}\n{line(footer, faint=True)}"


def report(message: str, facts: Sequence[tuple[str, str]]) -> str:
    """Render a sentence, and names with their values below it."""
    body = "".join(
        f"<tr>{_cell('th', escape(name), 'left')}{_cell('td', escape(value), 'left')}</tr>"
        for name, value in facts
    )
    return line(message) + (f"<table><tbody>{body}</tbody></table>" if body else "")


def sections(sections_and_lines: Iterable[Sequence[str]]) -> str:
    """Render a table with a title above the rows of each section.

    sections_and_lines: section, name, value, and perhaps a reason.
    """
    lines, before = [], ""
    for section, name, *values in sections_and_lines:
        if section != before:
            title = (
                f'<th colspan="{1 + len(values)}" style="{_CELL.format(side="left")}">{escape(section)}</th>'
            )
            lines.append(f'<tr style="border-bottom:1px solid">{title}</tr>')
            before = section
        cells = (
            f'<td style="{_CELL.format(side="left")};white-space:pre-wrap">{escape(value)}</td>'
            for value in values
        )
        lines.append(f"<tr>{_cell('td', escape(name), 'left')}{''.join(cells)}</tr>")
    return f"<table><tbody>{''.join(lines)}</tbody></table>" if lines else ""


def image(svg: str) -> str:
    """Render a drawing as an image; an empty one as nothing.

    Elements of SVG would not do: of a notebook that another user has run, JupyterLab shows only the texts in them.
    """
    if not svg:
        return ""
    size = _SIZE.search(svg)
    data = base64.b64encode(svg.replace("<svg ", f'<svg color="{INK}" ', 1).encode()).decode()
    source = f'src="data:image/svg+xml;base64,{data}"'
    return f'<img {size[0] if size else ""} alt="{label(svg)}" style="display:block" {source}>'


def label(svg: str) -> str:
    """Return the words of a drawing for people who do not see it, as markup."""
    match = _LABEL.search(svg)
    return match[1] if match else ""


def line(text: str, *, faint: bool = False) -> str:
    return (
        f'<div style="opacity:{0.7 if faint else 1};white-space:pre-wrap">{escape(text)}</div>'
        if text
        else ""
    )


def _cell(tag: str, inner: str, side: str) -> str:
    return f'<{tag} style="{_CELL.format(side=side)}">{inner}</{tag}>'


def _value(value: Any) -> str:
    if value is None:
        return _NULL
    text = cell(value)
    return escape(text if len(text) <= LONGEST else text[: LONGEST - 1] + "…")
