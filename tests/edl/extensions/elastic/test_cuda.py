"""Scripts of `edl run` with a model on a GPU, which all workers may share: `make gpu` runs these tests."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
import torch

from tests.edl.extensions.elastic import test_fsdp, test_workers
from tests.edl.extensions.elastic.test_workers import EPOCHS, ROWS

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
alone = test_workers.alone  # on the CPU


@pytest.mark.parametrize("way", ["shards", "replicas"])
def test_ranks_of_nccl_restart_from_their_checkpoint(tmp_path: Path, way: str) -> None:
    for device in ("cpu", "cuda"):
        (tmp_path / device).mkdir()
    found = {device: test_fsdp.weights(tmp_path / device, device, way) for device in ("cpu", "cuda")}
    assert found["cuda"] == pytest.approx(found["cpu"], abs=1e-5)


def test_a_loop_goes_on_without_a_killed_worker(
    tmp_path: Path, alone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEVICE", "cuda")
    test_workers.trained(tmp_path / "killed", 3, (1, 0, 1), (0, 0, 3), pause=0.1)
    rows, sizes = test_workers.counted(tmp_path / "killed")
    assert rows == Counter({(epoch, row): 1 for epoch in range(EPOCHS) for row in range(ROWS)})
    assert {2, 3} <= sizes
    weights = test_workers.weights(tmp_path / "killed")
    assert weights == pytest.approx(test_workers.weights(alone), abs=1e-5)


def test_a_loop_that_has_lost_all_workers_goes_back_to_its_checkpoint(
    tmp_path: Path, alone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEVICE", "cuda")
    kills = [(0, 0, 2), (1, 0, 2)]
    test_workers.trained(tmp_path / "killed", 2, *kills, pause=0.1, more=("--checkpoint_steps", "10"))
    weights = test_workers.weights(tmp_path / "killed")
    assert weights == pytest.approx(test_workers.weights(alone), abs=1e-5)
