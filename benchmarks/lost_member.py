"""Recovery from a lost member: from the signal to the next steps, against torchrun, which restarts all.

Three members train the dense network of `training` in minibatches of 512; the lost one is the first of the
group, or rank 0. torchrun's ranks restart from a checkpoint of the last epoch, on the same disk.

torchrun keeps one store for all restarts. Restarted ranks find the addresses of their predecessors there, and
often fail on that until no restart is left (pytorch/pytorch#135712). So `OWN_STORES` is set, except for the
figure that names the default. The other ranks notice a frozen rank only at the timeout, half an hour by
default; here it is `SECS`.
"""

from __future__ import annotations

import json
import math
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.baselines import training_arrays
from benchmarks.jobs import dense_session, job_with, training_job
from benchmarks.table import Row
from benchmarks.training import BATCH_SIZE
from edl.cluster.environment import RESOLVER
from edl.cluster.local.client import SupervisedJob
from edl.jobs.cluster_folder import ClusterFolder
from edl.spec import Cluster, Rows, Training
from edl.testing import Moment, read_moments
from tests.edl.end_to_end import timed
from tests.edl.end_to_end.distributed import kill

MEMBERS = 3
EPOCHS = 20
AIMS = {signal.SIGKILL: 1.0, signal.SIGSTOP: 5.0}  # seconds
SECS = 5.0  # timeout of torchrun's ranks
OWN_STORES = {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}
RESTARTS = 3
LIMIT = 120.0  # seconds until torchrun is given up


def measure(folder: Path, rounds: int, rows: int) -> list[Row]:
    """Train on a tenth of `rows`."""
    count = max(rows // 10, 50 * BATCH_SIZE)
    with dense_session(folder, count) as session:
        job = training_job(session, folder, "torch")
    table = []
    with timed.apart():
        for number, aim in AIMS.items():
            pairs = [(_ours(job, count, number), _theirs(job, number, OWN_STORES)) for _ in range(rounds)]
            ours, theirs = zip(*pairs, strict=True)
            name = f"{number.name} of a member to the next steps"
            table.append(Row(name, _figure(ours), value=max(ours), most=aim))
            ratios = [our / their for our, their in pairs]
            table.append(Row("… against torchrun's restart from a checkpoint", _figure(theirs), ratios))
        plain = [_theirs(job, signal.SIGKILL, {}) for _ in range(rounds)]
    back = sum(seconds < LIMIT for seconds in plain)
    table.append(Row("restarts of torchrun as it comes that train again", f"{back} of {rounds}"))
    return table


def _ours(made: Path, count: int, number: signal.Signals) -> float:
    cluster = Cluster(MEMBERS, strategy="allreduce")
    training = Training(EPOCHS, BATCH_SIZE)
    job = job_with(made, rows=Rows(True, count, count), training=training, cluster=cluster)
    lost = timed.Signaller("worker-0", number, count * EPOCHS // 3)
    with tempfile.TemporaryDirectory() as moments:
        with SupervisedJob.start(job, kill(moments=Path(moments))) as running:
            running.follow(partial(lost, ClusterFolder(job.path)))
        others = [path for path in Path(moments).glob("worker-*") if not path.name.startswith("worker-0.")]
        after = [[one for one in read_moments(path) if one.second > lost.second] for path in others]
    job.remove()
    return min(map(_trained_on, after)) - lost.second


def _trained_on(moments: list[Moment]) -> float:
    """Return the time of the first steps in the next group.

    Steps in progress may still end in the previous group.
    """
    formed = next((one.second for one in moments if one.what == "group"), math.inf)
    return next((one.second for one in moments if one.what == "batch" and one.second > formed), math.inf)


def _theirs(job: Path, number: signal.Signals, environment: dict[str, str]) -> float:
    """Return the seconds to the next step, or infinity if no rank takes a step again."""
    run = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    run += ["--nproc-per-node", str(MEMBERS), "--max-restarts", str(RESTARTS)]
    with tempfile.TemporaryDirectory() as folder:
        for name, array in zip(("features.npy", "labels.npy"), training_arrays(job), strict=True):
            np.save(Path(folder) / name, array)
        rank = ["-m", "benchmarks.baselines.torch_elastic", folder, str(BATCH_SIZE), str(SECS)]
        with subprocess.Popen(
            [*run, *rank],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**RESOLVER, **os.environ, **environment},
        ) as torchrun:
            limit = threading.Timer(LIMIT, torchrun.terminate)
            limit.start()
            try:
                return _restarted(torchrun, number)
            finally:
                limit.cancel()
                torchrun.terminate()


def _restarted(torchrun: subprocess.Popen[bytes], number: signal.Signals) -> float:
    sent = math.inf
    for line in torchrun.stdout or ():
        told = json.loads(line)
        if told["start"] and math.isfinite(sent):
            return float(told["second"]) - sent
        if math.isinf(sent) and told["rank"] == 0 and told["epoch"]:  # the first checkpoint exists
            sent = time.monotonic()
            os.kill(told["pid"], number)
    return math.inf


def _figure(seconds: tuple[float, ...]) -> str:
    return f"{statistics.median(seconds):.2f} s, at most {max(seconds):.2f} s"
