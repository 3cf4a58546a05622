"""A server over gRPC: what calls do, whatever the mode."""

from __future__ import annotations

import numpy as np
import pytest

from edl.errors import ClusterError, JobError
from edl.ps import messages as msg
from edl.ps import partitioning
from edl.ps.channel import ServerChannel
from edl.ps.messages import GenerationError, NotReadyError
from tests.edl.ps import servers as serving
from tests.edl.ps.servers import SECONDS, TABLES, definition, first_values, training_servers

MODEL = definition()
IDS = {"users": np.arange(-5, 30), "items": np.array([3, 2**40, -1])}


def ones(ids: dict[str, np.ndarray] = IDS) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    dims = {spec.name: spec.dim for spec in TABLES}
    return {name: (each, np.ones((len(each), dims[name]), np.float32)) for name, each in ids.items()}


def gradients() -> dict[str, np.ndarray]:
    return {name: np.ones_like(value) for name, value in first_values().items()}


@pytest.mark.parametrize("count", [1, 2, 3])
def test_a_pull_gives_first_values_and_a_push_moves_them(count: int) -> None:
    with training_servers(count, MODEL) as servers:
        before = servers.pull(MODEL, IDS)
        for name, value in first_values().items():
            if name in before:
                np.testing.assert_array_equal(before[name], value)
        assert not before["items"].any() and before["users"].all()
        servers.push(MODEL, gradients(), ones(), rate=0.5)
        after = servers.pull(MODEL, IDS)
    for name, value in before.items():
        expected = value if name == "state" else value - np.float32(0.5)
        np.testing.assert_array_equal(after[name], expected)


def test_the_number_of_servers_changes_no_value() -> None:
    found = []
    for count in (1, 3):
        with training_servers(count, MODEL) as servers:
            servers.push(MODEL, gradients(), ones())
            found.append(servers.pull(MODEL, IDS))
    for name, value in found[0].items():
        np.testing.assert_array_equal(value, found[1][name])


def test_a_call_without_the_token_is_refused() -> None:
    with (
        serving.servers(1) as servers,
        ServerChannel(servers.addresses[0], "guess") as channel,
        pytest.raises(ClusterError, match="token"),
    ):
        channel.call(msg.Status(), (), msg.Figures, SECONDS)


def test_what_comes_too_early_is_not_ready() -> None:
    with serving.servers(1) as servers:
        with pytest.raises(NotReadyError, match="not arranged"):
            servers.define(MODEL)
        servers.arrange()
        with pytest.raises(NotReadyError, match="no model"):
            servers.open()
        servers.define(MODEL)
        with pytest.raises(NotReadyError, match="not open"):
            servers.pull(MODEL, IDS)


def test_a_call_of_another_generation_is_refused() -> None:
    with training_servers(1, MODEL) as servers:
        for generation in (-1, 1):
            with pytest.raises(GenerationError):
                servers.call(0, msg.Pull(generation, dense=True), msg.Pulled)


def test_the_first_definition_counts() -> None:
    with serving.servers(1) as servers:
        servers.arrange()
        servers.define(MODEL)
        zeros = [np.zeros(16, np.float32), np.zeros(2, np.float32)]
        defined, _ = servers.call(0, msg.Define(0, MODEL), msg.Defined, zeros)
        assert not defined.open
        servers.open()
        assert servers.pull(MODEL, IDS)["kernel"].all()


@pytest.mark.parametrize(
    ("changes", "what"),
    [({"seed": 6}, "seed"), ({"tables": TABLES[:1]}, "tables"), ({"optimizer": serving.ADAM}, "optimizer")],
)
def test_a_model_that_differs_is_refused_and_said_how(changes: dict[str, object], what: str) -> None:
    with training_servers(1, MODEL) as servers, pytest.raises(JobError, match=f"differs .*in: {what}"):
        servers.define(definition(**changes))


def test_values_that_do_not_fit_the_definition_are_refused() -> None:
    with serving.servers(1) as servers:
        servers.arrange()
        with pytest.raises(JobError, match="16 parameters"):
            servers.call(0, msg.Define(0, MODEL), msg.Defined, [np.zeros(3, np.float32)])


