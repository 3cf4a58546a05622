"""Programs with a learning rate by step."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from edl.errors import JobError
from edl.program import UserCodeError
from edl.spec import Rows
from edl.worker.learning_rate import program_rates
from tests.edl.programs import loaded, simple

ROWS = Rows(True, 10, 10)


def rate(folder: Path, body: str) -> Path:
    return simple(folder, rows=ROWS, append=f"\n\ndef learning_rate(steps):\n    return {body}\n")


def test_a_program_without_a_say_has_no_rates(tmp_path: Path) -> None:
    assert program_rates(loaded(simple(tmp_path, rows=ROWS))) is None


def test_rates_are_asked_for_by_the_number_of_the_step(tmp_path: Path) -> None:
    rates = program_rates(loaded(rate(tmp_path, "0.5 ** steps")))
    assert rates is not None
    found = rates(3, 2)
    assert found.dtype == np.float32
    assert found.tolist() == [0.125, 0.0625]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("0.1", "gives a float for 3 steps"),
        ("steps[:1] * 0.1", r"gives a ndarray of shape \(1,\) for 3 steps"),
        ("1 - steps * 0.75", r"gives -0\.5 for step 2; a rate is a number from 0"),
        ("steps * float('nan')", "gives nan for step 0; a rate is a number from 0"),
    ],
)
def test_what_is_no_rate_is_named(tmp_path: Path, body: str, message: str) -> None:
    rates = program_rates(loaded(rate(tmp_path, body)))
    assert rates is not None
    with pytest.raises(JobError, match=message):
        rates(0, 3)


def test_an_error_in_it_names_its_line(tmp_path: Path) -> None:
    rates = program_rates(loaded(rate(tmp_path, "steps.nothing")))
    assert rates is not None
    with pytest.raises(UserCodeError, match="in learning_rate: AttributeError"):
        rates(0, 3)
