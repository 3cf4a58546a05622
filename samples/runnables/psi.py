"""Population stability index of each numeric column: how far its distribution in one group is from that in another.

    SELECT … TO RUN samples/runnables/psi.py CMD "--group=half", "--baseline=first" INTO drift

The baseline's deciles are the bins. An index below 0.1 is usually called stable, one above 0.25 a shift.
"""

from __future__ import annotations

import argparse

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from edl.runnable import rows, write


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--group", required=True, help="column that divides the rows")
    parser.add_argument("--baseline", required=True, help="value of that column in the rows to compare with")
    parser.add_argument("--bins", type=int, default=10)
    options = parser.parse_args()
    numeric = [field.name for field in rows().schema if is_number(field) and field.name != options.group]
    found = {name: psi(name, options) for name in numeric}
    write({"column": list(found), "psi": list(found.values())})


def is_number(field: pa.Field) -> bool:
    kinds = pa.types
    return bool(kinds.is_integer(field.type) or kinds.is_floating(field.type) or kinds.is_decimal(field.type))


def psi(name: str, options: argparse.Namespace) -> float:
    """Return the index of a column; rows where it is NULL are left out."""
    table = rows([name, options.group]).read_all().drop_null()
    values = table[name].cast(pa.float64()).to_numpy()
    of_baseline = pc.equal(table[options.group].cast(pa.string()), options.baseline).to_numpy()
    if of_baseline.all() or not of_baseline.any():
        raise SystemExit(f"{options.group} does not divide the rows into {options.baseline} and others")
    inner = np.unique(np.quantile(values[of_baseline], np.linspace(0, 1, options.bins + 1)[1:-1]))
    before, after = (shares(values[side], inner) for side in (of_baseline, ~of_baseline))
    return float(np.sum((after - before) * np.log(after / before)))


def shares(values: np.ndarray, inner: np.ndarray) -> np.ndarray:
    """Return the share of each bin; an empty one counts as half a value, so that its logarithm is finite."""
    counts = np.bincount(np.searchsorted(inner, values, side="left"), minlength=len(inner) + 1)
    return np.maximum(counts, 0.5) / len(values)


if __name__ == "__main__":
    main()
