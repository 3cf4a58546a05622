"""Matrix factorization: pairs of users and items, and recommendations."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from edl.errors import SQLFlowError
from sqlflow_edl.session.session import Session
from sqlflow_edl.syntax import parse
from tests.sessions import open_in_folder

OPTIONS = "model_type='MATRIX_FACTORIZATION', user_col='Who is it', item_col='film', rating_col='stars', num_factors=2"
QUERY = 'SELECT "Who is it", film, stars FROM seen'

POWERS = (
    "CREATE MODEL m TRANSFORM(ML.POLYNOMIAL_EXPAND(STRUCT(film, nothing)) AS powers, stars) "
    f"OPTIONS(model_type='linear_reg', input_label_cols=['stars']) AS {QUERY}"
)


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    with open_in_folder(tmp_path_factory.mktemp("films")) as opened:
        opened.run(
            "CREATE TABLE seen AS SELECT 'u' || u AS \"Who is it\", f AS film, 1.0 + (u + f) % 3 AS stars "
            "FROM range(6) AS a(u), range(5) AS b(f) WHERE (u + 2 * f) % 5 > 0"
        )
        yield opened


def test_users_and_items_are_categories_and_the_rating_is_the_label() -> None:
    [statement] = parse(f"CREATE MODEL m OPTIONS({OPTIONS}) AS {QUERY}")
    assert str(statement.model) == "MatrixFactorization"
    assert [str(name) for name in statement.labels] == ["stars"]
    [clause] = statement.columns
    assert [item.value.args[0].value for item in clause.items] == ["Who is it", "film"]  # type: ignore[union-attr]
    assert [(each.key, each.value.value) for each in statement.attributes] == [("model.num_factors", 2)]  # type: ignore[union-attr]


def test_names_that_are_not_written_are_the_usual_ones() -> None:
    [statement] = parse("CREATE MODEL m OPTIONS(model_type='matrix_factorization') AS SELECT * FROM t")
    [clause] = statement.columns
    assert [item.value.args[0].value for item in clause.items] == ["user", "item"]  # type: ignore[union-attr]
    assert [str(name) for name in statement.labels] == ["rating"]


@pytest.mark.parametrize(
    ("text", "message", "place"),
    [
        (f"CREATE MODEL m OPTIONS({OPTIONS.replace('Who', 'Whom')}) AS {QUERY}", "Whom", "'Whom is it'"),
        (
            "CREATE MODEL m OPTIONS(model_type='matrix_factorization', user_col=3) AS SELECT 1",
            "name of a column",
            "3",
        ),
        (POWERS, "unknown column nothing", "ML.POLYNOMIAL_EXPAND(STRUCT(film, nothing))"),
    ],
)
def test_a_column_that_is_not_there_is_told_at_the_place_that_names_it(
    session: Session, text: str, message: str, place: str
) -> None:
    with pytest.raises(SQLFlowError, match=message) as raised:
        session.compile(text)
    [error, *_] = getattr(raised.value, "errors", (raised.value,))
    assert text[error.span.start : error.span.end].startswith(place)


@pytest.mark.soak
def test_recommendations_are_predictions_of_all_pairs_or_of_some(session: Session) -> None:
    session.run(f"CREATE MODEL films OPTIONS({OPTIONS}, max_iterations=1) AS {QUERY}")

    def rows(call: str) -> list[dict]:
        return session.run(f"SELECT * FROM {call}")[-1].to_arrow().to_pylist()

    every = rows("ML.RECOMMEND(MODEL films)")
    assert {(row["Who is it"], row["film"]) for row in every} == {
        (f"u{u}", f) for u in range(6) for f in range(5)
    }
    assert list(every[0]) == ["predicted_stars", "Who is it", "film"]
    assert len(rows("ML.RECOMMEND(MODEL films, (SELECT 'u1' AS \"Who is it\" UNION ALL SELECT 'u1'))")) == 5
    assert len(rows("ML.RECOMMEND(MODEL films, (SELECT 3 AS film))")) == 6
    [pair] = rows("ML.RECOMMEND(MODEL films, (SELECT 3 AS film, 'u2' AS \"Who is it\"))")
    [same] = [row for row in every if (row["Who is it"], row["film"]) == ("u2", 3)]
    assert pair["predicted_stars"] == pytest.approx(same["predicted_stars"])
    with pytest.raises(SQLFlowError, match="the query has neither Who is it nor film"):
        rows("ML.RECOMMEND(MODEL films, (SELECT 1 AS x))")
