"""Numbers in texts, such as `$1,003.50`, `7,5` and `12 %`: their patterns, and their values."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from edl.features.arrays import Floats
from edl.spec.computed import SYMBOLS

# decimal mark -> pattern of numbers without symbols and white space; the other mark may stand between thousands
PATTERNS: Mapping[str, str] = {
    ".": r"^[+-]?(?:\d{1,3}(?:,\d{3})+|\d+)?(?:\.\d*)?(?:[eE][+-]?\d+)?$",
    ",": r"^[+-]?(?:\d{1,3}(?:\.\d{3})+|\d+)?(?:,\d*)?$",
}
_DIGIT = r"^[+-]?[.,]?\d"  # so that `.` and `e5` are no numbers


def without_symbols(texts: pa.Array) -> pa.Array:
    """Return the texts without symbols and white space."""
    return pc.replace_substring_regex(texts, rf"[{SYMBOLS}\s]", "")


def are_numbers(texts: pa.Array, decimal: str) -> pa.Array:
    """Return True for texts without symbols that are numbers, NULL for NULL. decimal: the mark before a fraction."""
    return pc.and_(
        pc.match_substring_regex(texts, PATTERNS[decimal]), pc.match_substring_regex(texts, _DIGIT)
    )


def numbers(texts: pa.Array, decimal: str) -> Floats:
    """Return the numbers in the texts, float64 (n,), NaN where a text is none."""
    bare = without_symbols(texts)
    plain = pc.replace_substring(bare, "," if decimal == "." else ".", "")
    plain = pc.utf8_ltrim(pc.replace_substring(plain, ",", "."), "+")
    readable = pc.if_else(are_numbers(bare, decimal), plain, pa.scalar(None, plain.type))
    parsed: Floats = readable.cast(pa.float64()).to_numpy(zero_copy_only=False)
    return np.asarray(parsed, dtype=np.float64)
