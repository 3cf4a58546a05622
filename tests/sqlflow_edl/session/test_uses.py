"""Uses of a model: each form of a result and each report without a program has its row."""

from __future__ import annotations

from typing import get_args

from edl.spec.job import Report
from sqlflow_edl.session.uses import FORMS, WITHOUT_PROGRAM, Form


def test_each_form_of_a_result_has_a_row() -> None:
    assert set(get_args(Form)) == FORMS.keys()


def test_reports_without_a_program_are_reports() -> None:
    assert set(get_args(Report)) >= WITHOUT_PROGRAM.keys()
