"""Text of a value, or of a count, as results show it: the same in tables, CSV, notebooks, and columns of texts."""

from __future__ import annotations

import datetime
import decimal
from typing import Any


def cell(value: Any) -> str:
    """Format a value that is not NULL, as in the other formats; lists, structs and maps have the form of DuckDB's."""
    if isinstance(value, list):
        items = ", ".join(map(_item, value))
        is_map = value and isinstance(value[0], tuple)
        return f"{{{items}}}" if is_map else f"[{items}]"
    if isinstance(value, tuple):
        return ": ".join(map(_item, value))
    if isinstance(value, dict):
        return f"{{{', '.join(f'{name}: {_item(item)}' for name, item in value.items())}}}"
    return format_exact(value)


def format_exact(value: Any) -> str:
    """Format a value without parts, with all its digits."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, bytes):
        return "0x" + value.hex()
    if isinstance(value, datetime.datetime | datetime.date | datetime.time):
        return value.isoformat(" ") if isinstance(value, datetime.datetime) else value.isoformat()
    if isinstance(value, decimal.Decimal):
        return f"{value:f}"  # str writes 0.0000001 as 1E-7
    return str(value)


def format_count(count: int, noun: str = "row") -> str:
    """Format a count with its noun: `1 row`, `1,200 rows`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _item(value: Any) -> str:
    return "NULL" if value is None else cell(value)
