"""All-reduce in real processes: the same parameters as one process trains, whatever happens to members."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from edl.worker.strategies.allreduce.member import LEAST_TIMEOUT
from tests.edl.frameworks.adapter_cases import program
from tests.edl.programs import FRAMEWORKS
from tests.edl.worker.strategies.group_member import SIZE, create, halved, rows
from tests.edl.worker.strategies.groups import Groups, MemberProcess, all_do, saved

# Two embeddings, and an optimizer that clips.
MODELS = {
    "keras": """

from edl.keras import Embedding


def custom_model():
    kinds = {"x": ((3,), "float32"), "f0": ((), "int64"), "f1": ((), "int64")}
    inputs = {name: keras.Input(shape, dtype=dtype, name=name) for name, (shape, dtype) in kinds.items()}
    both = Embedding("both", 4, "sum")([inputs["f0"], inputs["f1"]])
    hidden = keras.layers.Concatenate()([inputs["x"], both])
    hidden = keras.layers.Dense(8, activation="tanh", kernel_regularizer="l2")(hidden)
    return keras.Model(inputs, keras.layers.Dense(1)(hidden))


def optimizer():
    return keras.optimizers.SGD(0.1, momentum=0.9, global_clipnorm=0.5)
""",
    "torch": """

from edl.torch import Embedding, clipped


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.both = Embedding("both", 4, "sum")
        self.hidden = nn.Linear(7, 8)
        self.output = nn.Linear(8, 1)

    def forward(self, features):
        vectors = [features["x"], self.both(features["f0"], features["f1"])]
        return self.output(torch.tanh(self.hidden(torch.cat(vectors, dim=1))))


def optimizer(parameters):
    return clipped(torch.optim.SGD(parameters, 0.1, momentum=0.9), global_clipnorm=0.5)
