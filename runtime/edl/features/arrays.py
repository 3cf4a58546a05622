"""Arrow columns as the three plain forms from which features are computed: numbers, integers and text.

The type of a column may differ between training and prediction: an integer column with a NULL comes as floats out of
one database, as text out of a CSV file. Values with an unambiguous meaning are accepted:

* a *number* is an integer, float, decimal or boolean (0, 1); a date, time or timestamp counts in seconds (since
  1970-01-01 UTC, or since midnight), whatever its unit. Text is rejected: CAST must decide if '1,5' is a number.
* an *integer* is one of any width, a float or decimal without a fraction, a boolean (0, 1), or text of up to 18
  decimal digits with an optional minus.
* *text* is text; an integer, boolean, decimal or float becomes its shortest usual text: '3' for 3, 3.0 and 3.00,
  'true', '2.5'; dates and timestamps become ISO 8601 text without trailing zeros in the fraction.

Dictionary-encoded columns count as their values, a column of type null as all NULL, infinite dates and timestamps as
NULL. Other types (list, struct, …) raise a SemanticError that names the column.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from edl.errors import SemanticError

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

_LONGEST_INTEGER = 18  # digits of a text that is an integer
_INTEGER_TEXT = rf"^-?[0-9]{{1,{_LONGEST_INTEGER}}}$"
_EXACT_INTEGER = 2**53  # a double holds each integer up to it
_EXACT_TENS = 22  # and each power of ten up to this one; the quotient of two doubles is the one nearest to it
_SECOND = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}


class ColumnTypeError(SemanticError):
    """A column has a type of which a feature takes no values. wanted, target: what it needs, and to what to convert."""

    def __init__(self, column: str, kind: pa.DataType, expected: str, target: str) -> None:
        message = f"column {column} is of type {kind} where {expected} is needed"
        super().__init__(message, hint=f"convert it to {target} in the query")
        self.column = column


def numbers(array: pa.Array, column: str) -> Floats:
    """Return the column as float64, shape (n,), with NaN for NULL.

    NaN and infinities of the data stay. May be read-only.
    """
    array = plain_array(array)
    for is_type, convert in _NUMBERS:
        if is_type(array.type):
            return convert(array)
    return numbers(_nulls(array, column, "a number"), column)


def integers(array: pa.Array, column: str) -> tuple[Ints, Bools]:
    """Return the column as int64 and a mask of integers; elsewhere (NULL, 2.5, 'abc') the int64 is arbitrary."""
    array = plain_array(array)
    for is_type, convert in _INTEGERS:
        if is_type(array.type):
            return convert(array)
    return integers(_nulls(array, column, "an integer"), column)


def texts(array: pa.Array, column: str) -> pa.Array:
    """Return the column as a string, large_string, binary or large_binary array; NaN and infinities become NULL."""
    array = plain_array(array)
    for is_type, convert in _TEXTS:
        if is_type(array.type):
            return convert(array)
    return texts(_nulls(array, column, "text"), column)


def plain_array(array: pa.Array) -> pa.Array:
    """Remove extension types, dictionary encoding and string views from the array; infinite times become NULL."""
    if isinstance(array, pa.ExtensionArray):
        return plain_array(array.storage)
    if isinstance(array, pa.DictionaryArray):
        return plain_array(array.dictionary_decode())
    if types.is_string_view(array.type):
        return array.cast(pa.large_string())
    if types.is_binary_view(array.type):
        return array.cast(pa.large_binary())
    if types.is_date32(array.type) or types.is_timestamp(array.type):
        return _finite_times(array)
    return array


def _finite_times(array: pa.Array) -> pa.Array:
    """Return the dates or timestamps with NULL in place of DuckDB's infinities: the largest number, and minus it."""
    integer = pa.int32() if types.is_date32(array.type) else pa.int64()
    counts = array.view(integer)
    largest = np.iinfo(integer.to_pandas_dtype()).max
    extremes = pc.min_max(counts)
    if not extremes["min"].is_valid or (
        extremes["min"].as_py() > -largest and extremes["max"].as_py() < largest
    ):
        return array
    infinite = pc.is_in(counts, pa.array([largest, -largest], integer))
    return pc.if_else(infinite, pa.scalar(None, integer), counts).view(array.type)


