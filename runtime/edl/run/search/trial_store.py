"""Exchange of trials between workers that share no disk, through the store of the job's checkpoints.

A trial is a named folder there: the model and the scores of each fold, and its record, which completes it.
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
from edl.run.search.judge import RECORD
from edl.run.search.trial import SCORES

_TRIAL, _BEGAN = "trial-", "began-"


class TrialStore:
    """View of one worker on the trials of its search, which it has in its job folder."""

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

    def fetch(self) -> None:
        """Fetch the trials that other workers have published."""
        for name in self._store.names(having=RECORD):
            folder = self._search / name.removeprefix(_TRIAL)
            if name.startswith(_TRIAL) and not (folder / RECORD).exists():
                with contextlib.suppress(GoneError):
                    _place(self._store.fetch(name), folder)

    def _publish(self, name: str, files: Mapping[str, Path | bytes]) -> None:
        """Publish files, given by a path or their content, under a name."""
        folder = self._store.folder / name
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for file, source in files.items():
            partial = folder / f"{file}.partial"
            partial.write_bytes(source) if isinstance(source, bytes) else shutil.copyfile(source, partial)
            partial.replace(folder / file)
        self._store.publish(name, *files)


def _place(fetched: Path, folder: Path) -> None:
    """Copy a fetched trial to its folder, the record last."""
    for path in sorted(fetched.iterdir(), key=lambda each: each.name == RECORD):
        fold, _, file = path.name.partition(".") if path.name != RECORD else ("", "", RECORD)
        (folder / fold).mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, folder / fold / file)
