"""What is offered at the cursor, which stands at the bar."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document

from sqlflow_edl.console.completion import Completing
from sqlflow_edl.console.connection import ConsoleConnection
from sqlflow_edl.session.observer import Observer
from sqlflow_edl.session.session import Session
from sqlflow_edl.syntax.forms import STATEMENTS, StatementForm

TABLES = """
    CREATE TABLE flowers AS SELECT 1 AS size, 'red' AS "a colour";
    CREATE TABLE shops AS SELECT 1 AS city, 2.5 AS turnover;
"""


@pytest.fixture(scope="module")
def connection(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConsoleConnection]:
    def opener(source: str, observer: Observer) -> Session:
        session = Session(source)
        list(session.run(TABLES))
        return session

    connection = ConsoleConnection(opener, "duckdb:")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        connection.get_catalog(None)
    connection.catalog.models = ("shop.sales", "colours")
    yield connection
    connection.close()


def offered(text: str, connection: ConsoleConnection) -> list[str]:
    before, _, after = text.partition("|")
    document = Document(before + after, len(before))
    found = Completing(lambda: connection).get_completions(document, CompleteEvent())
    return [each.text for each in found]


@pytest.mark.variants(40)
@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("SE|", ["SELECT"]),
        ("se|", ["select"]),
        ("SELECT 1; SHOW M|", ["MODELS"]),
        ("DESCRIBE fl|", ["flowers"]),
        ("SHOW|", ["SHOW MODELS", "SHOW TRAIN", "SHOW CURVE"]),
        ("SELECT * FROM |", ["flowers", "shops"]),
        ("SELECT * FROM fl|", ["flowers"]),
        ("SELECT | FROM shops", ["city", "turnover", "shops"]),
        ("SELECT turn| FROM shops", ["turnover"]),
        ("SELECT s.| FROM shops AS s JOIN flowers f ON s.city = f.size", ["s.city", "s.turnover"]),
        ("SELECT * FROM shops s JOIN flowers f ON f.si|", ["f.size"]),
        ("SELECT * FROM flowers WHERE |", ["size", '"a colour"', "flowers"]),
        ("SELECT * FROM flowers WHE|", ["WHERE"]),
        ("SELECT * FROM flowers TO |", []),
        ("SELECT * FROM flowers TO T|", ["TRAIN"]),
        ("SELECT * FROM flowers to tr|", ["train"]),
        ("SELECT * FROM flowers TO TRAIN DNNC|", ["DNNClassifier"]),
        ("SELECT * FROM flowers TRAIN DeepF|", ["DeepFMClassifier", "DeepFMRegressor", "DeepFM"]),
        ("SELECT * FROM flowers TRAIN DeepE|", ["DeepEmbeddedClustering"]),
        ("SELECT * FROM flowers TO TRAIN DNNClassifier WI|", ["WITH"]),
        ("SELECT * FROM flowers TO TRAIN DNN WITH hidden|", ["model.hidden_units"]),
        ("SELECT * FROM flowers TO TRAIN DNN WITH model.framework = |", ["keras", "torch"]),
        ("SELECT * FROM flowers TO TRAIN DNN WITH train.shuffle = F|", ["FALSE"]),
        ("SELECT * FROM flowers TO TRAIN DNN WITH seed = 1, optimizer = sg|", ["sgd"]),
        ("SELECT * FROM flowers TO TRAIN DNN WITH seed = 1 LA|", ["LABEL"]),
        ("SELECT * FROM shops TO TRAIN DNN LABEL tu|", ["turnover"]),
        ("SELECT * FROM shops TO TRAIN DNN LABEL city, tu|", ["turnover"]),
        ("SELECT * FROM shops TO TRAIN DNN COLUMN city, BUCKETI|", ["BUCKETIZE"]),
        ("SELECT * FROM shops TO TRAIN DNN COLUMN BUCKETIZE(tu|", ["turnover"]),
        ("SELECT * FROM shops TO TRAIN DNN COLUMN LOG(1 + tu|", ["turnover"]),
        ("SELECT * FROM shops TO TRAIN DNN COLUMN city, COAL|", ["COALESCE"]),
        ("SHOW FEATURES FOR co|", ["colours"]),
        ("SELECT * FROM shops TO TRAIN DNN COLUMN city, features(co|", ["colours"]),
        ("SELECT * FROM shops TO TRAIN DNN LABEL city INTO sh|", ["shop.sales"]),
        ("SELECT * FROM shops TO PREDICT sh|", ["shops"]),
        ("SELECT * FROM shops TO PREDICT shops.city USING |", ["shop.sales", "colours"]),
        ("SELECT * FROM shops TO PREDICT USING c|", ["colours"]),
        ("SELECT * FROM shops TO PREDICT shops.city USING colours A|", ["APPEND"]),
        ("SELECT * FROM shops TO EVALUATE |", ["shop.sales", "colours"]),
        ("SELECT * FROM shops TO EVALUATE W|", ["WITH"]),
        ("SELECT * FROM shops TO EVALUATE WITH evaluate.pro|", ["evaluate.probability"]),
        ("SELECT * FROM shops TO EVALUATE WITH evaluate.prediction = ci|", ["city"]),
        ("SELECT * FROM shops TO EVALUATE colours WITH evaluate.bat|", ["evaluate.batch_size"]),
        ("SELECT * FROM shops TO EVALUATE colours B|", ["BY"]),
        ("SELECT * FROM shops TO EVALUATE colours BY ci|", ["city"]),
        ("SELECT * FROM shops TO EXPLAIN c|", ["colours"]),
        ("SELECT * FROM shops TO EXPLAIN colours IN|", ["INTO"]),
        ("SELECT * FROM shops TO EXPLAIN colours INTO sh|", ["shops"]),
        ("SELECT * FROM shops TO EXPLAIN colours WITH sam|", ["explain.samples"]),
        ("SELECT * FROM shops TO ANALYZE colours WITH sam|", ["explain.samples"]),
        ("SELECT * FROM shops TO EXPLAIN colours USING T|", ["TreeExplainer"]),
        ("SELECT * FROM shops TO EXPLAIN colours USING TreeExplainer I|", ["INTO"]),
        ("SELECT * FROM shops TO MAX|", ["MAXIMIZE"]),
        ("SELECT * FROM shops TO MAXIMIZE tu|", ["turnover"]),
        ("SELECT * FROM shops TO MAXIMIZE SUM(x * tu|", ["turnover"]),
        ("SELECT * FROM shops TO MAXIMIZE SUM(x) CONS|", ["CONSTRAINT"]),
        ("SELECT * FROM shops TO MINIMIZE SUM(x) CONSTRAINT x <= tu|", ["turnover"]),
        ("SELECT * FROM shops TO MAXIMIZE SUM(x) WITH sol|", ["solver.time_limit"]),
        ("SELECT * FROM shops TO MAXIMIZE SUM(x) WITH var_type = Bi|", ["Binary"]),
        ("SELECT * FROM shops TO MAXIMIZE SUM(x) WITH var_type = Reals USING gl|", ["glpk"]),
        ("SELECT * FROM shops TO MAXIMIZE SUM(x) WITH var_type = Reals INTO sh|", ["shops"]),
        ("SELECT * FROM shops TO RUN se|", ["setup.py"]),
        ("SELECT * FROM shops TO RUN setup.py C|", ["CMD"]),
        ("SELECT * FROM shops TO RUN setup.py CMD 'x' INTO sh|", ["shops"]),
        ("DESCRIBE MODEL |", ["shop.sales", "colours"]),
        ("DROP MODEL IF EXISTS co|", ["colours"]),
        ("SET MODEL co|", ["colours"]),
        ("SET MODEL colours A|", ["ACTIVE"]),
        ("SET MODEL colours T|", ["TAG"]),
        ("DROP MODEL colours T|", ["TAG"]),
        ("SELECT 'FROM |", []),
        ("SELECT 1 -- FROM |", []),
        ("SELECT 1 -- ;\n FR|", ["FROM"]),
        ("SELECT * FROM flowers TO TRAIN DNN WITH mhu|", ["model.hidden_units"]),
        ("SELECT to| FROM shops", ["turnover"]),
        ("SELECT rv| FROM shops", []),
        ("/mo|", ["/models", "/model"]),
        ("/mls|", ["/models"]),
        ("/watch 0.5 SELECT * FROM fl|", ["flowers"]),
        ("/watch SELECT | FROM shops", ["city"]),
        ("/fs top SELECT turn| FROM shops", ["turnover"]),
        ("/fs top |", []),
        ("/watch 12|", []),
        ("/d |", ["flowers", "shops"]),
        ("/model c|", ["colours"]),
        ("/help TR|", ["TRAIN", "TRIALS", "SHOW TRAIN", "SHOW TRIALS"]),
        ("/format mar|", ["markdown"]),
        ("/status |", []),
    ],
)
def test_what_fits_the_place_is_offered(text: str, first: list[str], connection: ConsoleConnection) -> None:
    assert offered(text, connection)[: max(1, len(first))] == first


def test_an_attribute_comes_with_its_line_of_documentation(connection: ConsoleConnection) -> None:
    text = "SELECT * FROM flowers TO TRAIN DNN WITH epoc"
    [found] = Completing(lambda: connection).get_completions(Document(text), CompleteEvent())
    assert found.text == "train.epoch"
    assert "Passes over the training rows" in found.display_meta_text


def test_the_attributes_belong_to_the_written_optimizer(connection: ConsoleConnection) -> None:
    sgd = offered("SELECT * FROM flowers TO TRAIN DNN WITH optimizer = sgd, optimizer.|", connection)
    every = offered("SELECT * FROM flowers TO TRAIN DNN WITH optimizer.|", connection)
    assert "optimizer.momentum" in sgd
    assert "optimizer.learning_rate" in sgd
    assert set(sgd) < set(every)


def test_tables_that_are_made_meanwhile_are_offered_when_they_are_looked_for_again(
    connection: ConsoleConnection,
) -> None:
    with connection.session() as session:
        list(session.run("CREATE TABLE IF NOT EXISTS gardens AS SELECT 1 AS x"))
    connection.refresh()
    try:
        connection.get_catalog(None)
        assert offered("SELECT * FROM gar|", connection) == ["gardens"]
    finally:
        with connection.session() as session:
            list(session.run("DROP TABLE gardens"))
            connection.catalog.look(session)
            connection.catalog.models = ("shop.sales", "colours")


@pytest.mark.parametrize("form", STATEMENTS.values(), ids=STATEMENTS)
def test_the_words_of_a_form_are_offered_where_its_example_has_them(
    form: StatementForm, connection: ConsoleConnection
) -> None:
    words = re.findall(r"\b[A-Z]{2,}\b", form.form)
    written = [each for each in re.finditer(r"\b[A-Z]{2,}\b", form.example) if each[0] in words]
    lacking = [
        each[0]
        for each in written
        if not any(
            offer.startswith(each[0]) for offer in offered(f"{form.example[: each.end() - 1]}|", connection)
        )
    ]
    assert written and not lacking
