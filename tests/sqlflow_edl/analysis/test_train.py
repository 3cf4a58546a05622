"""TRAIN statements: what they derive, and what is wrong with them."""

from __future__ import annotations

import statistics

import msgspec
import pytest

from edl import spec
from sqlflow_edl.analysis.catalog import MODELS
from sqlflow_edl.analysis.models.base import USUAL_LENGTH
from sqlflow_edl.reports import text
from sqlflow_edl.session.compiler import CompiledStatement
from sqlflow_edl.session.session import Session
from tests.databases import Databases
from tests.sql_cases import Case, cases, refusal


def compiled(session: Session, text: str) -> CompiledStatement:
    [only] = session.compile(text)
    return only


def features(
    session: Session, columns: str, model: str = "DNNRegressor", label: str = "income"
) -> list[spec.Feature]:
    """What a COLUMN clause becomes; only the columns that it names are selected."""
    text = f"SELECT {columns} FROM people TO TRAIN {model} LABEL {label} INTO m"
    return list(compiled(session, text).spec.features)


def column(session: Session, item: str, *, select: str = "*", model: str = "DNNRegressor") -> spec.Feature:
    text = f"SELECT {select} FROM people TO TRAIN {model} COLUMN {item} LABEL income INTO m"
    return compiled(session, text).spec.features[0]


@pytest.mark.variants(100)
@pytest.mark.parametrize("case", cases("analysis/errors.sql"), ids=str)
def test_an_error_says_where_and_what(case: Case, databases: Databases) -> None:
    errors = refusal(case, lambda program: databases.filled(case.dialect).compile(program))
    assert len(errors) == int(case.fields.get("errors", "1"))


def test_a_bare_number_is_standardised_over_the_training_rows(session: Session) -> None:
    found = column(session, "age")
    assert isinstance(found, spec.Standardize)
    assert (found.mean, round(found.std, 6)) == (44.5, 14.430870)


@pytest.mark.variants(15)
@pytest.mark.parametrize(
    ("item", "wanted"),
    [
        ("NUMERIC(age)", spec.Numeric("age", 44.5)),
        ("numeric_column(age)", spec.Numeric("age", 44.5)),
        ("DENSE(age, 1)", spec.Numeric("age", 44.5)),
        ("NORMALIZE(age)", spec.Normalize("age", 20.0, 69.0, 44.5)),
        ("LOG(age)", spec.Log("age", 44.5)),
        ("member", spec.Numeric("member", 0.5)),
        ("BUCKET(age, [30, 40.5])", spec.OneHot(spec.Bucket("age", (30.0, 40.5)))),
        ("BUCKET(NUMERIC(age), 30)", spec.OneHot(spec.Bucket("age", (30.0,)))),
        ("BUCKETIZE(age, 2)", spec.OneHot(spec.Bucket("age", (44.5,)))),
        ("BUCKETIZE(age, num_buckets=2)", spec.OneHot(spec.Bucket("age", (44.5,)))),
        ("BUCKETIZE(age, boundaries=[30])", spec.OneHot(spec.Bucket("age", (30.0,)))),
        ("BUCKETIZE(city, 9)", spec.OneHot(spec.HashBucket("city", 9))),
        ("CATEGORY_ID(age, 70)", spec.Embedding(spec.CategoryId("age", 70), 8)),
        ("CATEGORY_HASH(city, 9)", spec.OneHot(spec.HashBucket("city", 9))),
        ("HASH(city)", spec.OneHot(spec.HashBucket("city", 12))),
        ("hash_bucket(age, 9)", spec.OneHot(spec.HashBucket("age", 9))),
        ("VOCABULARIZE(team)", spec.OneHot(spec.Vocabulary("team", ("blue", "green", "red")))),
        ("vocabulary(team, max_size=2)", spec.OneHot(spec.Vocabulary("team", ("blue", "green")))),
        ("VOCABULARIZE(member)", spec.OneHot(spec.Vocabulary("member", ("false", "true")))),
        ("EMBEDDING(city, 3)", spec.Embedding(spec.Vocabulary("city", ("bonn", "lima", "oslo", "rome")), 3)),
        ("EMBEDDING(HASH(city, 100))", spec.Embedding(spec.HashBucket("city", 100), 8)),
        ("EMBEDDING(HASH(city, 100), 4, mean)", spec.Embedding(spec.HashBucket("city", 100), 4, "mean")),
        (
            "EMBEDDING(HASH(city, 9), 4, initializer=NORMAL)",
            spec.Embedding(spec.HashBucket("city", 9), 4, initial="normal"),
        ),
        ("INDICATOR(CATEGORY_ID(age, 70))", spec.OneHot(spec.CategoryId("age", 70))),
        ("CROSS([city, team], 9)", spec.OneHot(spec.Cross(("city", "team"), 9))),
        (
            "CROSS([BUCKETIZE(age, 2), city, HASH(team, 3)], 9)",
            spec.OneHot(spec.Cross((spec.Bucket("age", (44.5,)), "city", spec.HashBucket("team", 3)), 9)),
        ),
        (
            "CONCAT(CROSS([BUCKETIZE(age, 2), city], 9), team)",
            spec.OneHot(
                spec.Concat(
                    (
                        spec.Cross((spec.Bucket("age", (44.5,)), "city"), 9),
                        spec.Vocabulary("team", ("blue", "green", "red")),
                    )
                )
            ),
        ),
        (
            "BUCKETIZE(age / 2, 2) AS old, CROSS([old, city], 9)",
            spec.OneHot(spec.Cross((spec.Bucket(spec.Computed("/", ("age", 2.0)), (22.25,)), "city"), 9)),
        ),
        ("EMBEDDING(CROSS([city, team], 90), 2)", spec.Embedding(spec.Cross(("city", "team"), 90), 2)),
    ],
)
def test_a_function_becomes_its_feature(session: Session, item: str, wanted: spec.Feature) -> None:
    assert column(session, item) == wanted