def widen(array: pa.Array) -> pa.Array:
    """Return the plain array in the widest type of its kind: decimals and floats as float64, signed integers as int64,
    texts as string, times in microseconds.
    """
    array = plain_array(array)
    kind = array.type
    if types.is_decimal(kind):
        return pa.array(_of_decimals(array), mask=~valid_mask(array))
    if types.is_floating(kind):
        return array.cast(pa.float64())
    if types.is_signed_integer(kind):
        return array.cast(pa.int64())
    if types.is_large_string(kind):
        return array.cast(pa.string())
    if types.is_timestamp(kind):
        return array.cast(pa.timestamp("us", kind.tz), safe=False)
    return array


def is_text(kind: pa.DataType) -> bool:
    """Return True if `texts` does not convert the type."""
    return any(
        test(kind)
        for test in (types.is_string, types.is_large_string, types.is_binary, types.is_large_binary)
    )


def missing_mask(array: pa.Array) -> Bools:
    """Return a mask of values that are NULL, NaN or infinite, shape (n,)."""
    array = plain_array(array)
    mask = ~valid_mask(array)
    if not types.is_floating(array.type):
        return mask
    not_finite: Bools = ~pc.is_finite(array).fill_null(False).to_numpy(zero_copy_only=False)
    return mask | not_finite


def valid_mask(array: pa.Array) -> Bools:
    """Return a mask of values that are not NULL, shape (n,)."""
    if array.null_count == 0:
        return np.ones(len(array), dtype=np.bool_)
    mask: Bools = array.is_valid().to_numpy(zero_copy_only=False)
    return mask


def _nulls(array: pa.Array, column: str, expected: str) -> pa.Array:
    """Return an array of type null: databases choose an arbitrary type for NULL.

    Raises SemanticError for other values.
    """
    if array.null_count == len(array):
        return pa.nulls(len(array))
    raise ColumnTypeError(column, array.type, expected, expected)


# Numbers ---------------------------------------------------------------------------------------------------


def _float64(array: pa.Array) -> Floats:
    return np.asarray(array.to_numpy(zero_copy_only=False), dtype=np.float64)


def _of_decimals(array: pa.Array) -> Floats:
    """Return the nearest double of each decimal, as databases do; Arrow's cast is off by one digit for one of eight."""
    kind, is_valid = array.type, valid_mask(array)
    if types.is_decimal128(kind) and 0 <= kind.scale <= _EXACT_TENS and is_valid.any():
        words = np.frombuffer(array.buffers()[1], np.int64).reshape(-1, 2)[array.offset :][: len(array)]
        digits = np.where(is_valid, words[:, 0], 0)
        is_exact = (digits >= -_EXACT_INTEGER) & (digits <= _EXACT_INTEGER)
        if is_exact.all() and (words[:, 1] == digits >> 63)[is_valid].all():
            return np.where(is_valid, digits / 10.0**kind.scale, np.nan)
    return _float64(array.cast(pa.string()).cast(pa.float64()))


def _seconds(array: pa.Array) -> Floats:
    return _float64(array.cast(pa.int64())) / _SECOND[array.type.unit]


_NUMBERS: tuple[tuple[Callable[[pa.DataType], bool], Callable[[pa.Array], Floats]], ...] = (
    (types.is_floating, _float64),
    (types.is_integer, _float64),
    (types.is_boolean, lambda array: _float64(array.cast(pa.uint8()))),
    (types.is_decimal, _of_decimals),
    (types.is_null, lambda array: np.full(len(array), np.nan)),
    (types.is_date32, lambda array: _float64(array.cast(pa.int32())) * 86_400.0),
    (types.is_date64, lambda array: _float64(array.cast(pa.int64())) / 1e3),
    (types.is_time32, lambda array: _float64(array.cast(pa.int32())) / _SECOND[array.type.unit]),
    (types.is_time64, _seconds),
    (types.is_timestamp, _seconds),
    (types.is_duration, _seconds),
)


