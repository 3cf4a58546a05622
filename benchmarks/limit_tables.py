"""Tables of `benchmarks.limits`: odd in their size or in their values, made by DuckDB from the numbers of rows."""

from __future__ import annotations

from dataclasses import dataclass

import duckdb


@dataclass(frozen=True)
class Table:
    """Table with `rows` rows and a label `y`. columns: SQL expressions over `range`, the number of a row.

    is_refused: there is nothing to learn, and the statement has to say so.
    """

    name: str
    rows: int
    columns: tuple[str, ...]
    is_refused: bool = False

    def create(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Create the table as `t`."""
        connection.execute(f"CREATE TABLE t AS SELECT {', '.join(self.columns)} FROM range({self.rows})")


def whole(seed: int, most: int = 1000) -> str:
    """Return an expression for whole numbers below `most` that look random."""
    return f"(hash(range * 31 + {seed}) % {most})::INT"


def several(count: int, name: str, expression: str) -> tuple[str, ...]:
    """Return so many columns. RANDOM in the expression: a large whole number, another one in each column."""
    return tuple(
        f"{expression.replace('RANDOM', f'hash(range * {count} + {number})')} AS {name}{number}"
        for number in range(count)
    )


FRACTION = "(RANDOM % 100000) / 1e5"
FOUR = tuple(f"{whole(seed)} AS a{seed}" for seed in range(4))
NUMBER = f"{whole(0)} + {whole(1)} * 0.1 + {whole(99, 100)} AS y"
CLASS = f"CASE WHEN {whole(0)} + {whole(99, 600)} > 800 THEN 'yes' ELSE 'no' END AS y"
KILOBYTES = "repeat(md5({}::TEXT) || ' ', 62) AS text"
DATE = "TIMESTAMP '2015-01-01' + INTERVAL (RANDOM % 3000) DAY + INTERVAL (RANDOM % 86400) SECOND"
RARELY = "CASE WHEN RANDOM % 10 = 0 THEN (RANDOM % 997)::INT END"
ODD = "CASE range % 3 WHEN 0 THEN 'nan'::DOUBLE WHEN 1 THEN 'inf'::DOUBLE ELSE range END AS a1"
LIST = "list_transform(range(256), lambda i: (hash(i * 31 + range) % 1000 / 1e3)::FLOAT) AS v"
RARE = "CASE WHEN range % 10000 = 0 THEN 'yes' ELSE 'no' END AS y"

TABLES = (
    Table("12 rows", 12, (*several(3, "a", FRACTION), "range % 2 AS y")),
    Table("40 rows", 40, (*several(10, "a", FRACTION), NUMBER)),
    Table("2,000,000 rows, 5 columns", 2_000_000, (*FOUR, NUMBER)),
    Table("1,500,000 rows, 5 columns, 2 classes", 1_500_000, (*FOUR, CLASS)),
    Table("3,000,000 rows, 2 columns", 3_000_000, (FOUR[0], NUMBER)),
    Table("100,000 rows, 100 columns", 100_000, (*FOUR, *several(95, "b", FRACTION), NUMBER)),
    Table(
        "500,000 rows, 60 columns",
        500_000,
        (*FOUR, *several(45, "b", FRACTION), *several(10, "c", "'g' || (RANDOM % 50)"), CLASS),
    ),
    Table("400 rows, 5,000 columns", 400, (FOUR[0], *several(4998, "b", FRACTION), CLASS)),
    Table("300 rows, 3,000 columns", 300, (FOUR[0], *several(2998, "b", FRACTION), NUMBER)),
    Table("500 rows, 2,000 columns of texts", 500, (*several(2000, "b", "'v' || (RANDOM % 9)"), CLASS)),
    Table(
        "20,000 rows, 1,000 flags", 20_000, (FOUR[0], *several(1000, "b", "(RANDOM % 20 = 0)::INT"), CLASS)
    ),
    Table("300 classes", 20_000, (*FOUR, *several(10, "b", FRACTION), f"'c' || {whole(0)} * 3 // 10 AS y")),
    Table("1,000 classes in 2,000 rows", 2_000, (*FOUR, f"'c' || {whole(0)} AS y")),
    Table("texts of 2 kB, all different", 20_000, (*FOUR, KILOBYTES.format("range"), CLASS)),
    Table("texts of 2 kB, 30 different", 100_000, (*FOUR, KILOBYTES.format(whole(5, 30)), CLASS)),
    Table(
        "1,000,000 categories",
        1_000_000,
        (*FOUR, f"'k' || {whole(3, 1_000_000)} AS k", "'r' || range AS r", CLASS),
    ),
    Table(
        "1,000,000 customers by number", 1_500_000, (*FOUR, f"{whole(3, 1_000_000)} AS customer_id", NUMBER)
    ),
    Table(
        "20 columns of 10,000 categories",
        50_000,
        (*FOUR, *several(20, "b", "'c' || (RANDOM % 10000)"), CLASS),
    ),
    Table("50 columns of NULL alone", 20_000, (FOUR[0], *several(50, "b", "NULL::DOUBLE"), NUMBER)),
    Table("nine of ten values NULL", 50_000, (FOUR[0], *several(30, "b", RARELY), CLASS)),
    Table("a constant label", 20_000, (*FOUR, "7.5 AS y"), is_refused=True),
    Table("one class", 20_000, (*FOUR, "'yes' AS y"), is_refused=True),
    Table("a class in 10 of 100,000 rows", 100_000, (*FOUR, RARE)),
    Table(
        "a label with a heavy tail", 200_000, (*FOUR, f"exp({whole(0)} / 100.0 + {whole(99)} / 300.0) AS y")
    ),
    Table("a column that is the label", 200_000, (*FOUR, f"{whole(7)} AS copy", f"{whole(7)} AS y")),
    Table(
        "equal rows", 100_000, ("1 AS a0", "'a' AS a1", f"{whole(1, 2)} AS a2", f"'c' || {whole(1, 2)} AS y")
    ),
    Table("10 columns of dates", 100_000, (FOUR[0], *several(10, "b", DATE), NUMBER)),
    Table("NaN, infinite, up to 1e300", 20_000, (FOUR[0], ODD, f"pow(10, {whole(1, 300)}) AS a2", CLASS)),
    Table("lists of 256 numbers", 20_000, (*FOUR, LIST, CLASS)),
    Table(
        "decimals and booleans",
        200_000,
        (
            *several(10, "b", "(RANDOM % 100000 / 100)::DECIMAL(12, 2)"),
            *several(10, "c", "RANDOM % 2 = 0"),
            NUMBER,
        ),
    ),
)
