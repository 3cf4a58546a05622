"""Who has how many slots of a quota."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edl.jobs.slots import Demand, SlotRequest, allot


def demand(
    job: str, most: int, *, least: int = 1, priority: int = 0, since: float = 0.0, holds: int = 0
) -> Demand:
    return Demand(job, SlotRequest(least, most, priority), since, holds)


def test_a_job_alone_has_what_it_wants_as_far_as_there_is() -> None:
    assert allot([demand("a", 13)], 24) == {"a": 13}
    assert allot([demand("a", 30)], 24) == {"a": 24}


def test_jobs_of_one_priority_have_the_same_and_the_older_has_the_odd_slot() -> None:
    jobs = [demand("new", 13, since=2.0), demand("old", 13, since=1.0, holds=13)]
    assert allot(jobs, 24) == {"old": 12, "new": 12}
    assert allot(jobs, 23) == {"old": 12, "new": 11}


def test_what_one_job_does_not_want_the_others_have() -> None:
    assert allot([demand("a", 3), demand("b", 13), demand("c", 13)], 24) == {"a": 3, "b": 11, "c": 10}


def test_a_higher_priority_has_all_it_wants_but_the_least_of_those_who_hold() -> None:
    low = demand("low", 3, holds=3)
    assert allot([low, demand("high", 2, priority=1)], 3) == {"low": 1, "high": 2}
    assert allot([low, demand("high", 9, priority=1)], 3) == {"low": 1, "high": 2}


def test_who_comes_when_all_keep_their_least_waits_for_its_own_whatever_its_priority() -> None:
    jobs = [demand("low", 3, least=2, holds=2), demand("high", 2, least=2, priority=1)]
    assert allot(jobs, 3) == {"low": 3, "high": 0}


def test_one_that_does_not_fit_lets_a_smaller_one_pass() -> None:
    jobs = [demand("in", 2, least=2, holds=2), demand("large", 4, least=4), demand("small", 1, since=1.0)]
    assert allot(jobs, 4) == {"in": 2, "large": 0, "small": 1}


def test_a_quota_that_became_too_small_takes_nobodys_least() -> None:
    jobs = [demand("a", 9, least=2, holds=5), demand("b", 9, least=2, holds=5), demand("c", 1)]
    assert allot(jobs, 3) == {"a": 2, "b": 2, "c": 0}


@pytest.mark.parametrize(("least", "most"), [(0, 1), (2, 1), (0, 0)])
def test_a_request_is_for_one_slot_or_more(least: int, most: int) -> None:
    with pytest.raises(ValueError, match="slots is invalid"):
        SlotRequest(least, most)


@st.composite
def demands(draw: st.DrawFn) -> list[Demand]:
    """Jobs of which some hold slots, in any number from their least on."""
    found = []
    for number in range(draw(st.integers(0, 6))):
        least = draw(st.integers(1, 6))
        most = draw(st.integers(least, 14))
        request = SlotRequest(least, most, draw(st.integers(-1, 1)))
        holds = draw(st.sampled_from([0, least, most]))
        found.append(Demand(f"job-{number}", request, draw(st.integers(0, 3)), holds))
    return found


JOBS, SLOTS = demands(), st.integers(1, 30)


@given(JOBS, SLOTS)
def test_there_are_never_more_slots_than_the_quota_has(jobs: list[Demand], slots: int) -> None:
    kept = sum(job.request.least for job in jobs if job.holds)
    assert sum(allot(jobs, slots).values()) <= max(slots, kept)


@given(JOBS, SLOTS)
def test_each_job_has_its_least_or_nothing_and_never_more_than_it_wants(
    jobs: list[Demand], slots: int
) -> None:
    given_ = allot(jobs, slots)
    for job in jobs:
        assert given_[job.job] == 0 or job.request.least <= given_[job.job] <= job.request.most
        assert given_[job.job] or not job.holds


@given(JOBS, SLOTS)
def test_no_slot_is_idle_that_somebody_can_use(jobs: list[Demand], slots: int) -> None:
    given_ = allot(jobs, slots)
    idle = slots - sum(given_.values())
    for job in jobs:
        needs = job.request.least if given_[job.job] == 0 else 1
        assert given_[job.job] == job.request.most or idle < needs


@given(JOBS, SLOTS)
def test_nobody_has_more_than_its_least_while_a_higher_priority_wants_more(
    jobs: list[Demand], slots: int
) -> None:
    given_ = allot(jobs, slots)
    for high in jobs:
        if 0 < given_[high.job] < high.request.most:
            lower = [job for job in jobs if job.request.priority < high.request.priority]
            assert all(given_[job.job] in (0, job.request.least) for job in lower)


@given(JOBS, SLOTS)
def test_equals_that_want_more_differ_by_one_slot_unless_their_least_is_more(
    jobs: list[Demand], slots: int
) -> None:
    given_ = allot(jobs, slots)
    for one in jobs:
        for other in jobs:
            wants = 0 < given_[one.job] < one.request.most
            if wants and one.request.priority == other.request.priority:
                assert given_[other.job] <= max(given_[one.job] + 1, other.request.least)


@given(JOBS, SLOTS, st.sets(st.integers(0, 5)))
def test_nothing_moves_to_and_fro_while_jobs_take_and_give_back(
    jobs: list[Demand], slots: int, settled: set[int]
) -> None:
    first = allot(jobs, slots)
    halfway = [
        msgspec.structs.replace(job, holds=first[job.job]) if number in settled else job
        for number, job in enumerate(jobs)
    ]
    assert allot(halfway, slots) == first


@given(JOBS, SLOTS)
def test_all_who_compute_it_agree(jobs: list[Demand], slots: int) -> None:
    assert allot(reversed(jobs), slots) == allot(jobs, slots)