# Integers --------------------------------------------------------------------------------------------------


def _of_integers(array: pa.Array) -> tuple[Ints, Bools]:
    is_valid = valid_mask(array)
    values = (array.fill_null(0) if array.null_count else array).to_numpy()
    if types.is_uint64(array.type):
        is_valid &= values <= np.uint64(np.iinfo(np.int64).max)
    return values.astype(np.int64, copy=False), is_valid


def _of_floats(array: pa.Array) -> tuple[Ints, Bools]:
    values = _float64(array)
    is_whole = (np.abs(values) < 2.0**63) & (values == np.floor(values))
    return np.where(is_whole, values, 0.0).astype(np.int64), is_whole


def _of_texts(array: pa.Array) -> tuple[Ints, Bools]:
    """Convert texts to integers. Decimals are converted to text first: float64 would round integers beyond 2**53."""
    text = texts(array, "")
    if _is_digits(text):
        return _of_integers(text.cast(pa.int64()))
    digits = pc.match_substring_regex(text, _INTEGER_TEXT)
    if types.is_binary(text.type) or types.is_large_binary(text.type):
        text = pc.if_else(digits, text, None).cast(pa.large_string())
    return _of_integers(pc.if_else(digits, text, None).cast(pa.int64()))


def _is_digits(text: pa.Array) -> bool:
    """Return True if each value is an integer without a sign. That is common and fast to check."""
    if types.is_binary(text.type) or types.is_large_binary(text.type):
        return False
    digits = pc.all(pc.ascii_is_decimal(text)).as_py()
    return bool(digits and pc.max(pc.binary_length(text)).as_py() <= _LONGEST_INTEGER)


_INTEGERS: tuple[tuple[Callable[[pa.DataType], bool], Callable[[pa.Array], tuple[Ints, Bools]]], ...] = (
    (types.is_integer, _of_integers),
    (types.is_floating, _of_floats),
    (types.is_boolean, lambda array: _of_integers(array.cast(pa.uint8()))),
    (types.is_null, lambda array: (np.zeros(len(array), np.int64), np.zeros(len(array), np.bool_))),
    (types.is_decimal, _of_texts),
    (is_text, _of_texts),
)


# Text ------------------------------------------------------------------------------------------------------


def _same(array: pa.Array) -> pa.Array:
    return array


def _as_string(array: pa.Array) -> pa.Array:
    return array.cast(pa.string())


def _without_zeros(text: pa.Array) -> pa.Array:
    """Strip '3.50' to '3.5' and '3.00' to '3', so that the text does not depend on a scale or a unit."""
    return pc.replace_substring_regex(
        pc.replace_substring_regex(text, r"(\.[0-9]*?)0+$", r"\1"), pattern=r"\.$", replacement=""
    )


def _float_text(array: pa.Array) -> pa.Array:
    """Print floats in the column's own precision, so that a float32 of 0.1 is '0.1'."""
    integer, whole = _of_floats(array)
    finite = np.isfinite(_float64(array))
    printed = pc.if_else(pa.array(finite), array, None).cast(pa.string())
    return pc.if_else(pa.array(whole), pa.array(integer).cast(pa.string()), printed)


def _decimal_text(array: pa.Array) -> pa.Array:
    return _without_zeros(_as_string(array)) if array.type.scale > 0 else _as_string(array)


def _timestamp_text(array: pa.Array) -> pa.Array:
    return _without_zeros(array.cast(pa.timestamp(array.type.unit)).cast(pa.string()))


_TEXTS: tuple[tuple[Callable[[pa.DataType], bool], Callable[[pa.Array], pa.Array]], ...] = (
    (is_text, _same),
    (types.is_fixed_size_binary, lambda array: array.cast(pa.binary())),
    (types.is_integer, _as_string),
    (types.is_boolean, _as_string),
    (types.is_null, _as_string),
    (types.is_floating, _float_text),
    (types.is_decimal, _decimal_text),
    (types.is_date, lambda array: array.cast(pa.date32()).cast(pa.string())),
    (types.is_time, lambda array: _without_zeros(_as_string(array))),
    (types.is_timestamp, _timestamp_text),
)
