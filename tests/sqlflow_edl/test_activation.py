"""A new version of a model becomes the current one if it is at least as good on the same validation rows."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from edl.errors import SemanticError
from sqlflow_edl.session.session import Session
from tests.sql_cases import FIXTURES

PROGRAM = (FIXTURES / "session" / "activation.sql").read_text("utf-8")
TRAIN = PROGRAM.split(";")[1]


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    folder = tmp_path_factory.mktemp("activation")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(folder))
        with Session(f"duckdb:///{folder}/readings.duckdb", create=True) as opened:
            list(opened.run(PROGRAM))
            yield opened


def train(session: Session, written: str, instead: str) -> tuple[str, str]:
    """Train with one thing written in another way; return the message and the version that is current then."""
    [result] = session.run(TRAIN.replace(written, instead))
    return result.message, session.registry.find("m").reference


def test_a_worse_version_is_stored_and_not_used(session: Session) -> None:
    before = session.registry.find("m").reference
    message, current = train(session, "= 40", "= 2")
    stored = session.registry.list("m")[-1].reference
    assert current == before
    figures = {found.reference: found.record.metrics["rmse"] for found in session.registry.list("m")}
    assert (
        f"{before} stays current: its rmse is {figures[before]:.4g}, that of {stored} {figures[stored]:.4g}"
        in message
    )
    doubt = f"on the same 100 rows, all of which trained {before}, so its figures are better than on new rows"
    assert message.endswith(doubt)  # the rows repeat after 150


@pytest.mark.soak
def test_an_equal_version_is_used(session: Session) -> None:
    message, current = train(session, "", "")
    assert f"{current} is current: its rmse is " in message
    assert current == session.registry.list("m")[-1].reference


@pytest.mark.soak
def test_validation_rows_of_the_query_itself_compare_too(session: Session) -> None:
    before = session.registry.find("m").reference
    message, current = train(session, "VALIDATE ON (SELECT * FROM readings WHERE i < 100)", "VALIDATE 0.25")
    assert "on the same 100 rows, " in message
    assert before in message
    assert current in message


@pytest.mark.parametrize(
    ("written", "instead", "message"),
    [
        ("x, z, y", "x, y", "m@. cannot be measured on the validation rows: the query lacks the column z that"),
        ("VALIDATE ON (SELECT * FROM readings WHERE i < 100)", "VALIDATE 0", "needs validation rows .*there are none"),
    ],
)  # fmt: skip
def test_what_cannot_be_compared_is_not_trained(
    session: Session, written: str, instead: str, message: str
) -> None:
    versions = len(session.registry.list("m"))
    with pytest.raises(SemanticError, match=message) as refused:
        train(session, written, instead)
    assert refused.value.span is not None
    assert len(session.registry.list("m")) == versions


def test_a_plan_names_the_version_to_surpass(session: Session) -> None:
    [result] = session.run(f"EXPLAIN {TRAIN}")
    assert (
        "version",
        "current",
        f"only if it is at least as good as {session.registry.find('m').reference}",
    ) in {tuple(row.values())[:3] for row in result.to_arrow().to_pylist()}


@pytest.mark.soak
def test_a_search_that_compares_versions_keeps_the_rows_from_the_model_that_will_be_compared(
    session: Session,
) -> None:
    for written, refits in (("", True), (", train.activate = better", False)):
        [found] = session.compile(
            f"SELECT x, z, y FROM readings LABEL y WITH auto.folds = 1{written} INTO searched"
        )
        assert found.spec.search.refit == refits
