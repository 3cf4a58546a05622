"""Client of a job that is recorded: it runs the job of a kind as `edl train` does, and stores the model.

python -m tests.edl.end_to_end.crashes.client KIND MODEL_FILE
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

from edl.cli.output import write_model
from edl.jobs.event_log import record_end
from edl.models.pending import Intent, write_intent
from edl.run import foreground
from tests.edl.end_to_end.crashes.kinds import KINDS


def main(kind: str, file: Path) -> None:
    job = KINDS[kind]()
    with foreground.ending(job.folder):
        write_intent(job.folder.path, Intent("train", "", "", file=str(file)))
        outcome = job.run()
        record_end(job.cluster.events, outcome)
        write_model(job.folder.path / outcome.archive, file)
        acknowledge()


def acknowledge() -> None:
    """Record that the command could say that the model is stored, and copy what is recorded: the processes of the job
    have ended, and its folder is whole.
    """
    recorder: Any = sys.modules["sitecustomize"]
    shutil.copytree(recorder.ROOT, f"{recorder.ROOT}.copy", symlinks=True)
    recorder.ack("stored")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
