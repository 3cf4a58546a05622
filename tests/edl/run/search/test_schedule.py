"""The order of trials: the order of their list, or by what ended trials show of a search space."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec
import numpy as np
import pytest

from edl.program import read_spec
from edl.run.search.schedule import Schedule
from edl.spec import Candidate, Search
from tests.edl.run.search.conftest import searching

POOL, TRIALS, ORDERED = 80, 20, 7


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Search:
    search = read_spec(searching(tmp_path_factory.mktemp("search"), [{}])).search
    assert search is not None
    return search


def space(template: Search, seed: int, names: bool = False) -> Search:
    """A search among points of two numbers, and of one of three names."""
    draw = np.random.default_rng(seed)
    spec = template.candidates[0].spec
    found = tuple(
        Candidate(f"{number}", spec, (*draw.uniform(size=2).tolist(), *([f"{number % 3}"] if names else [])))
        for number in range(POOL)
    )
    return msgspec.structs.replace(template, candidates=found, trials=TRIALS, ordered=ORDERED)


def bowl(candidate: Candidate) -> float:
    x, y, *names = candidate.point
    far = (float(x) - 0.2) ** 2 + (float(y) - 0.7) ** 2
    return far + (1.0 if names not in ([], ["1"]) else 0.0)


def ran(search: Search, error: Callable[[Candidate], float] = bowl, *, lag: int = 2) -> Iterator[float]:
    """Run the trials of a search one after another; yield their errors."""
    schedule, errors = Schedule(search, lag=lag), dict[int, float]()
    while (number := schedule.take(errors)) is not None:
        errors[number] = error(search.candidates[number])
        yield errors[number]


def test_candidates_of_a_list_are_tried_in_its_order(template: Search) -> None:
    search = msgspec.structs.replace(space(template, 0), trials=0, ordered=0)
    schedule = Schedule(search, lag=2)
    assert [schedule.take({}) for _ in range(POOL + 1)] == [*range(POOL), None]


def test_the_first_trials_are_the_first_points_and_no_point_is_tried_twice(template: Search) -> None:
    schedule = Schedule(space(template, 1), lag=2)
    found = [schedule.take({}) for _ in range(TRIALS)]
    assert found[:ORDERED] == list(range(ORDERED))
    assert len(set(found)) == TRIALS
    assert schedule.take({}) is None
    assert schedule.waiting == 0


@pytest.mark.parametrize("names", [False, True])
def test_chosen_points_are_better_than_as_many_spread_ones(template: Search, names: bool) -> None:
    chosen, spread = [], []
    for seed in range(100, 140):
        search = space(template, seed, names)
        chosen.append(min(ran(search)))
        spread.append(min(map(bowl, search.candidates[:TRIALS])))
    assert np.mean(chosen) < 0.6 * np.mean(spread)


def test_a_choice_does_not_depend_on_trials_that_may_be_under_way(template: Search) -> None:
    search = space(template, 3)
    slow, quick = (Schedule(search, lag=4) for _ in range(2))
    begun: list[int] = []
    for _ in range(TRIALS):
        known = {number: bowl(search.candidates[number]) for number in begun}
        late = {number: known[number] for number in begun[: max(0, len(begun) - 4)]}
        assert slow.is_ready(late)
        number = slow.take(late)
        assert number == quick.take(known)
        assert number is not None
        begun.append(number)


def test_a_choice_waits_for_the_trials_it_depends_on(template: Search) -> None:
    schedule = Schedule(space(template, 4), lag=2)
    begun = [schedule.take({}) for _ in range(8)]
    assert not schedule.is_ready([number for number in begun if number != 2])
    assert schedule.is_ready([number for number in begun if number not in (6, 7)])


def test_failed_trials_count_as_the_worst(template: Search) -> None:
    search = space(template, 5)
    schedule, errors = Schedule(search, lag=0), dict[int, float]()
    late = []
    while (number := schedule.take(errors)) is not None:
        fails = float(search.candidates[number].point[0]) > 0.5
        if not fails:
            errors[number] = 1.0
        late.append(fails)
    assert np.mean(late[:7]) > 0.4
    assert np.mean(late[7:]) < 0.2
