"""Recorded traces: their lines in the order in which things happened, and what in them is up to chance."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Record = dict[str, Any]
TRACES = Path(__file__).parent / "traces"


@dataclass(frozen=True)
class Known:
    """What of a trace the double does not do as the real cluster did.

    `exceptions`: differences, by what their text begins with, and why. `races`: recorded events (`STEP VERSION`) that
    came of how busy the recorded machine was, and are passed over. `late`: those before which the double may tell
    others. `hurry`: the part of the recorded time that pods sleep, since no test waits so long. `passing`: events that
    the double misses when this machine is so busy that pods have slept before it looks. `words`: texts that are others
    here. `was_busy`: the recorded Job controller missed how pods were in between. `unrecorded`: pods that were made
    beside the recording; they are made when their first event is due. `cores`: those of the recorded node, where they
    matter.
    """

    exceptions: dict[str, str] = field(default_factory=dict)
    races: dict[str, str] = field(default_factory=dict)
    late: frozenset[str] = frozenset()
    hurry: float = 1.0
    passing: frozenset[str] = frozenset()
    words: dict[str, str] = field(default_factory=dict)
    was_busy: bool = False
    unrecorded: frozenset[str] = frozenset()
    cores: str = ""

    def all(self) -> set[str]:
        return {*self.exceptions, *self.races, *self.unrecorded}


def records(name: str) -> list[Record]:
    """In the order of their times. A call's record stands where its answer was complete, after what it caused."""
    found = [json.loads(line) for line in (TRACES / f"{name}.jsonl").read_text().splitlines()]
    offset, last = 0.0, 0.0
    for record in found:
        if record["t"] + offset < last - 100:  # another recording begins
            offset = last + 1
        record["t"] += offset
        last = max(last, record["t"])
    _repeat_specs(found)
    return _linearised(sorted(found, key=lambda record: record["t"]))


def _repeat_specs(found: list[Record]) -> None:
    """The recording leaves out a spec that is the same as in the previous event of an object."""
    specs: dict[tuple[str, str], Any] = {}
    for record in found:
        if "event" in record and "spec" in (recorded := record["event"]["object"]):
            key = record["step"], recorded["metadata"].get("uid", "")
            if isinstance(recorded["spec"], str):
                recorded["spec"] = specs[key]
            specs[key] = recorded["spec"]


def _linearised(found: list[Record]) -> list[Record]:
    """Calls that raced, in the order in which the server did them, which the versions in their answers tell."""
    racing = [record for record in found if record["step"].startswith("race-")]

    def place(record: Record) -> tuple[int, int]:
        asked, answer = record["request"], record["response"]
        if answer["status"] == 409:  # some write came before
            return int(asked["body"]["metadata"]["resourceVersion"]) + 1, 1
        return int(answer["body"]["metadata"]["resourceVersion"]), 0 if asked["method"] == "PUT" else 1

    times = sorted(record["t"] for record in racing)
    ordered = [
        {**record, "t": moment} for record, moment in zip(sorted(racing, key=place), times, strict=True)
    ]
    return sorted([record for record in found if record not in racing] + ordered, key=lambda one: one["t"])


def second_at_start(found: list[Record]) -> float:
    """Which part of a second had gone when the recording began, as near as its stamps in whole seconds tell."""
    made = [
        (record["t"], dt.datetime.fromisoformat(record["event"]["object"]["metadata"]["creationTimestamp"]))
        for record in found
        if record.get("event", {}).get("type") == "ADDED"
    ]
    earliest = max((stamp.timestamp() - told for told, stamp in made), default=0.0)
    return earliest % 1


class Glances:
    """Knows the events that tell no more of a Job than how many of its pods are ready at the moment.

    How often its controller looks, and when, is up to how busy it is. `drop` is told the version of such an event and
    that of the last one of the Job.
    """

    def __init__(self, drop: Callable[[str, str], None]) -> None:
        self._last: dict[str, Record] = {}
        self._drop = drop

    def is_one(self, event: Record) -> bool:
        found = event["object"]
        if found.get("kind") != "Job" or "uid" not in found["metadata"]:
            return False
        uid = found["metadata"]["uid"]
        before, self._last[uid] = self._last.get(uid), found
        if before is None or _without_ready(before) != _without_ready(found):
            return False
        self._drop(found["metadata"]["resourceVersion"], before["metadata"]["resourceVersion"])
        return True


def _without_ready(job: Record) -> Record:
    metadata = {**job["metadata"], "resourceVersion": ""}
    return {**job, "metadata": metadata, "status": {**job.get("status", {}), "ready": 0}}
