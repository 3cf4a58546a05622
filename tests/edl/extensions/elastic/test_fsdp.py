"""Models in shards: scripts for torchrun restart from their own checkpoints, and `edl.elastic` refuses them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh

from edl.errors import SemanticError
from edl.extensions import elastic

SCRIPT = Path(__file__).with_name("fsdp_script.py")


def weights(folder: Path, *way: str) -> list[float]:
    """Weights after a worker was killed. They are to equal the weights of an undisturbed run."""
    found = []
    for name in ("undisturbed", "kill"):
        (folder / name).mkdir()
        command = [sys.executable, "-m", "edl.cli.main", "run", "--workers", "2", str(SCRIPT)]
        said = subprocess.run(
            [*command, str(folder / name), name, *way],
            capture_output=True,
            text=True,
            check=True,
            timeout=120,
        ).stdout
        assert ("from step 5" in said) == (name == "kill")
        found.append(json.loads((folder / name / "weights").read_text()))
    assert found[0] == found[1]
    return found[0]


@pytest.mark.soak
def test_a_sharded_model_goes_on_from_its_checkpoint(tmp_path: Path) -> None:
    weights(tmp_path)


@pytest.mark.soak
def test_a_sharded_model_is_refused(tmp_path: Path) -> None:
    from torch.distributed.fsdp import fully_shard  # takes half a second, in each process of the tests

    dist.init_process_group("gloo", store=dist.FileStore(str(tmp_path / "store"), 1), rank=0, world_size=1)
    try:
        model = fully_shard(nn.Linear(2, 1), mesh=init_device_mesh("cpu", (1,)))
        with pytest.raises(SemanticError, match="shards of FSDP") as raised:
            elastic.checkpoint(model, torch.optim.SGD(model.parameters(), lr=0.1))
    finally:
        dist.destroy_process_group()
    assert raised.value.hint is not None
    assert "without edl.elastic" in raised.value.hint
