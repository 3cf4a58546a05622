"""Dates and variables of the environment in the values of variables."""

from __future__ import annotations

from datetime import datetime

import pytest

from edl.errors import SemanticError
from sqlflow_edl.session.texts.expansion import expand_dates, expand_variables

NOW = datetime(2026, 3, 31, 23, 5, 9)
ENVIRONMENT = {"REGION": "emea", "MM": "never", "EMPTY": ""}


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("${yyyyMMdd}", "20260331"),
        ("${yyyyMMdd -1d}", "20260330"),
        ("${yyyy-MM-dd HH:mm:ss +2H}", "2026-04-01 01:05:09"),
        ("${yyyyMMdd -1M}", "20260228"),
        ("${yyyyMMdd -1M +1d}", "20260301"),
        ("${yy/MM -2y}", "24/03"),
        ("${MM}", "03"),
        ("sales_${yyyyMM -1M}_${REGION}", "sales_202602_emea"),
        ("${NONE:-a:-b}|${EMPTY:-c}", "a:-b|"),
        ("$${REGION} {REGION} $5", "${REGION} {REGION} $5"),
    ],
)
def test_a_value_is_expanded(text: str, wanted: str) -> None:
    assert expand_variables(text, NOW, ENVIRONMENT) == wanted


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("${yyyyMMdd -1D}", "unknown offset -1D"),
        ("${yyyyMMdd -9000y}", "between the years"),
        ("${yyyyMMdd", "not closed"),
        ("${REGIO}", "no variable REGIO"),
        ("${a-b}", "neither a date nor a variable"),
        ("${YYYYMMDD}", "no variable YYYYMMDD"),
        ("${yyyymmdd}", "mm in ..yyyymmdd. is minutes"),
        ("${HH:MM}", "MM in ..HH:MM. is the month"),
        ("${}", "neither a date nor a variable"),
    ],
)
def test_what_cannot_be_expanded_is_an_error(text: str, said: str) -> None:
    with pytest.raises(SemanticError, match=said):
        expand_variables(text, NOW, ENVIRONMENT)


def test_a_date_in_other_letters_is_answered_with_those_that_are_meant() -> None:
    with pytest.raises(SemanticError) as raised:
        expand_variables("${YYYYMMDD}", NOW, {})
    assert raised.value.hint == "a date is written ${yyyyMMdd}"


def test_dates_of_a_program_are_replaced_and_all_else_stays() -> None:
    text = "SELECT '${HOME}', '$${yyyy}', '${}', ${yyyyMMdd -1d} FROM t_${yyyyMM} WHERE x = '${a b}'"
    assert expand_dates(text, datetime(2024, 3, 1)) == (
        "SELECT '${HOME}', '${yyyy}', '${}', 20240229 FROM t_202403 WHERE x = '${a b}'"
    )
    with pytest.raises(SemanticError, match="unknown offset -1x"):
        expand_dates("SELECT ${yyyyMMdd -1x}", datetime(2024, 3, 1))
