"""Each place in the runtime that deletes is in the register, with the reason why it may."""

from __future__ import annotations

from edl.jobs.retention import Removal, removal_at_end, removal_later, superseded_checkpoints
from tests.edl.deletions import FILE, REASONS, deletions, read_register

ADD = f"run `python -m tests.edl.deletions`, and write the reason in place of ? in {FILE.name}: {', '.join(REASONS)}"


def test_every_place_that_deletes_is_in_the_register() -> None:
    found, known = {*deletions()}, read_register()
    assert not found - known.keys(), ADD
    assert not known.keys() - found, (
        f"these places are gone, run `python -m tests.edl.deletions`: {FILE.name}"
    )
    assert {*known.values()} <= REASONS.keys(), ADD


def test_a_job_keeps_what_it_may_still_need() -> None:
    for state in ("failed", "died", "paused", "interrupted"):
        assert removal_at_end(state, is_needed=True) is Removal.NOTHING
        assert removal_at_end(state, is_needed=False) is Removal.DATA
        assert removal_later(state, is_needed=True, has_expired=False) is Removal.NOTHING
    assert removal_later("running", is_needed=True, has_expired=False) is Removal.NOTHING
    assert removal_later("paused", is_needed=False, has_expired=True) is Removal.NOTHING
    assert removal_later("finished", is_needed=True, has_expired=True) is Removal.ROWS
    assert removal_later("died", is_needed=True, has_expired=True) is Removal.DATA
    assert removal_at_end("done", is_needed=True) is Removal.DATA_AND_MODEL
    assert removal_at_end("cancelled", is_needed=True) is Removal.ALL_BUT_LOG


def test_the_checkpoint_that_the_state_refers_to_is_not_superseded_while_the_master_is_behind() -> None:
    names = ["1", "2", "3", "4", "5"]
    assert superseded_checkpoints(names, 3, resumable=names) == ["1", "2"]
    assert superseded_checkpoints(names, 1, resumable=["5"]) == ["1", "2", "3"]
    assert superseded_checkpoints(names, 1, resumable=["1", "2"]) == ["1"]
    assert superseded_checkpoints(names, 1, resumable=[]) == []
    many = [f"{number:02}" for number in range(30)]
    assert superseded_checkpoints(many, 1, resumable=["00"]) == many[1:10]  # a master that never comes back
    assert superseded_checkpoints(names, 0, resumable=names) == []
