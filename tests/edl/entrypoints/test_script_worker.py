"""Variables of a script's worker."""

from __future__ import annotations

from edl.cluster import Instance
from edl.entrypoints.script_worker import variables
from edl.jobs.script_run import Attempt, ScriptRun


def test_a_script_finds_the_variables_of_torchrun() -> None:
    script = ScriptRun("train.py", "", (), "/", workers=3, max_restarts=5)
    found = variables("job-1", script, Attempt(2, 29500), Instance("worker-1", "worker", 2))
    assert found == {
        "RANK": "1",
        "LOCAL_RANK": "1",
        "ROLE_RANK": "1",
        "GROUP_RANK": "0",
        "WORLD_SIZE": "3",
        "LOCAL_WORLD_SIZE": "3",
        "ROLE_WORLD_SIZE": "3",
        "GROUP_WORLD_SIZE": "1",
        "ROLE_NAME": "default",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": "29500",
        "TORCHELASTIC_RUN_ID": "job-1",
        "TORCHELASTIC_RESTART_COUNT": "2",
        "TORCHELASTIC_MAX_RESTARTS": "5",
        "TORCHELASTIC_USE_AGENT_STORE": "False",
    }
