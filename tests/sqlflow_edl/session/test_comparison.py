"""Rows to predict are compared with those of training: values that the model does not know are counted."""

from __future__ import annotations

import msgspec
import pytest

from edl import spec
from edl.jobs import job_folder
from edl.spec import JobSpec
from sqlflow_edl.session import comparison
from sqlflow_edl.session.session import Session

CITIES = """(SELECT 'oslo' AS city, 20 AS age UNION ALL SELECT 'rome', 21 UNION ALL SELECT NULL, 22
UNION ALL SELECT 'here', 23 UNION ALL SELECT 'there', 24) AS cities"""


def planned(session: Session) -> JobSpec:
    [found] = session.compile(
        "SELECT city, age, income FROM people TO TRAIN LinearRegressor LABEL income INTO m"
    )
    return msgspec.structs.replace(found.spec, kind="predict")


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ("SELECT * FROM cities", ("city: 2 of 5 rows have a value that the model does not know from training",)),
        ("SELECT age, city FROM cities WHERE age < 24",
         ("city: 1 of 4 rows has a value that the model does not know from training",)),
        ("SELECT * FROM cities WHERE age < 22", ()),
        ("SELECT * FROM cities WHERE age > 99", ()),
    ],
)  # fmt: skip
def test_unseen_values_are_counted_by_column(session: Session, query: str, wanted: tuple[str, ...]) -> None:
    query = query.replace("cities", CITIES)
    job = job_folder.create("predict", query)
    pinned = session.source.pin(query, job.rows, seed=0, shuffle=False)
    found = planned(session)
    assert isinstance(spec.category_of(found.features[0]), spec.Vocabulary)
    assert comparison.notes(found, pinned, job) == wanted
