"""Quantities of resources: `500m` of a core, `2Gi` of memory."""

from __future__ import annotations

import re
from decimal import Decimal

from tests.kubernetes.errors import RefusedError, bad_request
from tests.kubernetes.kinds import Kind

FORM = re.compile(r"([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)")
SUFFIXES = {
    "n": Decimal("1e-9"),
    "u": Decimal("1e-6"),
    "m": Decimal("1e-3"),
    "": Decimal(1),
    **{name: Decimal(1000) ** power for power, name in enumerate("kMGTPE", 1)},
    **{name + "i": Decimal(1024) ** power for power, name in enumerate("KMGTPE", 1)},
}


def value(text: str) -> Decimal:
    number, suffix = FORM.fullmatch(text).groups()  # type: ignore[union-attr]
    if suffix in SUFFIXES:
        return Decimal(number) * SUFFIXES[suffix]
    return Decimal(number + suffix)


def canonical(kind: Kind, text: object) -> str:
    """As the server gives it back: a part of one in thousandths."""
    text = str(text)
    if FORM.fullmatch(text) is None:
        raise not_one(kind)
    if "." not in text:
        return text
    found = value(text)
    return str(int(found)) if found == int(found) else f"{int((found * 1000).to_integral_value())}m"


def shown(amount: Decimal, resource: str) -> str:
    """As the server shows a sum: memory in the largest unit that leaves no rest, all else in thousandths if need be."""
    if "memory" not in resource:
        return str(int(amount)) if amount == int(amount) else f"{int(amount * 1000)}m"
    for unit in ("Ei", "Pi", "Ti", "Gi", "Mi", "Ki"):
        if amount and amount % SUFFIXES[unit] == 0:
            return f"{int(amount / SUFFIXES[unit])}{unit}"
    return str(int(amount))


def not_one(kind: Kind) -> RefusedError:
    return bad_request(
        f'{kind.name} in version "{kind.version}" cannot be handled as a {kind.name}: quantities must match '
        "the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
    )
