"""Exchange of trials between workers that share no disk, through the store of the job's checkpoints.

A trial is a named folder there: the model and the scores of each fold, and its record, which completes it. Of a
training on some of the rows there is the record alone, and of a turn without time an empty file.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from collections.abc import Mapping
from pathlib import Path

from edl.checkpoints import CheckpointStore, GoneError
from edl.jobs.job_folder import JobFolder
from edl.jobs.trials import RECORD, SCREENING_RECORD
from edl.run.search.judge import SKIPPED
from edl.run.search.trial import SCORES

_TRIAL, _SCREENING, _SKIPPED, _BEGAN = "trial-", "screening-", "skipped-", "began-"


class TrialStore:
    """View of one worker on the trials of its search in its job folder."""

    def __init__(self, job: JobFolder, store: CheckpointStore) -> None:
        self._search = job.search
        self._store = store

    def began(self) -> float:
        """Return the second at which the first worker began, as of `time.time` there."""
        self._publish(f"{_BEGAN}{time.time():.3f}", {"pid": f"{os.getpid()}\n".encode()})
        names = self._store.names()
        return min(float(name.removeprefix(_BEGAN)) for name in names if name.startswith(_BEGAN))

    def publish(self, number: int) -> None:
        """Publish an ended trial of this worker's."""
        folder = self._search / f"{number:03}"
        models = [path for path in sorted(folder.glob("[0-9]*/*")) if path.name in (SCORES, "archive.zip")]
        files: dict[str, Path | bytes] = {f"{path.parent.name}.{path.name}": path for path in models}
        self._publish(f"{_TRIAL}{number:03}", {**files, RECORD: folder / RECORD})

    def publish_screening(self, number: int) -> None:
        """Publish a training of this worker's on some of the rows."""
        record = self._search / f"{number:03}" / SCREENING_RECORD
        self._publish(f"{_SCREENING}{number:03}", {SCREENING_RECORD: record})

    def publish_skipped(self, turn: int) -> None:
        """Publish that a turn had no time."""
        self._publish(f"{_SKIPPED}{turn:03}", {SKIPPED: b""})

    def fetch(self) -> None:
        """Fetch what other workers have published."""
        for name in self._store.names():
            if name.startswith(_SKIPPED):
                path = self._search / SKIPPED / name.removeprefix(_SKIPPED)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.touch()
        for kind, record in ((_TRIAL, RECORD), (_SCREENING, SCREENING_RECORD)):
            for name in self._store.names(having=record):
                folder = self._search / name.removeprefix(kind)
                if name.startswith(kind) and not (folder / record).exists():
                    with contextlib.suppress(GoneError):
                        _place(self._store.fetch(name), folder, record)

    def _publish(self, name: str, files: Mapping[str, Path | bytes]) -> None:
        """Publish files, given by a path or their content, under a name."""
        folder = self._store.folder / name
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for file, source in files.items():
            partial = folder / f"{file}.partial"
            partial.write_bytes(source) if isinstance(source, bytes) else shutil.copyfile(source, partial)
            partial.replace(folder / file)
        self._store.publish(name, *files)


def _place(fetched: Path, folder: Path, record: str) -> None:
    """Copy a fetched trial to its folder, the record last."""
    for path in sorted(fetched.iterdir(), key=lambda path_fetched: path_fetched.name == record):
        fold, _, file = path.name.partition(".") if path.name != record else ("", "", record)
        (folder / fold).mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, folder / fold / file)
