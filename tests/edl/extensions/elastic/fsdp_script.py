"""A sharded model written for torchrun: `fsdp_script.py FOLDER KILL [DEVICE [replicas]]`.

It writes a distributed checkpoint each 5 steps, and begins with the last one. With KILL, rank 1 kills itself in step 8
of the first start. FOLDER gets the weights of rank 0 after 12 steps. With `replicas` it is DistributedDataParallel
instead. On CUDA the group is one of NCCL. Ranks that share a GPU are told that each is on a host of its own.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch import nn
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor
from torch.nn.parallel import DistributedDataParallel

FOLDER, KILL = Path(sys.argv[1]), sys.argv[2] == "kill"
DEVICE, SHARDED = (*sys.argv[3:4], "cpu")[0], "replicas" not in sys.argv[4:]
STEPS, RESTART = 12, int(os.environ["TORCHELASTIC_RESTART_COUNT"])

if DEVICE == "cuda":
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]) % torch.cuda.device_count())
    if torch.cuda.device_count() < int(os.environ["WORLD_SIZE"]):
        os.environ |= {"NCCL_HOSTID": os.environ["RANK"], "NCCL_SOCKET_IFNAME": "lo"}
dist.init_process_group("nccl" if DEVICE == "cuda" else "gloo")
rank, size = dist.get_rank(), dist.get_world_size()
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
for parameter in model.parameters():
    nn.init.constant_(parameter, 0.1)
model.to(DEVICE)
if SHARDED:
    mesh = init_device_mesh(DEVICE, (size,))
    for layer in model:
        if isinstance(layer, nn.Linear):
            fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
else:
    model = DistributedDataParallel(model)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
features = torch.randn(STEPS, 2 * size, 4, generator=torch.Generator().manual_seed(0)).to(DEVICE)

checkpoints = sorted(FOLDER.glob("step-*/.metadata"))
begin = 0
if checkpoints:
    weights, slots = get_state_dict(model, optimizer)
    state = {"model": weights, "optimizer": slots}
    dcp.load(state, checkpoint_id=checkpoints[-1].parent)
    set_state_dict(model, optimizer, model_state_dict=state["model"], optim_state_dict=state["optimizer"])
    begin = int(checkpoints[-1].parent.name.removeprefix("step-"))
print("from step", begin, flush=True)

for step in range(begin, STEPS):
    rows = features[step, rank::size]
    optimizer.zero_grad()
    nn.functional.mse_loss(model(rows), rows.sum(1, keepdim=True)).backward()
    if KILL and (step, rank, RESTART) == (8, 1, 0):
        os.kill(os.getpid(), signal.SIGKILL)
    optimizer.step()
    if (step + 1) % 5 == 0:
        weights, slots = get_state_dict(model, optimizer)
        dcp.save({"model": weights, "optimizer": slots}, checkpoint_id=FOLDER / f"step-{step + 1:03d}")

whole = [each.full_tensor() if isinstance(each, DTensor) else each for each in model.parameters()]
if rank == 0:
    (FOLDER / "weights").write_text(json.dumps(torch.cat([each.reshape(-1) for each in whole]).tolist()))
dist.destroy_process_group()
