"""Features of a model, applied to rows in Python."""

from __future__ import annotations

import subprocess
import sys

import pyarrow as pa
import pytest

import sqlflow_edl
from edl.errors import SemanticError
from tests.trained import Models

QUERY = "SELECT * FROM sales ORDER BY id LIMIT 40"


def test_a_transform_gives_what_show_features_gives(trained: Models) -> None:
    archive = trained["shared"].archive
    wanted = next(trained.session.stream(f"SHOW FEATURES FOR shared ({QUERY})")).to_arrow()
    table = next(trained.session.stream(QUERY)).to_arrow()
    transform = sqlflow_edl.load_transform("shared@1", source=trained.session)
    assert transform.reference == "shared@1"
    assert transform.columns == tuple(archive.spec.columns)
    assert transform.transform(table).equals(wanted)
    upper = table.rename_columns([name.upper() for name in table.column_names])
    from_file = sqlflow_edl.load_transform(trained.folder / "shared.zip").transform(upper)
    assert [each.to_pylist() for each in from_file.columns] == [each.to_pylist() for each in wanted.columns]
    assert (
        transform.transform(table.to_pandas())
        .select(wanted.column_names[-8:])
        .equals(wanted.select(wanted.column_names[-8:]))
    )
    assert transform.transform(table.slice(0, 0)).schema.names == wanted.schema.names


def test_rows_without_a_column_of_the_model_are_refused(trained: Models) -> None:
    trained["shared"]
    transform = sqlflow_edl.load_transform("shared", source=trained.session)
    with pytest.raises(SemanticError, match=r"the rows lack small, .*, which shared@1 reads"):
        transform.transform(pa.table({"shop": [7]}))


def test_no_framework_is_loaded(trained: Models) -> None:
    trained["shared"]
    code = (
        "import sys, pyarrow, sqlflow_edl\n"
        "found = sqlflow_edl.load_transform(sys.argv[1])\n"
        "found.transform(pyarrow.table({name: pyarrow.nulls(1, 'int64') for name in found.columns}))\n"
        "print(sorted({'torch', 'keras', 'tensorflow', 'lightgbm'} & set(sys.modules)))\n"
    )
    file = str(trained.folder / "shared.zip")
    run = subprocess.run([sys.executable, "-c", code, file], capture_output=True, text=True, check=False)
    assert run.stdout.strip() == "[]", run.stderr
