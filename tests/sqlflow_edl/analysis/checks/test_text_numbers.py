"""Texts that are almost all numbers: what is said of them, and what `train.text_numbers = convert` makes of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from edl import spec
from edl.errors import SemanticError
from sqlflow_edl.session.compiler import CompiledStatement
from sqlflow_edl.session.session import Session
from tests.sql_cases import FIXTURES

PROGRAM = (FIXTURES / "reported" / "numbers_as_text.sql").read_text("utf-8")
HORSEPOWER = spec.Computed("TO_NUMBER", ("horsepower",))
PRICE = spec.Computed("TO_NUMBER", ("price",), ",")


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        with Session("duckdb:") as opened:
            list(opened.run(PROGRAM))
            yield opened


def compiled(session: Session, text: str) -> CompiledStatement:
    [found] = session.compile(f"SELECT * FROM mpg {text} INTO m")
    return found


def test_numbers_as_texts_are_said_with_what_reads_them(session: Session) -> None:
    found = compiled(session, "TO TRAIN LinearRegressor LABEL mpg")
    assert found.warnings[0] == (
        "97.4 % of the texts of horsepower are numbers, the others '?', and the column becomes a category; select "
        "TRY_CAST(horsepower AS DOUBLE) AS horsepower, or write train.text_numbers = convert"
    )
    assert found.warnings[1].startswith("100.0 % of the texts of price are numbers")
    named = compiled(
        session, "TO TRAIN LinearRegressor COLUMN horsepower, HASH(price, 10) LABEL mpg"
    ).warnings
    assert not [each for each in named if "of the texts" in each]


def test_a_label_of_numbers_as_texts_is_said(session: Session) -> None:
    found = compiled(session, "TO TRAIN BoostedTrees LABEL horsepower")
    [said] = [each for each in found.warnings if "horsepower" in each and "texts" in each]
    assert (
        "each different text is a class of its own; select TRY_CAST(horsepower AS DOUBLE) AS horsepower"
        in said
    )
    with pytest.raises(SemanticError, match="horsepower is a text") as caught:
        compiled(session, "TO TRAIN BoostedTreesRegressor LABEL horsepower")
    advice = str(caught.value.hint).partition("if its texts are numbers, select ")[2]
    [followed] = session.compile(
        f"SELECT {advice}, kind FROM mpg WHERE horsepower <> '?' TO TRAIN BoostedTreesRegressor LABEL horsepower INTO m"
    )
    assert isinstance(followed.spec.label, spec.RegressionLabel)


@pytest.mark.parametrize(
    ("model", "forms"),
    [
        ("LinearRegressor", [spec.Standardize, spec.IsNull, spec.Standardize]),
        ("BoostedTreesRegressor", [spec.Raw, spec.Raw]),
    ],
)
def test_convert_makes_numbers_of_such_texts_and_says_so(
    session: Session, model: str, forms: list[type]
) -> None:
    found = compiled(session, f"TO TRAIN {model} WITH train.text_numbers = convert LABEL mpg")
    sources = [next(spec.sources(each)) for each in found.spec.features]
    assert list(dict.fromkeys(sources)) == [HORSEPOWER, PRICE, "kind"]
    assert [type(each) for each in found.spec.features[:-1]] == forms
    assert found.notes[:2] == (
        "horsepower, a text, is read as numbers; NULL is '?'",
        "price, a text, is read as numbers",
    )
    assert not [each for each in found.warnings if "of the texts" in each]


def test_a_model_reads_numbers_in_the_texts_that_it_predicts(session: Session) -> None:
    *_, predicted = session.run(
        "SELECT * FROM mpg TO TRAIN BoostedTreesRegressor WITH train.num_boost_round = 100, "
        "train.text_numbers = convert LABEL mpg INTO m; SELECT ' 60.0' AS horsepower, '€1.234,50' AS price, "
        "'a' AS kind UNION ALL SELECT '200', '', 'b' TO PREDICT USING m"
    )
    assert predicted.to_arrow()["mpg"].to_pylist() == pytest.approx([36, 15], abs=1)


@pytest.mark.soak
def test_convert_holds_for_each_candidate_of_a_search(session: Session) -> None:
    found = compiled(session, "LABEL mpg WITH train.text_numbers = convert")
    assert found.spec.search is not None
    for candidate in found.spec.search.candidates:
        sources = {source for each in candidate.spec.features for source in spec.sources(each)}
        assert {HORSEPOWER, PRICE} <= sources
        assert "horsepower" not in sources
