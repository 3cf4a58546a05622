"""Variables of a script's worker."""

from __future__ import annotations

from pathlib import Path

from edl.cluster import Instance
from edl.entrypoints.script_worker import variables
from edl.jobs.script_run import Attempt, ScriptRun, place_script


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


def test_in_pods_each_worker_is_alone_on_its_machine_and_rank_0_is_elsewhere() -> None:
    script = ScriptRun("train.py", "", (), "/", workers=3, max_restarts=5)
    attempt = Attempt(2, 29500, "10.0.0.7")
    found = variables("job-1", script, attempt, Instance("worker-1", "worker", 2), in_pods=True)
    ranks = ("RANK", "LOCAL_RANK", "GROUP_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "GROUP_WORLD_SIZE")
    assert [found[name] for name in ranks] == ["1", "0", "1", "3", "1", "3"]
    assert (found["MASTER_ADDR"], found["MASTER_PORT"]) == ("10.0.0.7", "29500")


def test_a_script_that_has_travelled_is_found_in_the_job_folder(tmp_path: Path) -> None:
    script = place_script(ScriptRun("zoo/train.py", "", (), "zoo", workers=1, max_restarts=0), tmp_path)
    assert (script.path, script.folder) == (str(tmp_path / "zoo" / "train.py"), str(tmp_path / "zoo"))
    here = ScriptRun("/home/ann/train.py", "", (), "/home/ann", workers=1, max_restarts=0)
    assert place_script(here, tmp_path) == here
