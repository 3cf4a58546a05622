"""Downloads of a version of a model: its archive, and the model as ONNX."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable
from pathlib import Path

from edl.errors import ClusterError
from edl.frameworks.export import FORMATS
from edl.models.archive import Archive
from edl.models.registry.model_store import ModelStore
from edl.models.registry.records import ModelVersion

SECONDS = 300.0  # of an export

Download = tuple[Path, Callable[[], None]]  # a file, and what removes it


class Downloads:
    """Files of models, for several threads. One export runs at a time, in a process of its own."""

    def __init__(self, store: ModelStore) -> None:
        self._store = store
        self._exports = threading.Lock()

    def archive(self, version: ModelVersion) -> Download:
        """Return the archive of a version. Raises SourceError if the store cannot be read."""
        folder = tempfile.TemporaryDirectory(prefix="sqlflow-edl-")
        try:
            return self._load(version, Path(folder.name)), folder.cleanup
        except BaseException:
            folder.cleanup()
            raise

    def onnx(self, version: ModelVersion) -> Download:
        """Return the model as ONNX. Raises JobError if it has no such form, ClusterError during another export,
        SourceError if the store cannot be read.
        """
        from sqlflow_edl.backends.exporting import export_file

        if not self._exports.acquire(blocking=False):
            raise ClusterError("the server exports another model", hint="try again in a minute")
        folder = tempfile.TemporaryDirectory(prefix="sqlflow-edl-")
        try:
            file = Path(folder.name) / "export.onnx"
            archive = self._load(version, Path(folder.name))
            export_file(archive, Path(folder.name) / "program", str(file), SECONDS)
        except BaseException:
            folder.cleanup()
            raise
        finally:
            self._exports.release()
        return file, folder.cleanup

    def _load(self, version: ModelVersion, folder: Path) -> Path:
        file = folder / "model.zip"
        with self._store.open() as registry:
            registry.load(version.reference, file)
        return file


def has_onnx(archive: Archive | None) -> bool:
    """Return True if the model may have a form as ONNX."""
    if archive is None or archive.spec.forecast is not None:
        return False
    return ".onnx" in FORMATS.get(archive.spec.framework, ())