""",
}


@pytest.fixture(scope="module", params=FRAMEWORKS)
def groups(request: pytest.FixtureRequest) -> Iterator[Groups]:
    made = Groups(request.param)
    yield made
    made.close()


@pytest.fixture
def framework(request: pytest.FixtureRequest) -> str:
    found: str = request.node.callspec.params["groups"]
    return found


def model(folder: Path, framework: str, replace: Mapping[str, str] | None = None) -> Path:
    text = MODELS[framework]
    for old, new in (replace or {}).items():
        assert old in text
        text = text.replace(old, new)
    program(folder, framework, append=text)
    return folder


def close(found: Mapping[str, Any], expected: Mapping[str, Any]) -> None:
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-5, atol=1e-5, err_msg=name)


def equal(members: list[MemberProcess], folder: Path) -> dict[str, np.ndarray]:
    """The weights and slots of all members, which are the same bits; their random numbers are their own."""
    first, *others = [saved(member, folder) for member in members]
    own = ("state/generator", "state/model.")
    for other in others:
        assert first.keys() == other.keys()
        assert [n for n in first if not n.startswith(own) and not np.array_equal(first[n], other[n])] == []
    return first


@pytest.mark.soak
def test_members_train_what_one_process_trains(groups: Groups, framework: str, tmp_path: Path) -> None:
    """The last minibatch is smaller than the others, and then there are fewer rows than members."""
    folder = model(tmp_path / "model", framework)
    local = create(folder, 1)
    with groups.members(folder, 3) as members:
        groups.begin(members)
        for first, last, size in ((0, 90, SIZE), (90, 96, 2), (96, 160, SIZE)):
            expected = local.train(rows(first, last, size))
            for answer in all_do(members, "train", first=first, last=last, size=size):
                np.testing.assert_allclose(answer["losses"], expected, rtol=1e-4)
        close(equal(members, tmp_path), local.get_weights())


def test_survivors_go_on_without_a_member_that_is_killed_and_a_joiner_gets_everything(
    groups: Groups, framework: str, tmp_path: Path
) -> None:
    folder = model(tmp_path / "model", framework)
    local = create(folder, 1)
    with groups.members(folder, 3) as members:
        joiner = groups.fork(folder, "worker-3", seed=2)
        groups.begin(members)
        first, killed, last = members
        killed.say("train", first=0, last=8 * SIZE, happens="killed", at=5)
        survivors = [first, last]
        for member in survivors:
            member.say("train", first=0, last=8 * SIZE)
        for answer in groups.formed(survivors, holders=2):
            assert (answer["void"], answer["step"], answer["rows"]) == (True, 5, 5 * SIZE)
        all_do(survivors, "train", first=5 * SIZE, last=8 * SIZE)
        all_do(survivors, "keep", epoch=1)
        for member in survivors:  # the master wants a group with the one that waits
            member.say("train", first=8 * SIZE, last=12 * SIZE, happens="leaves", at=8)
        joiner.address = joiner.answer()["address"]
        joiner.say("join")
        everybody = [*survivors, joiner]
        groups.formed(everybody, holders=2)
        all_do(everybody, "train", first=8 * SIZE, last=12 * SIZE)
        local.train(rows(0, 12 * SIZE))
        close(equal(everybody, tmp_path), local.get_weights())
        kept, found = (saved(member, tmp_path, epoch=1) for member in (first, joiner))
        assert all(np.array_equal(found[name], value) for name, value in kept.items())


# What is the same for all frameworks ----------------------------------------------------------------------------

of_torch = pytest.mark.parametrize("groups", ["torch"], indirect=True)


def test_members_that_regroup_before_a_task_tell_the_progress_of_this_task(
    groups: Groups, framework: str, tmp_path: Path
) -> None:
    """A worker may join before the first step of all, and between the last step of a task and the first of another."""
    folder = model(tmp_path / "model", framework)
    with groups.members(folder, 2) as members:
        groups.begin(members)
        for first, at in ((0, 0), (2 * SIZE, 2)):
            for member in members:
                member.say("train", first=first, last=first + 2 * SIZE, happens="leaves", at=at)
            for answer in groups.formed(members, holders=2):
                assert (answer["void"], answer["step"], answer["rows"]) == (True, at, 0)
            all_do(members, "train", first=first, last=first + 2 * SIZE)


@pytest.mark.soak
@of_torch
def test_rows_have_their_weights_and_steps_their_rates(groups: Groups, tmp_path: Path) -> None:
    folder = model(tmp_path / "model", "torch")
    local = create(folder, 1)
    with groups.members(folder, 2) as members:
        groups.begin(members)
        for number, first in enumerate((0, 4 * SIZE)):
            last = first + 4 * SIZE
            all_do(members, "train", first=first, last=last, weighted=True, rates=True)
            local.train(rows(first, last, weighted=True)._replace(rates=halved(4 * number, 4)))
        close(equal(members, tmp_path), local.get_weights())


@pytest.mark.soak
@of_torch
def test_a_frozen_member_is_waited_for_as_long_as_the_timeout_and_left_behind(
    groups: Groups, tmp_path: Path
) -> None:
    """It hosts the group's store, and is the leader."""
    folder = model(tmp_path / "model", "torch")
    local = create(folder, 1)
    with groups.members(folder, 3, LEAST_TIMEOUT) as members:
        groups.begin(members)
        frozen, *others = members
        frozen.say("train", first=0, last=8 * SIZE, happens="frozen", at=3)
        for member in others:
            member.say("train", first=0, last=8 * SIZE)
        assert [answer["step"] for answer in groups.formed(others, holders=2)] == [3, 3]
        all_do(others, "train", first=3 * SIZE, last=8 * SIZE)
        local.train(rows(0, 8 * SIZE))
        close(equal(others, tmp_path), local.get_weights())


