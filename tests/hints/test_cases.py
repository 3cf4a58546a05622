"""The advice of a hint, taken from its text and applied to the statement, mends the error."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from sqlflow_edl.session.advice import corrections
from sqlflow_edl.session.session import Session
from tests.databases import Databases, fill
from tests.hints import register
from tests.hints.cases import CELL, LINE, Case, read_cases
from tests.hints.origins import Calls, is_of, recorded_calls
from tests.hints.rows import rows
from tests.hints.typed import left, problems


@pytest.fixture(scope="module")
def sessions(databases: Databases, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Session]]:
    """Sessions by dialect, with the tables of the cases."""
    opened = Sessions(databases)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("hints")))
        yield opened
    for session in opened.values():
        session.close()


class Sessions(dict[str, Session]):
    def __init__(self, databases: Databases) -> None:
        super().__init__()
        self._databases = databases

    def __missing__(self, dialect: str) -> Session:
        session = self[dialect] = Session(self._databases.url(dialect), create=True)
        for name, table in rows().items():
            fill(session, name, table)
        return session


def parameters() -> Iterator[Any]:
    """Parameters of the test: `make test` has the first case of each module that is quick.

    Cases that train models, need a server, a console or a notebook are not.
    """
    seen = set[str]()
    for case in read_cases():
        is_quick = not case.trains and case.dialect in ("duckdb", "sqlite") and case.kind not in (CELL, LINE)
        is_first = is_quick and case.site.module not in seen
        seen |= {case.site.module} if is_first else set()
        yield pytest.param(case, id=case.name, marks=[] if is_first else pytest.mark.soak)


@pytest.mark.variants(40)
@pytest.mark.parametrize("case", [*parameters()])
def test_the_advice_of_a_hint_mends_the_error(
    case: Case,
    sessions: dict[str, Session],
    tmp_path: Path,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    session = sessions[case.dialect]
    if not case.looks:
        monkeypatch.setattr(corrections, "LOOKED_AT", ())
    is_thorough = request.config.getoption("--soak")  # the origin of a hint costs as much again
    with recorded_calls() if is_thorough else nullcontext() as calls:
        errors = problems(case, case.wrong, session, tmp_path / "wrong")
    hints = [error.hint for error in errors if case.site.matches(error.hint)]
    assert hints, f"no hint {case.site.pattern!r}, but {errors}"
    if calls is not None:
        check_origin(case, hints[0], calls)
    mended = case.mended(hints[0])
    after = problems(case, mended, session, tmp_path / "mended")
    assert left(case, errors, after) == [], mended


def check_origin(case: Case, hint: str, calls: Calls) -> None:
    """Fail if the hint is of another site than the case says."""
    module, name = calls.made(hint)
    made = [
        each
        for each in register.read()
        if each.module == module
        and (is_of(name, each) or (not each.function and each.pattern == hint))
        and each.matches(hint)
        and not each.is_joined
    ]
    made = [each for each in made if each.pattern == hint] or made  # a text of a table, before a template
    assert not made or case.site in made, f"this hint is of another site, {made}"
    may_be_of_a_job = case.site.module.startswith("edl.") and not made  # whose processes are others
    assert may_be_of_a_job or calls.include(case.site), f"{case.site.function} was not called"
