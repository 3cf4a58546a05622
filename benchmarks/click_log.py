"""DeepFM on the click log of samples/zoo: 26 columns of 100,000 ids, vectors of 8, layers of 128 and 64, Adam.

Ours is the hand-written module of the zoo, in one process. Peers: Keras fit with an Embedding layer for each
column; a PyTorch loop over a DataLoader with `nn.Embedding`, and the same with `sparse=True` and SparseAdam.
Their arrays are ready in memory, ours are read from the Parquet file and transformed in every epoch. Rates are
those of the epochs after the first.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
from pathlib import Path

from benchmarks.table import Row
from benchmarks.training import rate
from edl.data.files.file_ranges import pin_files
from edl.data.pinned import write_pinned
from edl.jobs.job_folder import JobFolder
from edl.program import SPEC_FILE
from edl.program.zoo import find_in_zoo
from edl.spec import Component, JobSpec, Query, RawLabel, Rows, Zoo, to_json
from edl.spec.job import Framework

ZOO = Path(__file__).parent.parent / "samples" / "zoo"
EPOCHS = 2
MODELS: dict[Framework, str] = {"keras": "keras_deepfm.custom_model", "torch": "torch_deepfm.DeepFM"}
PEERS: dict[Framework, dict[str, str]] = {  # framework -> peer -> module
    "keras": {"Keras fit": "keras_deepfm"},
    "torch": {
        "nn.Embedding, DataLoader": "torch_deepfm",
        "sparse nn.Embedding, SparseAdam, DataLoader": "torch_sparse_deepfm",
    },
}
AIM = 1.0


def measure(folder: Path, rounds: int, rows: int) -> list[Row]:
    """Train on a fiftieth of `rows`: the peers move all 23 million weights in every step."""
    command = [
        sys.executable,
        str(ZOO / "click_log" / "generate.py"),
        str(folder / "clicks"),
        "--rows",
        str(rows // 50),
    ]
    subprocess.run(command, check=True)
    table = []
    for framework, peers in PEERS.items():
        job = _job(folder / f"clicks-{framework}", framework, folder / "clicks" / "train.parquet")
        ours: list[float] = []
        theirs: dict[str, list[float]] = {peer: [] for peer in peers}
        for _ in range(rounds):
            ours.append(rate("benchmarks.ours", job, EPOCHS))
            for peer, rates in theirs.items():
                rates.append(rate(f"benchmarks.baselines.{peers[peer]}", job, EPOCHS))
        table.append(Row(f"click log: DeepFM, {framework}", f"{statistics.median(ours):,.0f} rows/s"))
        for peer, rates in theirs.items():
            ratios = [our / their for our, their in zip(ours, rates, strict=True)]
            table.append(
                Row(f"… against {peer}", f"{statistics.median(rates):,.0f} rows/s", ratios, least=AIM)
            )
    return table


def _job(folder: Path, framework: Framework, data: Path) -> Path:
    """Make a job folder of the zoo's module like `edl train`, without running it."""
    job = JobFolder(folder)
    job.program.mkdir(parents=True)
    pinned = pin_files(str(data), job.rows)
    write_pinned(job.rows, pinned)
    found = find_in_zoo(ZOO, f"click_log.{MODELS[framework]}")
    spec = JobSpec(
        kind="train",
        statement="",
        query=Query("", "", pinned.source),
        rows=Rows(True, pinned.rows, pinned.rows, 0, pinned.digest),
        framework=framework,
        model=Component(f"{found.module}.{found.attribute}"),
        inputs={},
        label=RawLabel("prediction"),
        optimizer=Component("optimizer"),
        loss=Component("loss"),
        metrics=(),
        zoo=Zoo(str(ZOO), found.module, found.attribute, found.digest),
    )
    (job.program / SPEC_FILE).write_bytes(to_json(spec))
    return folder
