"""`sqlflow export m -o m.pmml` and EXPORT MODEL: the trees of a model as a file of PMML."""

from __future__ import annotations

from pathlib import Path

from edl.errors import SQLFlowError
from edl.files import replacing
from edl.models.archive import read_archive
from sqlflow_edl.backends.exporting import read_forest
from sqlflow_edl.display.files import name_write_errors
from sqlflow_edl.extensions.pmml.document import encode_pmml


def write_pmml(archive: Path, reference: str, output: Path) -> str:
    """Write the document to a file, which appears when it is complete. Return what was written, in words."""
    if output.exists():
        raise SQLFlowError(f"{output} is there already", hint="remove it, or choose another name")
    model = read_archive(archive)
    text = encode_pmml(model, reference, lambda: read_forest(model, archive))
    with name_write_errors(output), replacing(output) as partial:
        partial.write_text(text, encoding="utf-8")
    return "a PMML model of the columns that its trees compare"
