"""Helpers for tests of a supervisor, its master and its workers."""

from __future__ import annotations

import re
from typing import Any

from edl import exit_codes
from edl.jobs.event_log import EventLog
from edl.jobs.outcome import Outcome
from tests.edl.cluster.local.conftest import Player, Stage

DONE = Outcome("predict", 10, 1.0)


def ended(master: Player) -> dict[str, Any]:
    """The next change, which is an end."""
    [change] = master.do("changed", count=1)
    assert change["state"] == "ended"
    return change


def why(master: Player) -> tuple[str, int]:
    change = ended(master)
    return change["reason"], change["exit_code"]


def forkserver_of(stage: Stage) -> int:
    """The newest forkserver that there was."""
    return int(re.findall(r"forkserver: pid (\d+)", stage.folder.log("supervisor").read_text())[-1])


def finish(stage: Stage, master: Player) -> Outcome:
    """Have the master end its job well."""
    with EventLog(stage.folder.events) as log:
        log.write(DONE)
    master.send("exit", code=exit_codes.OK)
    return stage.running.follow(lambda event: None)
