"""Damaged input ends in a value or a documented error: see `tests.fuzzing`."""

from __future__ import annotations

import math
import random

import pytest

from edl.errors import SpecError
from edl.jobs.event_log import decode_event
from edl.jobs.job_folder import create
from edl.spec import from_json, to_json
from tests import fuzzing
from tests.edl.models.conftest import SPEC


@pytest.mark.parametrize("name", fuzzing.targets())
def test_damaged_input_is_an_error_that_its_reader_documents(name: str) -> None:
    assert fuzzing.findings(name, 0, 100, slow=math.inf) == []  # the first one imports its reader


@pytest.mark.soak
@pytest.mark.parametrize("name", fuzzing.targets())
def test_much_damaged_input(name: str) -> None:
    assert fuzzing.findings(name, 100, 20_000) == []


def test_a_reader_that_fails_otherwise_is_found_and_by_its_number_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    broken = fuzzing.Target(lambda data: data.decode("ascii"), [b"only ascii"], (ValueError,))
    wrong = fuzzing.Target(lambda data: {}[data], [b"no such key"], ())
    monkeypatch.setattr(fuzzing, "targets", lambda: {"broken": broken, "wrong": wrong})
    assert fuzzing.findings("broken", 0, 50) == []
    found = fuzzing.findings("wrong", 0, 5)
    assert [each.number for each in found] == [0, 1, 2, 3, 4]
    assert fuzzing.findings("wrong", 3, 1) == [found[3]]


def test_mutations_keep_the_kind_of_the_input() -> None:
    for number in range(200):
        choices = random.Random(number)  # noqa: S311 - of a test
        assert isinstance(fuzzing.mutated("SELECT 1", choices), str)
        assert isinstance(fuzzing.mutated(b"", choices), bytes)


def test_bytes_that_are_no_text_are_damage_like_any_other() -> None:
    """Fuzzing found that they were an error of the decoder."""
    with pytest.raises(SpecError, match="utf-8"):
        from_json(to_json(SPEC).replace(b"DNNRegressor", b"\xff"))
    assert decode_event(b'{"type": "\xff"}') is None
    job = create("train")
    (job.path / "status.json").write_bytes(b'{"kind": "\xff"}')
    with pytest.raises(SpecError, match="cannot be read"):
        job.status()
