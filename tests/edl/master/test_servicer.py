"""Calls that no worker makes."""

from __future__ import annotations

import asyncio
import zlib
from pathlib import Path

import pytest

from edl.checkpoints.master_store import Keeper
from edl.errors import ClusterError
from edl.master.servicer import FileService, Service, serve
from edl.master.state_loop import StateLoop
from edl.master.state_store import FileStateStore
from edl.master.tasks.task_manager import TaskManager
from edl.rpc import control_pb2 as pb
from edl.rpc.channel import MasterChannel
from edl.tasks.job_state import Plan
from tests.edl.worker.masters import TOKEN, unscaled


async def scaled(state_loop: StateLoop, workers: int) -> None:
    server, port = await serve(Service(state_loop, lambda: b"", unscaled), "127.0.0.1:0", TOKEN)
    try:
        with MasterChannel(f"127.0.0.1:{port}", TOKEN) as channel:
            request = pb.ScaleRequest(workers=workers)
            await asyncio.to_thread(channel.call, channel.stub.Scale, request, 10.0)
    finally:
        await server.stop(0)


@pytest.mark.usefixtures("calls")
def test_a_negative_number_of_workers_and_a_job_that_has_ended_are_refused(tmp_path: Path) -> None:
    state_loop = StateLoop(TaskManager(Plan("predict", 100)), FileStateStore(tmp_path / "state"))
    with pytest.raises(ClusterError, match="refuses a call: -1 workers"):
        asyncio.run(scaled(state_loop, -1))
    state_loop.tasks.cancel("the test ends")
    with pytest.raises(ClusterError, match="the job has ended"):
        asyncio.run(scaled(state_loop, 1))


def test_a_checkpoint_without_room_is_told_once_with_the_setting_and_again_after_one_that_had_room(
    tmp_path: Path,
) -> None:
    said: list[str] = []
    service = FileService(Keeper(tmp_path, most=100), None, said.append)

    def keep(checkpoint: str, size: int, file: str = "state.safetensors") -> pb.KeepResponse:
        data = b"x" * size
        request = pb.KeepRequest(
            name=checkpoint, file=file, size=size, crc=zlib.crc32(data), start=0, data=data
        )
        return asyncio.run(service.Keep(request, None))

    assert keep("000001", 200).refused
    assert keep("000001", 10, "weights.safetensors").upto == 10
    assert keep("000002", 200).refused
    assert len(said) == 1
    assert "kubernetes.master_disk gives it more" in said[0]
    assert keep("000003", 50).upto == 50
    assert keep("000004", 200).refused
    assert len(said) == 2
