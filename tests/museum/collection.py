"""Places of the museum's pieces, and how a model of it predicts.

A *piece* of the museum is what one version of this project wrote, and every later version reads: the first ones are of
version 0.1.0 (98fd50e7). A model is three files of one name: the statements (`.sql`), the archive (`.zip`), and what
it predicted (`.arrow`). The first statement trains the model; if there is a second one, it made the predictions over
the tables of the museum, otherwise the model did in memory, of the rows of `fresh`.
"""

from __future__ import annotations

import contextlib
import platform
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from edl.models.archive import read_archive
from edl.models.registry.records import ModelRecord
from edl.program.user_model import PATH_VARIABLE
from edl.spec.extra_outputs import extra_outputs
from sqlflow_edl.analysis.extra_outputs import output_names
from sqlflow_edl.session.session import Session
from tests.databases import fill

FOLDER = Path(__file__).parents[1] / "fixtures" / "museum"
MODELS = FOLDER / "models"
SPECS = FOLDER / "specs"
MODULES = FOLDER / "modules"  # models and functions of a user
PROCESSOR = b"processor"  # of a table's metadata
COVERAGE = 0.8  # of the intervals around predicted numbers


def names(folder: Path = MODELS) -> list[str]:
    """Names of the pieces in a folder that have statements, in order."""
    return sorted(path.stem for path in folder.glob("*.sql"))


def statements(name: str, folder: Path = MODELS) -> list[str]:
    """Statements of a piece; of a model its training, and the use of it if there is one."""
    text = (folder / f"{name}.sql").read_text(encoding="utf-8")
    return [f"{each.strip()};" for each in text.split(";\n") if each.strip()]


def read_table(path: Path) -> pa.Table:
    with pa.ipc.open_file(path) as file:
        return file.read_all()


def write_table(path: Path, table: pa.Table) -> None:
    """Write the rows, and the processor on which they were computed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    schema = table.schema.with_metadata({PROCESSOR: processor()})
    with pa.ipc.new_file(path, schema) as file:
        file.write_table(table.combine_chunks().cast(schema))


def processor() -> str:
    """Model of this machine's processor and its widest instructions, by which libraries choose sums and exponentials.

    Virtual machines call processors of several generations by one name.
    """
    extensions: Any = np.show_config(mode="dicts")
    widest = [extensions["SIMD Extensions"]["baseline"][-1], *extensions["SIMD Extensions"]["found"]][-1]
    name = platform.processor()
    with contextlib.suppress(OSError):
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
        if found := re.search(r"^model name\s*:\s*(.+)$", text, flags=re.M):
            name = found[1]
    return f"{name} with {widest}"


def tables() -> dict[str, pa.Table]:
    """Tables of the museum by name."""
    return {path.stem: read_table(path) for path in sorted((FOLDER / "tables").glob("*.arrow"))}


def fill_tables(session: Session) -> None:
    """Make the tables of the museum in the session's database."""
    for name, rows in tables().items():
        fill(session, name, rows)


def predict(archive: Path) -> pa.Table:
    """Predict the rows of `fresh` in this process: all columns and extra outputs that the model can give."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(PATH_VARIABLE, str(MODULES))
        from sqlflow_edl.extensions.serving.model import load_model  # which the core does without

        model = load_model(archive, archive.stem)
        [batch] = tables()["fresh"].select(model.schema.names).combine_chunks().to_batches()
        extra = extra_outputs(model.archive.spec)
        interval = COVERAGE if model.archive.residuals is not None else None
        added, probabilities = output_names(extra, model.archive, model.reference)
        assert probabilities is None
        return pa.Table.from_batches([model.predictor.predict(batch, model.settings(interval, None, added))])


def store(archive: Path, session: Session) -> None:
    """Store the model in the session's registry, under the name of its file."""
    trained = read_archive(archive)
    record = ModelRecord(
        trained.spec.model.name,
        trained.spec.framework,
        trained.spec.rows.training,
        trained.metrics,
        trained.spec.statement,
    )
    session.registry.save(archive.stem, archive, record)