def test_an_expression_is_computed_from_its_columns(session: Session) -> None:
    found = column(session, "age / (height - 1)")
    assert isinstance(found, spec.Standardize)
    assert str(found.column) == "age / (height - 1)"
    assert spec.with_columns(found, {"age": "years"}).column == spec.Computed(
        "/", ("years", spec.Computed("+", ("height", spec.Computed("-", (1.0,)))))
    )


@pytest.mark.variants(8)
@pytest.mark.parametrize(
    ("item", "wanted"),
    [
        ("LOG(age)", "age"),
        ("LOG(age + 1)", "LN(age + 1)"),
        ("LOG(age / height)", "LN(age / height)"),
        ("LOG(age) - LN(height)", "LN(age + 1) - LN(height)"),
        ("STANDARDIZE(LOG(age))", "LN(age + 1)"),
        ("age/height", "age / height"),
        ("2*age/-height", "2 * age / -height"),
        ("BUCKETIZE((age - 1) / height, 3)", "(age - 1) / height"),
        ("IFNULL(age, 0) * 0.5", "COALESCE(age, 0) * 0.5"),
        ("LEAST(age, height, 9)", "LEAST(LEAST(age, height), 9)"),
        ("PLE(age - (height - 1))", "age - (height - 1)"),
        ("age * height AS product, BUCKETIZE(product, 3)", "age * height"),
        ("age AS years, years / 2", "age / 2"),
        ("IMPUTE(age, 0)", "COALESCE(age, 0)"),
        ("IMPUTE(age)", "COALESCE(age, 44.5)"),
        ("IMPUTE(age, mean)", "COALESCE(age, 44.5)"),
        ("IMPUTE(member, 'most_frequent')", "COALESCE(member, 0)"),
        ("PLE(LOG(IMPUTE(age, median) + 1))", "LN(COALESCE(age, 44.5) + 1)"),
        ("age - MEDIAN(age)", "age - 44.5"),
    ],
)
def test_expressions_as_they_are_reported(session: Session, item: str, wanted: str) -> None:
    assert text.columns(column(session, item)) == wanted


def test_a_column_of_an_expression_is_not_derived_again(session: Session) -> None:
    select = "SELECT age, height, income FROM people TO TRAIN DNNRegressor"
    found = compiled(session, f"{select} COLUMN age / height LABEL income INTO m").spec
    assert len(found.features) == 1
    assert found.columns == ("age", "height")


@pytest.mark.parametrize("session", ["duckdb", "sqlite", "mysql", "postgres"], indirect=True)
def test_an_expression_may_have_the_name_of_a_selected_column(session: Session) -> None:
    item = "age / 2, `age / 2`"
    found = column(session, item, select='age, 7 * age AS "age / 2", income')
    assert found.column == spec.Computed("/", ("age", 2.0))


