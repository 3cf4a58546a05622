"""FEATURES(m) in COLUMN: features as another model has them."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pyarrow as pa
import pytest

from edl import spec
from edl.errors import SQLFlowError
from sqlflow_edl.analysis.columns.drafts import Draft
from sqlflow_edl.analysis.columns.items import Resolver
from sqlflow_edl.analysis.columns.reused import Reused, form
from sqlflow_edl.analysis.schema import Schema
from sqlflow_edl.session.session import Session
from sqlflow_edl.syntax import parse
from tests.databases import Databases, fill
from tests.edl.models.conftest import SPEC
from tests.trained import Models, rows

CITY = spec.Vocabulary("city", ("oslo", "bonn"))
SHARED = tuple(spec.Embedding(spec.HashBucket(name, 9), 2, table=1) for name in ("start", "goal"))
AGE = spec.Standardize("age", 40.0, 12.5)
FEATURES = (AGE, spec.OneHot(CITY), *SHARED)
SCHEMA = Schema(
    pa.schema(
        {"Age": pa.int64(), "city": pa.string(), "start": pa.string(), "goal": pa.string(), "y": pa.float64()}
    )
)


def reused(items: str, *features: spec.Feature, **changes: object) -> list[Draft]:
    """The drafts of a COLUMN clause with FEATURES(m), of a model with these features."""
    [statement] = parse(f"SELECT * FROM t TO TRAIN DNN COLUMN {items} LABEL y INTO n")
    model = msgspec.structs.replace(SPEC, inputs={"features": features or FEATURES}, **changes)
    errors: list[SQLFlowError] = []
    models = {str(name): Reused("m@3", model) for name in statement.reused_models}
    resolver = Resolver(SCHEMA, {"y": "the label"}, errors, [], models)
    found = resolver.items(statement.columns[0].items)
    for error in errors:
        raise error
    return found


def fitted(drafts: list[Draft], *, trees: bool = False) -> list[object]:
    return [form(draft.fit({}), draft, trees=trees) for draft in drafts]


def test_statistics_and_vocabularies_are_the_other_models() -> None:
    found = reused("FEATURES(m)")
    assert [draft.origin for draft in found] == ["m@3"] * 4
    assert fitted(found) == [spec.Standardize("Age", 40.0, 12.5), CITY, *SHARED]
    assert fitted(reused("FEATURES('m@production')"), trees=True)[2:] == [each.category for each in SHARED]


def test_features_of_some_columns_alone() -> None:
    assert fitted(reused("FEATURES(m, [AGE, city])")) == [spec.Standardize("Age", 40.0, 12.5), CITY]
    assert fitted(reused("FEATURES(m, columns=start)")) == [SHARED[0]]
    assert fitted(reused("FEATURES(model='m@3', columns=start)")) == [SHARED[0]]
    both = spec.Cross(("start", "goal"), 9)
    assert fitted(reused("FEATURES(m, [start, city])", spec.OneHot(both), spec.OneHot(CITY))) == [CITY]


def test_tables_of_shared_vectors_are_numbered_anew() -> None:
    found = reused(
        "EMBEDDING([HASH(start, 7), HASH(goal, 7)], 2), FEATURES(m), features(other), EMBEDDING([city], 3)"
    )
    assert [draft.table for draft in found] == [1, 1, 0, 0, 2, 2, 0, 0, 3, 3, 4]


def test_both_parts_of_a_model_have_each_category_once() -> None:
    wide = (spec.OneHot(SHARED[1].category), spec.OneHot(CITY))
    [statement] = parse("SELECT * FROM t TO TRAIN DNN COLUMN FEATURES(m) LABEL y INTO n")
    model = msgspec.structs.replace(SPEC, inputs={"wide": wide, "deep": (AGE, *SHARED)})
    resolver = Resolver(SCHEMA, {}, [], [], {"m": Reused("m@1", model)})
    found = fitted(resolver.items(statement.columns[0].items))
    assert found == [CITY, spec.Standardize("Age", 40.0, 12.5), *SHARED]


def test_no_feature_of_a_category_is_left_out_because_it_has_another() -> None:
    vectors = spec.Embedding(CITY, 2), spec.Embedding(CITY, 4)
    assert fitted(reused("FEATURES(m)", *vectors)) == list(vectors)
    for first in (vectors[0], spec.Codes(CITY)):
        with pytest.raises(SQLFlowError, match="m@3 has COUNT_ENCODE of city"):
            reused("FEATURES(m)", first, spec.LogCount(CITY))


@pytest.mark.parametrize(
    ("feature", "message"),
    [
        (spec.Numeric("size"), "the query lacks the column size that m@3 reads"),
        (spec.Numeric(spec.Computed("/", ("y", "age"))), "m@3 reads y, the label; a model must not see it"),
        (spec.TargetMean(CITY, 10.0), "m@3 has TARGET_ENCODE of city, whose statistics are those of its own"),
        (spec.LogCount(CITY), "m@3 has COUNT_ENCODE of city"),
    ],
)
def test_features_that_the_query_cannot_have_are_named(feature: spec.Feature, message: str) -> None:
    with pytest.raises(SQLFlowError) as raised:
        reused("FEATURES(m)", feature)
    assert message in raised.value.message
    assert raised.value.span is not None
    if "TARGET" not in message and "COUNT" not in message:
        with pytest.raises(SQLFlowError) as raised:
            reused("FEATURES(m)", feature, AGE)
        assert raised.value.hint == "write FEATURES(m, [age]) for these columns alone"


def test_a_column_of_another_kind_is_named_at_its_place() -> None:
    fields = (spec.Field("age", "string"), spec.Field("city", "int64"))
    query = msgspec.structs.replace(SPEC.query, schema=fields)
    numbers = spec.OneHot(spec.Vocabulary("city", (3, 4)))
    assert len(reused("FEATURES(m)", numbers, query=query)) == 1
    with pytest.raises(SQLFlowError, match="Age is a number, and a text in m@3") as raised:
        reused("FEATURES(m)", AGE, query=query)
    assert raised.value.span is not None


def test_numbers_of_trees_are_none_of_a_network() -> None:
    drafts = reused("FEATURES(m)", spec.Raw("age"), spec.Codes(CITY))
    assert fitted(drafts, trees=True) == [spec.Raw("Age"), CITY]
    with pytest.raises(SQLFlowError, match="m@3 is a model of trees, which take Age as it is"):
        fitted(drafts)


@pytest.mark.parametrize(
    ("items", "message"),
    [
        ("EMBEDDING(FEATURES(m), 4)", "FEATURES(m) is an item of COLUMN by itself"),
        ("FEATURES()", "FEATURES lacks its model"),
        ("FEATURES(m, n)", "m@3 reads no column n"),
        ("FEATURES(m, start)", "m@3 has no feature of start alone"),
        ("FEATURES(m, [age, 3])", "FEATURES's columns must be a column, or a list of columns"),
        ("FEATURES(m, [age], 3)", "FEATURES takes at most 2 arguments"),
        ("FEATURES(3)", "FEATURES's model must be a name or a text"),
    ],
)
def test_a_call_that_is_none_is_named(items: str, message: str) -> None:
    with pytest.raises(SQLFlowError) as raised:
        reused(items, AGE, spec.OneHot(spec.Cross(("start", "goal"), 9)))
    assert message in raised.value.message


@pytest.mark.soak
def test_a_model_of_one_database_is_reused_over_the_rows_of_another(
    trained: Models, databases: Databases, tmp_path: Path
) -> None:
    """The archive's features are used, though the rows have other statistics."""
    archive = trained["shared"].archive
    text = "SELECT amount * 2 AS amount, small, price, shop, day, seen, is_new, cost FROM sales WHERE amount < 9 "
    train = "TO TRAIN DNNRegressor COLUMN FEATURES(shared) LABEL cost INTO m"
    with Session(databases.url("mysql"), create=True, model_store=str(trained.folder / "store")) as session:
        fill(session, "sales", rows(80, 3, training=True))
        [compiled] = session.compile(text + train)
        for column, message in (("bse", "there is no model bse"), ("shared@9", "shared has no version 9")):
            with pytest.raises(SQLFlowError, match=message):
                session.compile(text + train.replace("FEATURES(shared)", f"FEATURES('{column}')"))
        with pytest.raises(SQLFlowError, match="the features of TRAIN … USING shared@1 are its own"):
            session.compile(
                text.replace("cost", "kind")
                + "TO TRAIN DNN COLUMN FEATURES(shared) LABEL kind USING shared INTO m"
            )
        other = "TO TRAIN DNN COLUMN EMBEDDING([shop, small], {}) LABEL kind USING shared INTO m"
        session.compile(text.replace("cost", "kind") + other.format(2))
        with pytest.raises(SQLFlowError, match=r"no feature embedding\(vocabulary\(shop\), 5, shared\)"):
            session.compile(text.replace("cost", "kind") + other.format(5))
    assert set(compiled.spec.features) >= set(archive.spec.features)
