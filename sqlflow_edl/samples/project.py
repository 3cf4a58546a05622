"""Folder to begin with: a small database, a program that trains, evaluates and predicts, and how to run it."""

from __future__ import annotations

import contextlib
from importlib.util import find_spec
from pathlib import Path
from string import Template
from tempfile import TemporaryDirectory

from edl.data import connect
from edl.errors import SQLFlowError
from edl.installation import install_extras
from sqlflow_edl.samples.tables import write

DATABASE = "duckdb:///data.duckdb"  # within the folder
PROGRAM = "incomes.sql"
RUN = f"sqlflow run {PROGRAM} --source {DATABASE}"

# Package -> estimator that trains with it, the quickest first.
_ESTIMATORS = {
    "lightgbm": "BoostedTreesRegressor",
    "xgboost": "BoostedTreesRegressor WITH model.framework = xgboost",
    "torch": "DNNRegressor WITH model.framework = torch",
    "keras": "DNNRegressor",
}

_PROGRAM = Template("""\
-- Train a model on four fifths of the employees, whose rows SELECT chooses like any other rows.
SELECT age, department, income FROM employee WHERE id % 5 <> 0
TO TRAIN $estimator
LABEL income
INTO incomes;

-- Measure it on the others.
SELECT age, department, income FROM employee WHERE id % 5 = 0
TO EVALUATE incomes
LABEL income;

-- Predict their incomes: the table predictions gets all columns of the rows, and the column predicted.
SELECT id, age, department, income FROM employee WHERE id % 5 = 0
TO PREDICT predictions.predicted
USING incomes;

-- It is an ordinary table.
SELECT department, count(*) AS employees, avg(income) AS income, avg(predicted) AS predicted
FROM predictions
GROUP BY department
ORDER BY department;
""")

_README = f"""\
# Incomes

`data.duckdb` has a table `employee` with 6,400 synthetic rows, and `{PROGRAM}` trains, evaluates and uses a model:

    {RUN}

Look around in the console, which completes names and has `/help TRAIN`:

    sqlflow console --source {DATABASE}

`sqlflow help sources` shows other data sources, `sqlflow help language` the statements.
"""


def write_project(folder: Path) -> list[str]:
    """Write the files into a new or empty folder, all or none, and return their names.

    Raises SQLFlowError if the folder has files or cannot be written, or nothing that trains is installed.
    """
    estimator = next(
        (estimator_name for package, estimator_name in _ESTIMATORS.items() if find_spec(package)), None
    )
    if estimator is None:
        raise SQLFlowError("no library that trains models is installed", hint=install_extras("lightgbm"))
    try:
        is_new = not folder.exists()
        if not is_new and (not folder.is_dir() or any(folder.iterdir())):
            raise SQLFlowError(f"{folder} is not an empty folder", hint="name a new one")
        folder.mkdir(parents=True, exist_ok=True)
        try:
            return _write_files(folder, estimator)
        except BaseException:
            if is_new:
                with contextlib.suppress(OSError):
                    folder.rmdir()
            raise
    except OSError as error:
        raise SQLFlowError(f"cannot write {folder}: {error.strerror}") from None


def _write_files(folder: Path, estimator: str) -> list[str]:
    """Write the files beside their places, and move them there."""
    with TemporaryDirectory(prefix=".sqlflow-", dir=folder) as partial:
        partial_folder = Path(partial)
        with connect(f"duckdb:{partial_folder / 'data.duckdb'}", create=True) as source:
            list(write(source, ("employee",)))
        (partial_folder / PROGRAM).write_text(_PROGRAM.substitute(estimator=estimator), encoding="utf-8")
        (partial_folder / "README.md").write_text(_README, encoding="utf-8")
        names = sorted(path.name for path in partial_folder.iterdir())
        for name in names:
            (partial_folder / name).rename(folder / name)
    return names
