"""Import of models that were trained elsewhere: from a file and options to a JobSpec and an archive.

`edl.extensions.imported` reads the files and computes ONNX models.
"""

from sqlflow_edl.extensions.imported.importing import check, import_model, rows_of_plan

__all__ = ["check", "import_model", "rows_of_plan"]