@pytest.mark.soak
@of_torch
def test_the_most_advanced_holder_gives_its_state_and_its_place_in_the_tasks(
    groups: Groups, tmp_path: Path
) -> None:
    folder = model(tmp_path / "model", "torch")
    local = create(folder, 1)
    with groups.members(folder, 3) as members:
        groups.begin(members)
        late, *others = members
        late.say("train", first=0, last=6 * SIZE, happens="late", at=3)
        for member in others:
            member.say("train", first=0, last=6 * SIZE)
        for answer in groups.formed(members, holders=3):
            assert (answer["step"], answer["rows"]) == (4, 4 * SIZE)
        all_do(members, "train", first=4 * SIZE, last=6 * SIZE)
        local.train(rows(0, 6 * SIZE))
        close(equal(members, tmp_path), local.get_weights())


@pytest.mark.soak
@of_torch
def test_a_member_leaves_if_its_program_fails_and_may_come_back(groups: Groups, tmp_path: Path) -> None:
    folder = model(tmp_path / "model", "torch")
    with groups.members(folder, 2) as members:
        groups.begin(members)
        failing, other = members
        other.say("train", first=0, last=4 * SIZE)
        assert failing.ask("train", first=0, last=4 * SIZE, happens="raises", at=1)["raised"]
        failing.say("train", first=0, last=4 * SIZE)
        assert [answer["rows"] for answer in groups.formed([other, failing], holders=1)] == [SIZE, SIZE]
        all_do(members, "train", first=SIZE, last=4 * SIZE)
        equal(members, tmp_path)


@pytest.mark.soak
@of_torch
def test_a_group_that_comes_to_nothing_is_followed_by_another(groups: Groups, tmp_path: Path) -> None:
    """The one that the master counts on never comes."""
    folder = model(tmp_path / "model", "torch")
    local = create(folder, 1)
    with groups.members(folder, 1, LEAST_TIMEOUT) as members:
        [alone] = members
        absent = groups.fork(folder, "worker-1")
        absent.address = absent.answer()["address"]
        alone.address = alone.answer()["address"]
        alone.say("join")
        assert alone.answer() == {"seeks": 0, "without": []}
        alone.send(groups.told([alone, absent], holders=0))
        [formed] = groups.formed([alone], holders=0)
        assert formed["rank"] == 0
        why, *_, back = alone.ask("told")["told"]  # the reason may change meanwhile, which is reported too
        assert re.fullmatch(
            r"has not reached the other members of its group for \d+ s: worker-1 at 127.0.0.1:\d+ accept connections, "
            r"and the group does not form: .+",
            why,
        )
        assert back.startswith("reaches the other members of its group again")
        answer = alone.ask("train", first=0, last=4 * SIZE)
        np.testing.assert_allclose(answer["losses"], local.train(rows(0, 4 * SIZE)), rtol=1e-6)
        assert alone.ask("flush") == {"before": True, "after": True}


@pytest.fixture(scope="module")
def pair(groups: Groups, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[MemberProcess]]:
    with groups.members(model(tmp_path_factory.mktemp("model"), "torch"), 2) as members:
        groups.begin(members)
        yield members


@pytest.mark.soak
@of_torch
def test_the_last_step_is_settled_once_all_are_known_to_have_taken_it(pair: list[MemberProcess]) -> None:
    all_do(pair, "train", first=0, last=2 * SIZE)
    assert all_do(pair, "flush") == [{"before": False, "after": True}] * 2
    assert all_do(pair, "flush") == [{"before": True, "after": True}] * 2


@pytest.mark.soak
@of_torch
def test_random_numbers_of_members_differ(pair: list[MemberProcess]) -> None:
    first, second = all_do(pair, "random")
    assert first != second


@pytest.mark.soak
@of_torch
def test_the_leader_writes_into_the_store_what_the_others_wait_for(pair: list[MemberProcess]) -> None:
    leader, follower = pair
    follower.say("store", key="log/0")
    leader.ask("store", key="log/0", value="a task")
    assert follower.answer() == {"value": "a task"}