def test_what_column_does_not_mention_becomes_a_feature_by_its_type(session: Session) -> None:
    found = features(session, "age, city, member, income")
    bins = spec.PiecewiseLinear
    assert [type(feature) for feature in found] == [spec.Standardize, bins, spec.OneHot, spec.Numeric]


def test_what_column_mentions_is_not_derived_again(session: Session) -> None:
    items = "BUCKETIZE(age, 2), age"
    text = f"SELECT age, city, income FROM people TO TRAIN DNNRegressor COLUMN {items} LABEL income INTO m"
    assert [type(feature) for feature in compiled(session, text).spec.features] == [
        spec.OneHot,
        spec.Standardize,
        spec.OneHot,
    ]


@pytest.mark.parametrize(
    ("select", "note"),
    [
        ("1 AS one", "one is left out: it is the same in every training row"),
        ("NULL AS none", "none is left out: it is NULL in every training row"),
        ("flat", "flat is left out: its text is different in every row"),
    ],
)
def test_a_column_that_teaches_nothing_is_left_out_and_the_answer_says_so(
    session: Session, select: str, note: str
) -> None:
    text = f"SELECT age, income, {select} FROM people TO TRAIN DNNRegressor LABEL income INTO m"
    found = compiled(session, text)
    assert {name for each in found.spec.features for name in spec.source_columns(each)} == {"age"}
    assert found.notes[0].startswith(note)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (
            "{'city': city}",
            "it holds several values, city; select them one by one, such as more.city AS city",
        ),
        ("city::BLOB", "it is of type binary, which models cannot read; cast it in the SELECT"),
        (
            "MAP {city: 1}",
            "it is of type map<string, int32>, which models cannot read; cast it in the SELECT",
        ),
        ("INTERVAL (age) DAY", "it is an interval; select its seconds: epoch(more)"),
    ],
)
@pytest.mark.parametrize("session", ["duckdb"], indirect=True)
def test_a_column_of_a_type_that_is_no_feature_is_left_out_and_the_answer_says_why(
    session: Session, value: str, reason: str
) -> None:
    train = f"SELECT age, {value} AS more, income FROM people TO TRAIN DNNRegressor LABEL income INTO m"
    found = compiled(session, train)
    assert found.spec.columns == ("age",)
    assert found.notes[0] == f"more is left out: {reason}"
    [plan] = session.run(f"EXPLAIN {train}")
    assert ("left out", "more", "", reason) in [tuple(row.values()) for row in plan.to_arrow().to_pylist()]


def test_a_column_that_is_named_is_used_even_if_it_teaches_nothing(session: Session) -> None:
    text = "SELECT age, income, flat FROM people TO TRAIN DNNRegressor COLUMN flat LABEL income INTO m"
    assert isinstance(compiled(session, text).spec.features[0], spec.Embedding)


@pytest.mark.soak
def test_a_star_is_every_column_but_the_label(session: Session) -> None:
    text = "SELECT age, height, income FROM people TO TRAIN DNNRegressor COLUMN * LABEL income INTO m"
    assert [feature.column for feature in compiled(session, text).spec.features] == ["age", "height"]  # type: ignore[union-attr]


def test_a_regular_expression_stands_for_the_columns_that_it_matches_whole(session: Session) -> None:
    item = "HASH('t.*|ci', 5)"
    text = (
        f"SELECT age, team, city, income FROM people TO TRAIN DNNRegressor COLUMN {item} LABEL income INTO m"
    )
    assert compiled(session, text).spec.features[0] == spec.OneHot(spec.HashBucket("team", 5))


def test_names_are_found_without_case_and_with_their_table(session: Session) -> None:
    text = "SELECT * FROM people TO TRAIN DNNRegressor COLUMN people.AGE LABEL INCOME INTO m"
    found = compiled(session, text).spec
    assert spec.width(found.features[0]) == 1
    assert found.label.column == "income"


def test_an_alias_names_an_item_that_another_input_of_the_model_has_too(session: Session) -> None:
    found = compiled(
        session,
        "SELECT city, income FROM people TO TRAIN DNNLinearCombinedRegressor "
        "COLUMN INDICATOR(city) AS e FOR wide COLUMN E FOR deep LABEL income INTO m",
    ).spec.inputs

    assert found["wide"] == found["deep"]
    assert [type(each) for each in found["deep"]] == [spec.OneHot]


