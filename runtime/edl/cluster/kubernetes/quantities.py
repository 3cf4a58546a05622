"""Quantities of Kubernetes, such as `500m` of a processor and `4Gi` of memory."""

from __future__ import annotations

import re
from decimal import Decimal

_SUFFIXES = {
    "m": Decimal("0.001"),
    "": Decimal(1),
    **{name: Decimal(1000) ** power for power, name in enumerate("kMGTPE", 1)},
    **{f"{name}i": Decimal(1024) ** power for power, name in enumerate("KMGTPE", 1)},
}
_QUANTITY = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(?:[eE]([+-]?\d{1,2})|([a-zA-Z]*))", re.ASCII)

MEBIBYTE, GIBIBYTE = 1 << 20, 1 << 30


def value(quantity: str) -> Decimal:
    """Return the quantity in processors or bytes. Raises ValueError if the text is no quantity, or is negative."""
    match = _QUANTITY.fullmatch(quantity)
    if match is None or (match[3] or "") not in _SUFFIXES:
        raise ValueError(f"{quantity!r} is no quantity")
    return Decimal(match[1]) * (Decimal(10) ** int(match[2]) if match[2] else _SUFFIXES[match[3]])


def memory(size: float) -> str:
    """Return the quantity of so many bytes in whole MiB, or in GiB if that is a whole number too."""
    mebibytes = -int(-size // MEBIBYTE)
    return f"{mebibytes}Mi" if mebibytes % (GIBIBYTE // MEBIBYTE) else f"{mebibytes * MEBIBYTE // GIBIBYTE}Gi"
