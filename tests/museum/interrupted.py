"""A training that was paused: its job folder with checkpoints, and the archive of the same training without a pause.

Paths of the machine that wrote the folder are replaced by `HOME`, and by a folder of the test when it is read. Locks,
the job's secret, addresses and logs are left out.
"""

from __future__ import annotations

import contextlib
import shutil
import time
from pathlib import Path

import pytest

from edl.jobs import job_folder
from edl.jobs.cluster_folder import ClusterFolder
from edl.jobs.job_folder import JobFolder
from edl.master.resume import point
from edl.master.state import MasterState
from edl.master.state_store import MAGIC
from edl.program.user_model import PATH_VARIABLE
from edl.tasks import encoding
from sqlflow_edl.backends.local import LocalJobHandle
from sqlflow_edl.session.session import Session
from tests.databases import fill
from tests.museum.collection import FOLDER, tables

JOB = FOLDER / "job"
WHOLE = FOLDER / "job.zip"  # the model of the training without a pause
HOME = "/home/of/the/museum"
TEXTS = ("intent.json", "program/reader.py", "program/job.json", "rows/pinned.json", "cluster/spec.json")
LEFT_OUT = shutil.ignore_patterns(
    "lock", "state.lock", "token", "address", "metrics", "logs", "tensorboard", "*.pyc"
)
STATEMENT = """SELECT amount, small, price, cost FROM sales TO TRAIN DNNRegressor
WITH model.framework = torch, model.hidden_units = [3], model.members = 1, train.batch_size = 40, train.epochs = 300,
train.early_stopping = 0, validation.fraction = 0, train.num_workers = 1, train.checkpoint_steps = 10
LABEL cost INTO interrupted;"""
PAUSED_FROM = 25  # step


def write(home: Path) -> None:
    """Train with a pause, and without one, in a database in the folder `home`."""
    with pytest.MonkeyPatch.context() as patch, contextlib.chdir(home):
        patch.setenv("XDG_STATE_HOME", str(home / "state"))
        patch.setenv(PATH_VARIABLE, str(home / "modules"))
        with Session(f"sqlite:{home}/museum.sqlite", create=True) as session:
            fill(session, "sales", tables()["sales"].select(["amount", "small", "price", "cost"]))
            for _ in session.run(STATEMENT):
                pass
            session.registry.load("interrupted", WHOLE)
            [statement] = session.program(STATEMENT)
            session.leave(statement)
            job = job_folder.jobs()[-1]
            while stored_step(job) < PAUSED_FROM:
                time.sleep(0.02)
            print(f"job: {LocalJobHandle(job).pause()}")
            assert point(job).step >= PAUSED_FROM
    shutil.copytree(job.path, JOB, ignore=LEFT_OUT)
    replace_home(JOB, str(home), HOME)


def stored_step(job: JobFolder) -> int:
    """Step of the last checkpoint that the master of the job has stored."""
    with contextlib.suppress(FileNotFoundError):
        state = ClusterFolder(job.path).state.read_bytes()
        return encoding.decode(state[len(MAGIC) + 4 :], MasterState).checkpoint_step
    return 0


def unpack(home: Path) -> JobFolder:
    """Copy of the job folder among the jobs of the user's state folder, as if it had been started in `home`."""
    started = job_folder.JobFolder(JOB).status().started
    moment = started[:23].replace("-", "").replace("T", "-").replace(":", "").replace(".", "-")
    job = JobFolder(job_folder.state_folder() / "jobs" / f"{moment}000-0c0ffe")
    shutil.copytree(JOB, job.path)
    for folder in (job.logs, job.results):  # which were empty
        folder.mkdir(exist_ok=True)
    replace_home(job.path, HOME, str(home))
    ClusterFolder(job.path).make_token()
    return job


def replace_home(job: Path, old: str, new: str) -> None:
    for name in TEXTS:
        text = (job / name).read_text(encoding="utf-8")
        (job / name).write_text(text.replace(old, new), encoding="utf-8")
