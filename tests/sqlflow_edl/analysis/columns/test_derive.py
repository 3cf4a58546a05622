"""What columns become by themselves: dates and times, and texts and lists of several values."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator

import pyarrow as pa
import pytest

from edl import spec
from edl.features.transform import Features
from sqlflow_edl.session.compiler import CompiledStatement
from sqlflow_edl.session.session import Session
from tests.databases import fill, has_lists
from tests.sql_cases import FIXTURES

# MaxCompute has no times of day: there they are text.
has_times = pytest.mark.parametrize("session", ["duckdb", "sqlite", "mysql", "postgres"], indirect=True)


def dated(session: Session, columns: str, items: str = "") -> CompiledStatement:
    clause = f"COLUMN {items} " if items else ""
    text = f"SELECT {columns}, income FROM dated TO TRAIN DNNRegressor {clause}LABEL income INTO m"
    [only] = session.compile(text)
    return only


def one_hot(column: str, *parts: spec.Part) -> tuple[spec.Feature, ...]:
    return tuple(spec.OneHot(spec.DatePart(column, part)) for part in parts)


@pytest.mark.soak
@pytest.mark.parametrize(
    ("column", "parts", "note"),
    [
        ("born", ("month", "day", "weekday"), "born (date) becomes 4 features: time, month, day, weekday"),
        (
            "seen",
            ("day", "weekday", "hour"),
            "seen (timestamp) becomes 5 features: time, month, day, weekday, hour",
        ),
    ],
)
def test_a_date_or_time_becomes_its_parts_and_the_answer_says_so(
    session: Session, column: str, parts: tuple[spec.Part, ...], note: str
) -> None:
    found = dated(session, column)
    trend, *recurring = found.spec.features
    assert isinstance(trend, spec.PiecewiseLinear)
    assert tuple(recurring) == one_hot(column, *parts)
    assert found.notes[0] == note


@pytest.mark.soak
@has_times
def test_a_time_of_day_becomes_its_hour(session: Session) -> None:
    found = dated(session, "woke")
    assert [type(feature) for feature in found.spec.features] == [spec.PiecewiseLinear, spec.OneHot]
    assert found.notes[0] == "woke (time of day) becomes 2 features: time, hour"
    assert dated(session, "woke", "MINUTE(woke)").spec.features == one_hot("woke", "minute")
    assert dated(session, "woke", "NORMALIZE(woke)").spec.features == (
        spec.Normalize("woke", 0.0, 58800.0, 29400.0),
    )


@pytest.mark.soak
def test_a_part_that_never_differs_is_left_out_unless_it_is_named(session: Session) -> None:
    for items in ("", "seen"):
        assert "the month of seen is left out" in dated(session, "seen", items).notes[1]
    assert dated(session, "seen", "MONTH(seen)").spec.features == one_hot("seen", "month")


def test_a_date_that_never_differs_is_left_out_as_a_whole(session: Session) -> None:
    found = dated(session, "age, (SELECT born FROM dated WHERE age = 7) AS day")
    assert [note for note in found.notes if "left out" in note] == [
        "day is left out: it is the same in every training row"
    ]
    assert {name for each in found.spec.features for name in spec.source_columns(each)} == {"age"}


@pytest.mark.variants(3)
@pytest.mark.parametrize(
    ("item", "wanted"),
    [
        ("MONTH(born)", one_hot("born", "month")[0]),
        ("dayofmonth(born)", one_hot("born", "day")[0]),
        ("DAYOFWEEK(seen)", one_hot("seen", "weekday")[0]),
        ("EMBEDDING(HOUR(seen), 3)", spec.Embedding(spec.DatePart("seen", "hour"), 3)),
        ("YEAR(born)", spec.Year("born", 2000.0, 0.0)),
        ("CATEGORY_HASH(born, 9)", spec.OneHot(spec.HashBucket("born", 9))),
    ],
)
def test_a_function_of_a_date_becomes_its_feature(session: Session, item: str, wanted: spec.Feature) -> None:
    assert dated(session, "born, seen", item).spec.features[0] == wanted


def test_the_scale_of_a_year_follows_calendar_years(session: Session) -> None:
    assert dated(session, "joined", "YEAR(joined)").spec.features == (spec.Year("joined", 2000.5, 0.5),)


def test_a_decimal_is_a_number(session: Session) -> None:
    price, bins = dated(session, "price").spec.features
    assert isinstance(price, spec.Standardize)
    assert isinstance(bins, spec.PiecewiseLinear)
    assert price.mean == pytest.approx(sum(round(i / 4, 2) for i in range(50)) / 50, abs=0.01)


# Numbers of a dense network -----------------------------------------------------------------------------------


def of(session: Session, query: str, model: str = "DNNRegressor") -> CompiledStatement:
    [only] = session.compile(f"SELECT {query} TO TRAIN {model} LABEL y INTO m")
    return only


MANY = pa.table(
    {
        "half": [i / 2 for i in range(4000)],
        "team": [i % 100 for i in range(4000)],
        "day": [dt.date(2024, 1, 1) + dt.timedelta(days=i) for i in range(4000)],
        "shop": [i * 7 % 20 for i in range(4000)],
        "user_id": [i % 1000 for i in range(4000)],
        "count": [i % 1000 for i in range(4000)],
        "left": [i % 2 for i in range(4000)],
        "remark": [f"remark {min(i, 3000)}" for i in range(4000)],
        "city": [f"c{i % 30}" if i >= 30 else f"rare{i}" for i in range(4000)],
        "y": [i % 11 / 3 for i in range(4000)],
        "strength": [i % 100 * 37 % 100 + i % 7 for i in range(4000)],
    }
)


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    with Session(f"duckdb:///{tmp_path_factory.mktemp('many')}/many.duckdb", create=True) as session:
        fill(session, "many", MANY)
        yield session


@pytest.mark.variants(3)
@pytest.mark.parametrize(
    ("column", "wanted"),
    [
        ("half", [spec.Standardize, spec.PiecewiseLinear]),
        ("shop", [spec.Standardize, spec.PiecewiseLinear, spec.Embedding]),
        ("user_id", [spec.Standardize, spec.PiecewiseLinear, spec.Embedding]),
        ("count", [spec.Standardize, spec.PiecewiseLinear]),
        ("left AS side", [spec.Standardize]),
    ],
)
def test_a_number_is_in_bins_too_and_a_group_where_it_repeats(
    many: Session, column: str, wanted: list[type]
) -> None:
    quoted = column.replace("count", '"count"').replace("left", '"left"')
    assert [type(each) for each in of(many, f"{quoted}, y FROM many").spec.features] == wanted
    linear = of(many, f"{quoted}, y FROM many", "LinearRegressor").spec.features
    assert [type(each) for each in linear] == [spec.Standardize]


@pytest.mark.parametrize(
    ("model", "wanted"),
    [
        ("DNNRegressor", [spec.Standardize, spec.PiecewiseLinear, spec.Embedding]),
        ("LinearRegressor", [spec.Standardize, spec.OneHot]),
        ("BoostedTreesRegressor", [spec.Raw, spec.Codes]),
    ],
)
def test_whole_numbers_are_a_group_too_where_the_label_differs_by_them_in_no_order(
    many: Session, model: str, wanted: list[type]
) -> None:
    [found] = many.compile(f"SELECT team, strength FROM many TO TRAIN {model} LABEL strength INTO m")
    assert [type(each) for each in found.spec.features] == wanted
    [found] = many.compile(f"SELECT team, team * 3 AS y FROM many TO TRAIN {model} LABEL y INTO m")
    assert [type(each) for each in found.spec.features] == wanted[:-1]


def test_the_trend_of_a_date_ends_with_the_training_rows(many: Session) -> None:
    first, last = (dt.datetime(2024, 1, 1, tzinfo=dt.UTC) + dt.timedelta(days=i) for i in (0, 3999))
    [found] = many.compile("SELECT day, y FROM many TO TRAIN LinearRegressor LABEL y INTO m")
    assert found.spec.features[0] == spec.PiecewiseLinear("day", (first.timestamp(), last.timestamp()))
    days = pa.array([first.date(), dt.date(2100, 1, 1), dt.date(1900, 1, 1), None])
    transformed = Features(found.spec.features[0]).transform(pa.RecordBatch.from_arrays([days], ["day"]))
    assert transformed["positions"].ravel().tolist() == [0, 1, 0, 0.5]


def test_a_text_of_remarks_is_left_out_and_the_answer_says_so(many: Session) -> None:
    found = of(many, "remark, half, y FROM many")
    assert {column for each in found.spec.features for column in spec.source_columns(each)} == {"half"}
    assert (
        "remark is left out: most of its texts occur once; write HASH(remark) in COLUMN to use it anyway"
        in (found.notes)
    )


def test_sentences_are_advised_to_be_read_by_their_runs_of_characters(many: Session) -> None:
    found = of(many, "CASE WHEN half > 0 THEN remark || ' asked for a refund' END AS note, half, y FROM many")
    assert any(
        note.endswith("write NGRAMS(note, 3, 4096) in COLUMN to use its words") for note in found.notes
    )


def test_words_that_occur_once_count_as_unseen_if_there_are_many(many: Session) -> None:
    [found] = of(many, "city, y FROM many").spec.features
    assert isinstance(found, spec.Embedding)
    assert isinstance(found.category, spec.Vocabulary)
    assert len(found.category.values) == 30
    assert not [value for value in found.category.values if str(value).startswith("rare")]


# One value or NULL ------------------------------------------------------------------------------------------

FLAGS = (FIXTURES / "reported" / "one_value_or_null.sql").read_text("utf-8")


@pytest.fixture(scope="module")
def flags(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        with Session("duckdb:") as session:
            list(session.run(FLAGS))
            yield session


def test_a_column_of_one_value_and_nulls_tells_its_presence(flags: Session) -> None:
    [found] = flags.compile("SELECT * FROM flags TO TRAIN LinearRegressor LABEL y INTO m")
    features = {next(spec.source_columns(each)): each for each in found.spec.features}
    present = {name: spec.IsNull(name) for name in ("flag", "member", "returned", "fine")}
    assert {name: features[name] for name in present} == present
    assert features["promo"] == spec.OneHot(spec.Vocabulary("promo", ("X",), "other"))
    assert not [note for note in found.notes if "left out" in note]
    [found] = flags.compile("SELECT * FROM flags TO TRAIN BoostedTreesRegressor LABEL y INTO m")
    assert spec.Raw("fine") in found.spec.features


@pytest.mark.parametrize(
    "model",
    [
        "BoostedTreesRegressor WITH train.num_boost_round = 150",
        pytest.param(
            "BoostedTreesRegressor WITH model.framework = xgboost, train.num_boost_round = 40",
            marks=pytest.mark.soak,
        ),
        pytest.param(
            "LinearRegressor WITH train.epoch = 30, model.framework = torch", marks=pytest.mark.soak
        ),
        pytest.param("DNNRegressor WITH train.epoch = 8, model.framework = torch", marks=pytest.mark.soak),
    ],
)
def test_a_model_learns_from_the_presence_of_values(flags: Session, model: str) -> None:
    train, measured = flags.run(
        f"SELECT * FROM flags TO TRAIN {model} LABEL y INTO m; SELECT * FROM flags TO EVALUATE m"
    )
    assert measured.to_arrow()["r2"][0].as_py() > 0.99
    assert not [note for note in train.notes if "left out" in note]


def test_a_column_is_a_feature_if_its_null_is_the_information(flags: Session) -> None:
    *_, predicted = flags.run(
        "SELECT * FROM null_decides TO TRAIN BoostedTreesClassifier WITH train.num_boost_round = 20 LABEL y INTO m;"
        "SELECT 9999.0 AS x UNION ALL SELECT NULL TO PREDICT USING m"
    )
    assert [row["y"] for row in predicted.to_arrow().to_pylist()] == [1, 0]


# Several values in a cell ----------------------------------------------------------------------------------


def by_type(session: Session, column: str, items: str = "") -> CompiledStatement:
    clause = f"COLUMN {items} " if items else ""
    text = f"SELECT {column}, income FROM packed TO TRAIN LinearRegressor {clause}LABEL income INTO m"
    [only] = session.compile(text)
    return only


WORDS = spec.OneHot(
    spec.ListOf(spec.Vocabulary("words", ("red", "blue", *(f"w{i}" for i in range(50)))), "|")
)


def in_any_order(feature: spec.Feature) -> tuple[str, set[str | int]]:
    assert isinstance(feature, spec.OneHot)
    assert isinstance(feature.category, spec.ListOf)
    assert isinstance(feature.category.category, spec.Vocabulary)
    return feature.category.delimiter, set(feature.category.category.values)


@pytest.mark.parametrize("items", ["", "words", "INDICATOR(words)"])
def test_a_text_of_lists_becomes_the_categories_of_their_items_and_the_answer_says_so(
    session: Session, items: str
) -> None:
    found = by_type(session, "words", items)
    [feature] = found.spec.features
    assert in_any_order(feature) == in_any_order(WORDS)
    assert "words (text) looks like lists of categories between '|' and is read as such" in found.notes


@pytest.mark.parametrize("items", ["", "halves"])
def test_a_text_of_as_many_numbers_in_each_cell_becomes_a_vector(session: Session, items: str) -> None:
    found = by_type(session, "halves", items)
    [feature] = found.spec.features
    assert isinstance(feature, spec.Vector)
    assert (feature.mean, feature.delimiter) == ((12.25, 2.0), ";")
    assert feature.std == pytest.approx((7.21543, 1.41421), abs=1e-5)
    assert "halves (text) looks like lists of numbers between ';' and is read as such" in found.notes


@pytest.mark.parametrize("items", ["", "pairs", "INDICATOR(pairs)"])
def test_a_text_of_items_with_weights_becomes_weighted_categories(session: Session, items: str) -> None:
    found = by_type(session, "pairs", items)
    [feature] = found.spec.features
    assert in_any_order(feature) == (" ", {str(i) for i in range(20)})
    assert isinstance(feature, spec.OneHot)
    assert isinstance(feature.category, spec.ListOf)
    assert feature.category.weights == ":"
    assert (
        "pairs (text) looks like lists of categories with weights between ' ' and is read as such"
        in found.notes
    )


def test_where_a_category_is_needed_numbers_between_delimiters_are_items(session: Session) -> None:
    [feature] = by_type(session, "ids", "INDICATOR(ids)").spec.features
    assert in_any_order(feature) == (",", {str(i) for i in range(20)})


@pytest.mark.soak
@has_lists
def test_columns_of_lists_are_read_as_texts_of_lists_are(session: Session) -> None:
    [names] = by_type(session, "names").spec.features
    assert in_any_order(names) == (",", {"t0", "t1", "t2"})
    [pair] = by_type(session, "pair").spec.features
    assert isinstance(pair, spec.Vector)
    assert (pair.mean, len(pair.std)) == ((24.5, 25.5), 2)
    [tags] = by_type(session, "tags", "INDICATOR(tags)").spec.features
    assert in_any_order(tags) == (",", {0, 1, 2, 3, 19})


def test_the_answer_tells_the_lists_among_several_categories(session: Session) -> None:
    found = by_type(session, "ids, words", "EMBEDDING(CONCAT(ids, words), 4)")
    assert found.notes == (
        "ids (text) looks like lists of categories between ',' and is read as such",
        "words (text) looks like lists of categories between '|' and is read as such",
    )


def test_a_text_of_lists_that_a_function_names_as_a_whole_stays_whole(session: Session) -> None:
    [feature] = by_type(session, "ids", "HASH(ids, 9)").spec.features
    assert feature == spec.OneHot(spec.HashBucket("ids", 9))


@pytest.fixture
def amounts() -> Iterator[Session]:
    """500 amounts of money with decimal commas, and lists of two of 1,500 tags."""
    euros = [f"€{1 + 7 * i % 9}.{i % 900 + 100},{i % 90 + 10}" for i in range(500)]
    tags = [f"t{i}|t{i + 1000}" for i in range(500)]
    with Session("duckdb:") as found:
        fill(
            found, "amounts", pa.table({"spent": euros, "tags": tags, "y": [i % 7 * 1.5 for i in range(500)]})
        )
        yield found


def test_numbers_with_decimal_commas_are_no_lists(amounts: Session) -> None:
    [found] = amounts.compile("SELECT spent, y FROM amounts TO TRAIN DNNRegressor LABEL y INTO m")
    assert not [note for note in found.notes if "lists" in note]
    assert not any(isinstance(spec.category_of(each), spec.ListOf) for each in found.spec.features)


@pytest.mark.soak
def test_lists_of_too_many_items_leave_the_other_columns_to_trees(amounts: Session) -> None:
    query = "SELECT tags, spent, y FROM amounts"
    [found] = amounts.compile(f"{query} TO TRAIN BoostedTreesRegressor LABEL y INTO m")
    assert [each.column for each in map(spec.category_of, found.spec.features)] == ["spent"]
    assert any(
        note.startswith("tags is left out: it has lists of 1,001 ids, and trees take a column for each")
        for note in found.notes
    )
    [plan] = amounts.run(f"EXPLAIN {query} LABEL y INTO m")
    assert "BoostedTreesRegressor (lightgbm)" in str(plan.to_arrow()["name"].to_pylist())


def test_decimals_without_places_are_whole_numbers() -> None:
    with Session("duckdb:") as session:
        query = "SELECT (i % 4 + 10)::NUMERIC(20, {0}) AS shop, i % 7 / 2 AS amount FROM range(300) AS r(i)"
        whole, fractional = (
            session.compile(f"{query.format(places)} TO TRAIN DNN LABEL shop INTO m")[0].spec.label
            for places in (0, 2)
        )
        assert whole.has_classes
        assert not fractional.has_classes
        text = f"{query.format(0)} TO TRAIN DNN COLUMN ONE_HOT(shop) LABEL amount INTO m"
        [only] = session.compile(text)
        assert only.spec.features == (spec.OneHot(spec.Vocabulary("shop", (10, 11, 12, 13))),)
