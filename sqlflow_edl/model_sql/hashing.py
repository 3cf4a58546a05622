"""Hash of `edl.features.hashing` in SQL: sums of mixed bytes modulo 2**64, exactly.

It needs whole numbers beyond 64 bits, bitwise operators, and a way through the bytes of a text within an expression.
DuckDB and PostgreSQL have them. In MySQL a subquery cannot read the bytes of a row, and SQLite has numbers of 63 bits
and no exclusive or.

A form is an expression of the column `c`: `hash` of a text, and `mix` of a whole number from 0 on. Both give a number
from 0 to 2**64 - 1. Columns of subqueries are qualified, by which `stages` knows them from its own.
"""

from __future__ import annotations

_ALL = 2**64
_GAMMA = 0x9E3779B97F4A7C15
_STEPS = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB))  # shifts, and the factors behind them
_LAST = 31


def _of_list(numbers: str) -> str:
    """Return the mixed numbers of a list of DuckDB: a step of the function for all of them is one call.

    The modulus is a mask, since a division of numbers of 128 bits takes fifty times as long.
    """
    wide = "CAST({} AS UHUGEINT)".format
    low = f"& {wide(_ALL - 1)}"
    mixed = f"LIST_TRANSFORM({numbers}, LAMBDA x : (CAST(x AS UHUGEINT) + {wide(_GAMMA)}) {low})"
    for shift, factor in _STEPS:
        mixed = f"LIST_TRANSFORM({mixed}, LAMBDA x : (XOR(x, x >> {shift}) * {wide(factor)}) {low})"
    return f"LIST_TRANSFORM({mixed}, LAMBDA x : XOR(x, x >> {_LAST}))"


def _of_number(expression: str) -> str:
    """Return the mixed number of PostgreSQL. Its bit operations are on signed numbers, and its products are numeric.
    OFFSET 0 keeps a subquery from being merged into the next, which reads it twice.
    """
    half = 2**63

    def signed(number: str) -> str:
        return f"CAST(MOD(MOD({number}, {_ALL}) + {3 * half}, {_ALL}) - {half} AS BIGINT) AS b"

    def shifted(shift: int) -> str:
        return f"CAST(m.b # ((m.b >> {shift}) & {2 ** (64 - shift) - 1}) AS DECIMAL)"

    mixed = f"SELECT {signed(f'{expression} + {_GAMMA}')} OFFSET 0"
    for shift, factor in _STEPS:
        mixed = f"SELECT {signed(f'{shifted(shift)} * {factor}')} FROM ({mixed}) AS m OFFSET 0"
    return f"(SELECT MOD({shifted(_LAST)} + {_ALL}, {_ALL}) FROM ({mixed}) AS m)"


def _duckdb() -> dict[str, str]:
    size = "OCTET_LENGTH(ENCODE(c))"
    byte = "CAST('0x' || SUBSTR(HEX(c), 2 * x + 1, 2) AS INT)"
    terms = _of_list(f"LIST_TRANSFORM(RANGE({size}), LAMBDA x : 256 * x + {byte} + 1)")
    # a sum of unsigned numbers would be a double
    total = f"COALESCE(LIST_SUM(LIST_TRANSFORM({terms}, LAMBDA x : CAST(x AS HUGEINT))), 0)"
    return {"hash": f"({_of_list(f'[{total} + {size}]')})[1]", "mix": f"({_of_list('[c]')})[1]"}


def _postgres() -> dict[str, str]:
    size = "OCTET_LENGTH(CONVERT_TO(c, 'UTF8'))"
    term = _of_number("256 * g.i + GET_BYTE(CONVERT_TO(c, 'UTF8'), g.i) + 1")
    total = f"(SELECT COALESCE(SUM({term}), 0) FROM GENERATE_SERIES(0, {size} - 1) AS g(i))"
    return {"hash": _of_number(f"{total} + {size}"), "mix": _of_number("c")}


DUCKDB, POSTGRES = _duckdb(), _postgres()