def test_an_alias_names_a_category_that_other_items_use(session: Session) -> None:
    items = "VOCABULARIZE(team) AS t, EMBEDDING(t, 3), INDICATOR(t)"
    text = f"SELECT team, income FROM people TO TRAIN DNNRegressor COLUMN {items} LABEL income INTO m"
    team = spec.Vocabulary("team", ("blue", "green", "red"))
    assert compiled(session, text).spec.features == (spec.Embedding(team, 3), spec.OneHot(team))


@pytest.mark.soak
def test_a_linear_model_keeps_a_large_category_linear(session: Session) -> None:
    assert column(session, "HASH(city, 900)", model="LinearRegressor") == spec.OneHot(
        spec.HashBucket("city", 900)
    )
    large = column(session, "HASH(city, 90000)", model="LinearRegressor")
    assert large == spec.Embedding(spec.HashBucket("city", 90000), 1)


def test_equal_quantiles_make_fewer_buckets(session: Session) -> None:
    select = "CASE WHEN age > 60 THEN 1 ELSE 0 END AS old, income"
    assert column(session, "BUCKETIZE(old, 10)", select=select) == spec.OneHot(spec.Bucket("old", (0.0, 1.0)))


@pytest.mark.variants(2)
@pytest.mark.parametrize(
    ("label", "model", "classes"),
    [
        ("team", "DNNClassifier", ("blue", "green", "red")),
        ("member", "DNNClassifier", (False, True)),
        ("age % 3", "DNNClassifier", (0, 1, 2)),
        ("0 * height + age % 3", "LinearClassifier", (0, 1, 2)),
    ],
)
def test_classes_are_counted_in_their_natural_order(
    session: Session, label: str, model: str, classes: tuple[object, ...]
) -> None:
    text = f"SELECT height, {label} AS y FROM people TO TRAIN {model} LABEL y INTO m"
    assert compiled(session, text).spec.label == spec.ClassLabel("y", classes)  # type: ignore[arg-type]


def test_more_classes_than_the_rows_show_may_be_asked_for_if_they_are_numbers(session: Session) -> None:
    text = "SELECT height, age % 3 AS y FROM people TO TRAIN DNNClassifier WITH n_classes = 5 LABEL y INTO m"
    assert compiled(session, text).spec.label == spec.ClassLabel("y", (0, 1, 2, 3, 4))


@pytest.mark.parametrize(
    ("label", "model"),
    [("team", "DNNClassifier"), ("member", "DNNClassifier"), ("age % 3", "DNNClassifier"), ("age", "DNNRegressor"),
     ("income", "DNNRegressor"), ("0 * height + age % 3", "DNNRegressor")],
)  # fmt: skip
def test_the_label_chooses_the_model_of_a_family(session: Session, label: str, model: str) -> None:
    found = compiled(session, f"SELECT height, {label} AS y FROM people TO TRAIN DNN LABEL y INTO m")
    assert found.spec.model.name == model
    assert found.notes[0].startswith(f"{model} is chosen: y is ")


def test_a_regression_label_knows_its_scale(session: Session) -> None:
    label = compiled(
        session, "SELECT age, income FROM people TO TRAIN LinearRegressor LABEL income INTO m"
    ).spec.label
    assert isinstance(label, spec.RegressionLabel)
    incomes = [1000 * (20 + i % 50) + i for i in range(1200)]
    assert label.mean == statistics.fmean(incomes)
    assert label.std == pytest.approx(statistics.pstdev(incomes), rel=1e-8)


def test_the_reference_statement_compiles_as_it_stands(session: Session) -> None:
    text = (
        "SELECT age, flat AS address, team AS department, income FROM people\nTRAIN DNNRegressor\n"
        "COLUMN age, vocabularize(department), bucketize(address, 1000),\nTARGET income,\n"
        "WITH hidden_layers=[100, 150, 50],\n     dist_strategy=mirrored, gpus=8\nINTO my_first_model"
    )
    found = compiled(session, text)
    assert found.spec.model.params["hidden_units"] == (100, 150, 50)
    assert found.spec.output.name == "my_first_model"
    assert found.notes == (
        "dist_strategy has no effect: the strategy is chosen automatically",
        "gpus has no effect: devices are found automatically",
    )


def test_settings_that_are_written_are_taken_and_others_follow_the_rows(session: Session) -> None:
    text = (
        "SELECT age, income FROM people TO TRAIN DNNRegressor WITH optimizer = SGD, optimizer.momentum = 0.5, "
        "learning_rate = 0.1, train.seed = 7, epochs = 3, validation.metrics = [mae, RMSE], "
        "loss = huber, loss.delta = 2 LABEL income INTO m"
    )
    found = compiled(session, text).spec
    assert found.optimizer == spec.Component(
        "sgd", {"learning_rate": 0.1, "momentum": 0.5, "nesterov": False}
    )
    assert found.loss == spec.Component("huber", {"delta": 2.0})
    assert found.metrics == ("mae", "rmse")
    assert (found.training.seed, found.training.epochs, found.training.batch_size) == (7, 3, 64)