def test_rows_to_start_from_are_taken_until_training_begins() -> None:
    with serving.servers(1) as servers:
        servers.arrange()
        servers.define(MODEL)
        rows = np.full((3, 4), 2, np.float32)
        for value in (1, 2):
            servers.call(0, msg.Load(0, "items"), msg.Done, [IDS["items"], rows * np.float32(value / 2)])
        servers.open()
        servers.call(0, msg.Load(0, "items"), msg.Done, [IDS["items"], rows * 9])
        assert (servers.pull(MODEL, IDS)["items"] == 2).all()


@pytest.mark.parametrize(
    ("push", "arrays"),
    [
        ({}, [np.zeros(3, np.float32)]),
        ({}, [np.zeros(16, np.float64)]),
        ({}, []),
        ({"tables": ("users",)}, [np.zeros(16, np.float32), np.arange(2)]),
        ({"tables": ("nobody",)}, [np.zeros(16, np.float32), np.arange(2), np.zeros((2, 2), np.float32)]),
        ({"tables": ("users",)}, [np.zeros(16, np.float32), np.arange(2), np.zeros((2, 3), np.float32)]),
        ({"state": True}, [np.zeros(16, np.float32), np.zeros(3, np.float32)]),
    ],
)
def test_a_push_that_does_not_fit_moves_nothing(push: dict[str, object], arrays: list[np.ndarray]) -> None:
    with training_servers(1, MODEL) as servers:
        header = msg.Push(0, "worker-0", 0, 1, 0.1, 10, **push)  # type: ignore[arg-type]
        with pytest.raises(JobError):
            servers.call(0, header, msg.Pushed, arrays)
        figures, _ = servers.call(0, msg.Status(), msg.Figures)
        assert figures.version.step == 0
        np.testing.assert_array_equal(servers.pull(MODEL, {})["kernel"], first_values()["kernel"])


def test_a_push_brings_the_next_pull() -> None:
    with training_servers(1, MODEL) as servers:
        flat = partitioning.Placement(MODEL.dense, 1).flat(gradients(), 0)
        pull = msg.Pull(0, ("items", "users"), dense=True)
        push = msg.Push(0, "worker-0", 0, 1, 0.5, 10, ("items",), pull=pull)
        arrays = [flat, np.array([7]), np.ones((1, 4), np.float32), np.array([8, 7]), np.array([1, 2, 3])]
        pushed, found = servers.call(0, push, msg.Pushed, arrays)
    assert pushed.version.step == pushed.pulled.version.step == 1
    assert [array.shape for array in found] == [(16,), (2, 4), (3, 2)]
    assert found[1].tolist() == [[0, 0, 0, 0], [-0.5, -0.5, -0.5, -0.5]]


def test_rows_are_exported_by_ascending_id() -> None:
    with training_servers(2, MODEL) as servers:
        servers.push(MODEL, gradients(), ones())
        ids: list[int] = []
        for index in range(2):
            after, more, own = None, True, 0
            while more:
                exported, (found, rows) = servers.call(index, msg.Export(0, "users", after, 4), msg.Exported)
                assert rows.shape == (len(found), 2) and len(found) <= 4
                assert sorted(found.tolist()) == found.tolist()
                ids += found.tolist()
                own += len(found)
                more, after = exported.more, int(found[-1]) if len(found) else after
            assert own == exported.total
        assert sorted(ids) == IDS["users"].tolist()


def test_status_tells_what_a_server_has_and_did() -> None:
    with serving.servers(1) as servers:
        figures, _ = servers.call(0, msg.Status(), msg.Figures)
        assert (figures.index, figures.defined) == (-1, False)
        servers.arrange()
        servers.define(MODEL)
        servers.open()
        servers.push(MODEL, gradients(), ones())
        servers.pull(MODEL, {"users": IDS["users"]})
        figures, _ = servers.call(0, msg.Status(), msg.Figures)
    assert (figures.index, figures.defined, figures.open, figures.version.step) == (0, True, True, 1)
    assert figures.rows == {"users": 35, "items": 3}
    assert figures.bytes == 4 * (16 + 35 * 2 + 3 * 4)
    assert (figures.pulls, figures.pushes) == (1, 1)
    assert (figures.rows_pulled, figures.rows_pushed) == (35, 38)
    assert figures.busy > 0
