"""Rows to predict are compared with the training's: values that the model does not know are counted."""

from __future__ import annotations

import msgspec
import pytest

from edl import spec
from edl.jobs import job_folder
from edl.models.fitting import ColumnSummary, Fitting
from edl.spec import JobSpec
from sqlflow_edl.session import comparison
from sqlflow_edl.session.session import Session

CITIES = """(SELECT 'oslo' AS city, 20 AS age UNION ALL SELECT 'rome', 21 UNION ALL SELECT NULL, 22
UNION ALL SELECT 'here', 23 UNION ALL SELECT 'there', 24) AS cities"""


UNKNOWN = "a value that was rare in training or did not occur"
FITTING = Fitting(
    {"city": ColumnSummary(100, 1), "age": ColumnSummary(100, 0)}
)  # of rows, and of those with NULL


def trained(session: Session) -> JobSpec:
    [found] = session.compile(
        "SELECT city, age, income FROM people TO TRAIN LinearRegressor LABEL income INTO m"
    )
    return found.spec


@pytest.mark.variants(2)
@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ("SELECT * FROM cities", (f"city: 2 of 5 rows have {UNKNOWN}",)),
        ("SELECT age, city FROM cities WHERE age < 24", (f"city: 1 of 4 rows has {UNKNOWN}",)),
        ("SELECT * FROM cities WHERE age < 22", ()),
        ("SELECT * FROM cities WHERE age > 99", ()),
        ("SELECT city, nullif(age, 20) AS age FROM cities WHERE age < 22",
         ("age: 1 of 2 rows has NULL, of which training had none",)),
        ("SELECT city, nullif(age, age) AS age FROM cities",
         (f"city: 2 of 5 rows have {UNKNOWN}; age: 5 of 5 rows have NULL, of which training had none",)),
    ],
)  # fmt: skip
def test_unseen_values_and_new_nulls_are_counted_by_column(
    session: Session, query: str, wanted: tuple[str, ...]
) -> None:
    query = query.replace("cities", CITIES)
    job = job_folder.create("predict", query)
    pinned = session.source.pin(query, job.rows, seed=0, shuffle=False)
    model = trained(session)
    assert isinstance(spec.category_of(model.features[0]), spec.Vocabulary)
    assert comparison.comparison_notes(FITTING, model, model, pinned, job) == wanted


@pytest.mark.parametrize(
    ("category", "wanted"),
    [
        (spec.ListOf(spec.CategoryId("tags", 9)), 3),
        (spec.ListOf(spec.Vocabulary("tags", (1, 2))), 4),
        (spec.ListOf(spec.HashBucket("tags", 9)), 0),
    ],
)
def test_lists_with_an_unknown_item_are_counted(
    session: Session, category: spec.Category, wanted: int
) -> None:
    texts = ("'1,2'", "'1;2'", "'x,y'", "NULL", "''", "'1,77,78'", "'3'")
    query = f"SELECT t AS tags FROM ({' UNION ALL '.join(f'SELECT {text} AS t' for text in texts)}) AS r"
    job = job_folder.create("predict", query)
    pinned = session.source.pin(query, job.rows, seed=0, shuffle=False)
    features = (spec.OneHot(category),)
    model = msgspec.structs.replace(trained(session), inputs={"features": features})
    said = (f"tags: {wanted} of 7 rows have {UNKNOWN}",) if wanted else ()
    assert comparison.comparison_notes(None, model, model, pinned, job) == said


def test_columns_with_the_largest_share_come_first_and_the_others_are_counted(session: Session) -> None:
    names = [f"c{number}" for number in range(7)]
    columns = (f"CASE WHEN i <= {n} THEN NULL ELSE 1 END AS {name}" for n, name in enumerate(names, 1))
    numbers = " UNION ALL ".join(f"SELECT {number} AS i" for number in range(1, 11))
    query = f"SELECT {', '.join(columns)} FROM ({numbers}) AS numbers"
    job = job_folder.create("predict", query)
    pinned = session.source.pin(query, job.rows, seed=0, shuffle=False)
    features = tuple(spec.Standardize(name, 0.0, 1.0) for name in names)
    model = msgspec.structs.replace(trained(session), inputs={"features": features})
    fitting = Fitting(dict.fromkeys(names, ColumnSummary(100, 0)))
    [found] = comparison.comparison_notes(fitting, model, model, pinned, job)
    assert found == (
        "c6: 7, c5: 6, c4: 5, c3: 4, c2: 3 of 10 rows have NULL, of which training had none (2 more columns)"
    )