@pytest.mark.parametrize(("clause", "held_out"), [("", 120), ("VALIDATE 0.25", 300), ("VALIDATE 0", 0)])
def test_a_tenth_is_held_out_unless_the_statement_says_otherwise(
    session: Session, clause: str, held_out: int
) -> None:
    found = compiled(
        session, f"SELECT age, income FROM people TO TRAIN DNNRegressor {clause} LABEL income INTO m"
    )
    assert (found.spec.rows.training, found.spec.rows.validation) == (1200 - held_out, held_out)


def test_a_spec_of_a_compilation_says_that_rows_are_not_pinned_and_round_trips(session: Session) -> None:
    found = compiled(
        session, "SELECT age, city, income FROM people TO TRAIN DNNRegressor LABEL income INTO m"
    ).spec
    assert not found.rows.pinned
    assert spec.from_json(spec.to_json(found)) == found
    assert (
        msgspec.json.decode(spec.to_json(found))["query"]["select"] == "SELECT age, city, income FROM people"
    )


@pytest.mark.parametrize(
    ("rows", "batch", "epochs"), [(1, 16, 200), (150, 16, 200), (20_000, 128, 13), (10**6, 512, 2)]
)
def test_defaults_make_about_two_thousand_steps(rows: int, batch: int, epochs: int) -> None:
    assert USUAL_LENGTH.batch_size(rows) == batch
    assert USUAL_LENGTH.number_of_epochs(rows, batch) == epochs


@pytest.mark.parametrize(
    ("rows", "batch", "epochs"), [(90, 32, 200), (450, 32, 40), (20_000, 256, 38), (10**6, 512, 8)]
)
def test_a_dense_network_takes_larger_minibatches_and_more_steps(rows: int, batch: int, epochs: int) -> None:
    length = MODELS.entries["DNNRegressor"].length
    assert length.batch_size(rows) == batch
    assert length.number_of_epochs(rows, batch) == epochs


@pytest.mark.soak
def test_a_wide_table_has_more_weight_decay_by_default_and_the_plan_says_so(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sqlflow_edl.analysis.models.base.WIDE", 2)
    train = "FROM people TO TRAIN DNNRegressor{} LABEL income INTO m"
    found = {
        case: compiled(session, f"SELECT {columns}, income {train.format(written)}").spec.optimizer.params
        for case, columns, written in (
            ("wide", "age, height, city", ""),
            ("narrow", "age, height", ""),
            ("written", "age, height, city", " WITH optimizer.weight_decay = 0.1"),
            ("other", "age, height, city", " WITH optimizer = adamw"),
        )
    }
    assert {case: params["weight_decay"] for case, params in found.items()} == {
        "wide": 0.2,
        "narrow": 0.02,
        "written": 0.1,
        "other": 0.004,
    }
    [statement] = session.parse(f"SELECT age, height, city, income {train.format('')}")
    rows = session.plan(statement).to_arrow().to_pylist()
    [why] = [row["why"] for row in rows if row["name"] == "weight_decay"]
    assert why == "default for 3 columns"


@pytest.mark.soak
def test_the_network_of_a_wide_table_leaves_out_more_units_to_learn_classes(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sqlflow_edl.analysis.models.base.WIDE", 2)
    train = "SELECT {} FROM people TO TRAIN DNN{} LABEL {} INTO m"
    found = {
        case: compiled(session, train.format(columns, written, label)).spec.model.params["dropout"]
        for case, columns, written, label in (
            ("wide", "age, height, city, team", "", "team"),
            ("narrow", "age, height, team", "", "team"),
            ("written", "age, height, city, team", " WITH dropout = 0.2", "team"),
            ("number", "age, height, city, income", "", "income"),
        )
    }
    assert found == {"wide": 0.3, "narrow": 0.1, "written": 0.2, "number": 0.0}
    [statement] = session.parse(train.format("age, height, city, team", "", "team"))
    rows = session.plan(statement).to_arrow().to_pylist()
    [why] = [row["why"] for row in rows if row["name"] == "dropout"]
    assert why == "default for 3 columns"
