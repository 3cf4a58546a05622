"""A master that does nothing but keep checkpoints: `python -m tests.edl.checkpoints.storing FOLDER PORT BYTES`.

It prints its port when it serves.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from edl.checkpoints.master_store import Keeper
from edl.master.servicer import Service, serve
from edl.master.state_loop import StateLoop
from edl.master.state_store import FileStateStore
from edl.master.tasks.task_manager import TaskManager
from edl.tasks.job_state import Plan
from tests.edl.worker.masters import unscaled

TOKEN = "secret of the test"  # noqa: S105


async def main(folder: Path, port: int, most: int) -> None:
    state_loop = StateLoop(TaskManager(Plan("predict", 1)), FileStateStore(folder / "state"))
    keeper = Keeper(folder / "checkpoints", most)
    service = Service(state_loop, lambda: b"", unscaled, keeper)
    server, port = await serve(service, f"127.0.0.1:{port}", TOKEN)
    print(port, flush=True)
    await server.wait_for_termination()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])))
