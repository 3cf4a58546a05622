"""Charts of explained rows."""

from __future__ import annotations

import datetime as dt
import re
from xml.etree import ElementTree

import pyarrow as pa
import pytest

from edl.errors import SemanticError
from sqlflow_edl.charts.shapley import (
    RAMP,
    SHOWN_ROWS,
    UNRANKED,
    Explained,
    beeswarm,
    dependence,
    importance_bars,
)

ROWS = 40
TABLE = pa.table(
    {
        "age": pa.array([*range(ROWS - 1), None], pa.int64()),
        "city": ["Oslo", "Rome <b>"] * (ROWS // 2),
        "since": [dt.date(2000 + n, 1, 1) for n in range(ROWS)],
        "income": [100.0] * ROWS,
        "income_base": [90.0] * ROWS,
        "age_shap": [0.1 * n for n in range(ROWS)],
        "city_shap": [5.0, -5.0] * (ROWS // 2),
        "since_shap": [0.0] * (ROWS - 1) + [None],
    }
)


def explained(table: pa.Table = TABLE) -> Explained:
    rows = Explained.of(table)
    assert rows is not None
    return rows


def dots(svg: str) -> dict[str, list[tuple[float, float]]]:
    """The places of the dots, by colour."""
    found = {}
    for path in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}path"):  # noqa: S314 - our own
        if path.get("stroke-linecap") == "round":
            places = re.findall(r"M([\d.]+) ([\d.]+)h0", path.get("d") or "")
            found.setdefault(path.get("stroke", ""), []).extend((float(x), float(y)) for x, y in places)
    return found


def test_columns_come_by_importance_and_the_target_is_the_columns_of_the_base() -> None:
    rows = explained()
    assert rows.target == "income"
    assert list(rows.effects) == ["city", "age", "since"]
    assert re.findall("<title>(.*?)</title>", importance_bars(rows)) == ["city: 5", "age: 1.95", "since: 0"]


def test_rows_without_shapley_values_are_not_explained() -> None:
    assert Explained.of(TABLE.drop_columns(["income_base"])) is None
    assert Explained.of(TABLE.slice(0, 0)) is None


def test_a_beeswarm_has_a_dot_for_each_known_effect_low_values_in_the_first_colour() -> None:
    found = dots(beeswarm(explained()))
    assert sum(map(len, found.values())) == 3 * ROWS - 1
    assert len(found[UNRANKED]) == ROWS + 1  # the cities, which have no order, and the age that is not known
    strips = sorted({y for _, y in found[RAMP[0]]})
    lowest, highest = (
        sorted(x for x, y in found[colour] if y < strips[-1] - 17) for colour in (RAMP[0], RAMP[-1])
    )
    assert max(lowest) < min(highest)


def test_dots_at_one_place_lie_beside_each_other_within_their_strip() -> None:
    heights = [y for places in dots(beeswarm(explained())).values() for _, y in places]
    assert len(set(heights)) > ROWS // 2
    assert max(heights) - min(heights) < 3 * 34


def test_a_chart_of_many_rows_stays_small() -> None:
    many = pa.concat_tables([TABLE] * 500)
    svg = beeswarm(explained(many))
    assert sum(map(len, dots(svg).values())) == 3 * SHOWN_ROWS
    assert len(svg) < 30_000


def test_the_effect_of_a_number_is_drawn_over_it_in_the_colours_of_another_column() -> None:
    found = dots(dependence(explained(), "age", by="city"))
    assert len(found) == 2
    for places in found.values():
        assert sorted(places) == sorted(
            places, key=lambda place: (place[0], -place[1])
        )  # it rises with the age
    assert sum(map(len, found.values())) == ROWS - 1


def test_categories_have_places_with_their_names() -> None:
    svg = dependence(explained(), "city", by="age")
    assert "Rome &lt;b&gt;</text>" in svg
    assert "age:</text>" in svg


def test_dates_are_years() -> None:
    svg = dependence(explained(), "since")
    assert "2,010</text>" in svg


def test_of_many_categories_the_most_frequent_have_places_and_colours() -> None:
    names = [f"town {n}" if n % 2 else f"city {n % 20}" for n in range(ROWS)]  # cities are twice as frequent
    table = TABLE.set_column(1, "city", pa.array([None, *names[1:]]))
    svg = dependence(explained(table), "city", by="city")
    assert all(f">{name}</text>" in svg for name in ("city 2", "city 4", "others"))
    assert ">town 1</text>" not in svg
    assert len(dots(svg)) == 6
    assert sum(map(len, dots(svg).values())) == ROWS - 1


@pytest.mark.parametrize(
    "values",
    [
        pa.array([[1, 2], None]),
        pa.array([{"a": 1}, {"a": 2}]),
        pa.array([1, 2], pa.duration("s")),
        pa.array([b"\xff", b"a"]),
    ],
    ids=lambda values: str(values.type),
)
def test_columns_of_any_type_are_drawn(values: pa.Array) -> None:
    rows = Explained.of(pa.table({"x": values, "x_shap": [0.5, -1.0], "y_base": [0.0, 0.0]}))
    assert rows is not None
    assert "<svg" in beeswarm(rows)
    assert "<svg" in dependence(rows, "x", by="x")


def test_a_column_with_texts_is_no_shapley_value() -> None:
    assert Explained.of(pa.table({"x": [1], "x_shap": ["a"], "y_base": [0.0]})) is None


def test_unknown_columns_are_refused() -> None:
    with pytest.raises(SemanticError, match="no Shapley value of 5"):
        dependence(explained(), 5)  # type: ignore[arg-type]
    with pytest.raises(SemanticError, match="no Shapley value of ages") as caught:
        dependence(explained(), "ages")
    assert caught.value.hint == "did you mean age?"
