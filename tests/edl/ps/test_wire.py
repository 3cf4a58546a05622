"""Headers and arrays, to the wire and back."""

from __future__ import annotations

import numpy as np
import pytest

from edl.errors import SpecError
from edl.ps import messages as msg
from edl.ps import wire
from edl.ps.checkpoint.content import Progress
from edl.tasks.task import Task

PUSH = msg.Push(
    2,
    "worker-0",
    1,
    7,
    0.01,
    512,
    ("a", "b"),
    state=True,
    ticket=5,
    progress=Progress(Task(1, "train", 0, 512, 1, attempt=9), 512, 1, 0.5, 512.0),
    private=b"\0\xff",
    pull=msg.Pull(2, ("a",), dense=True),
)


def test_a_header_and_arrays_come_as_they_went() -> None:
    arrays = [
        np.arange(5, dtype=np.float32),
        np.empty((0, 16), np.float32),
        np.array([-(2**63), 2**63 - 1]),
        np.arange(6.0).reshape(2, 3),
        np.array(1.5, np.float32),
    ]
    header, found = wire.decode(wire.encode(PUSH, arrays), msg.Push)
    assert header == PUSH
    for one, other in zip(found, arrays, strict=True):
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        np.testing.assert_array_equal(one, other)


def test_arrays_that_are_not_contiguous_travel() -> None:
    array = np.arange(12, dtype=np.float32).reshape(3, 4)[:, ::2]
    _, (found,) = wire.decode(wire.encode(msg.Done(), [array]), msg.Done)
    np.testing.assert_array_equal(found, array)


def test_what_was_decoded_cannot_be_written_to() -> None:
    _, (found,) = wire.decode(wire.encode(msg.Done(), [np.ones(3, np.float32)]), msg.Done)
    assert not found.flags.writeable


def test_an_array_of_objects_does_not_travel() -> None:
    with pytest.raises(TypeError, match="object"):
        wire.encode(msg.Done(), [np.array([object()])])


def test_every_payload_that_is_cut_short_is_damaged() -> None:
    payload = wire.encode(PUSH, [np.arange(5, dtype=np.float32), np.arange(3)])
    for length in range(len(payload)):
        with pytest.raises(SpecError):
            wire.decode(payload[:length], msg.Push)


def test_a_payload_that_is_too_long_is_damaged() -> None:
    with pytest.raises(SpecError, match="its header says"):
        wire.decode(wire.encode(PUSH) + b"\0" * 8, msg.Push)


@pytest.mark.parametrize("layout", [[["f4", [-1]]], [["O", [1]]], [["f4", [2**40, 2**40]]], [["f4", "x"]]])
def test_a_hostile_head_is_damaged(layout: object) -> None:
    head = wire._encoder.encode(({}, layout))
    with pytest.raises(SpecError):
        wire.decode(len(head).to_bytes(4, "little") + head + b"\0" * 64, msg.Done)
