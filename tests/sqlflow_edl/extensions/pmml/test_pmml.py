"""Trees as PMML: the command and EXPORT MODEL write them, and what has no form is named.

`tests/sqlflow_edl/test_skew.py` compares the predictions of files with the statement PREDICT.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from edl.errors import SQLFlowError
from edl.models.archive import read_archive
from sqlflow_edl.cli.main import main
from sqlflow_edl.extensions.pmml.document import encode_pmml
from sqlflow_edl.extensions.pmml.xml import Xml
from sqlflow_edl.session.session import Session
from tests.pmml import Pmml
from tests.sessions import open_in_folder
from tests.trained import forest_of

TABLE = """CREATE TABLE odd AS SELECT i % 7 / 2.0 AS x,
[' a', '', 'a ', 'b&<"', 'é', NULL][1 + i % 6] AS t, CASE WHEN i % 11 > 0 THEN i % 5 END AS k, i % 3 AS kind,
(i % 7 + i % 6) > 5 AS yes
FROM range(240) AS r(i)"""
TRAIN = """SELECT {columns} FROM odd TO TRAIN {model} WITH {settings} {clause} LABEL {label} INTO {name}"""


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    with open_in_folder(tmp_path_factory.mktemp("pmml")) as opened:
        opened.run(TABLE)
        yield opened


def train(
    session: Session,
    name: str,
    columns: str,
    model: str = "lightgbm.gbdt",
    settings: str = "",
    clause: str = "",
    label: str = "kind",
) -> None:
    rounds = "train.num_boost_round = 4" if "gb" in model else "epochs = 1, model.framework = torch"
    session.run(
        TRAIN.format(
            columns=f"{columns}, {label}",
            model=model,
            settings=rounds + settings,
            clause=clause,
            label=label,
            name=name,
        )
    )


def write_document(session: Session, name: str, folder: Path) -> Pmml:
    file = folder / f"{name}.zip"
    session.registry.load(name, file)
    archive = read_archive(file)
    document = folder / f"{name}.pmml"
    document.write_text(encode_pmml(archive, name, lambda: forest_of(archive)), encoding="utf-8")
    return Pmml(document)


@pytest.mark.parametrize("library", ["lightgbm", "xgboost"])
def test_texts_with_spaces_marks_and_nothing_are_the_categories_that_they_were(
    session: Session, tmp_path: Path, library: str
) -> None:
    train(
        session,
        f"odd_{library}",
        "x, t, k",
        model=f"{library}.gb{'dt' if library == 'lightgbm' else 'tree'}",
        clause="COLUMN x, t, VOCABULARIZE(k), BUCKET(x, [1, 2])",
    )
    document = write_document(session, f"odd_{library}", tmp_path)
    query = "SELECT x, t, k FROM odd UNION SELECT 1.5, 'never seen', 99 UNION SELECT NULL, 'a', NULL"
    [result] = session.run(f"{query} TO PREDICT USING odd_{library}")
    for row in result.to_arrow().to_pylist():
        given = {"x": row["x"] and float(row["x"]), "t": row["t"], "k": row["k"] and float(row["k"])}
        given = {name: float(value) if value == 0 else value for name, value in given.items()}
        found = document.outputs(given)
        assert found["kind"] == row["kind"]
        for name in range(3):
            assert found[f"probability({name})"] == pytest.approx(row[f"kind_prob_{name}"], rel=1e-6)


def test_a_threshold_decides_in_an_output_of_its_own(session: Session, tmp_path: Path) -> None:
    train(session, "decided", "x, t", settings=", validation.threshold = f1", label="yes", clause="")
    document = write_document(session, "decided", tmp_path)
    [result] = session.run("SELECT DISTINCT x, t FROM odd TO PREDICT USING decided")
    for row in result.to_arrow().to_pylist():
        found = document.outputs({"x": float(row["x"]), "t": row["t"]})
        assert (
            found["predicted_yes"] == ("true" if row["yes"] else "false")
            or found["predicted_yes"] == row["yes"]
        )


@pytest.mark.parametrize("library", ["lightgbm", pytest.param("xgboost", marks=pytest.mark.soak)])
def test_the_command_writes_a_file(
    session: Session, tmp_path: Path, library: str, capsys: pytest.CaptureFixture[str]
) -> None:
    train(session, f"of_{library}", "x, t", model=f"{library}.gb{'dt' if library == 'lightgbm' else 'tree'}")
    arguments = ["export", f"of_{library}", "--source", session.source.url, "-o", str(tmp_path / "m.pmml")]
    session.source.release()
    assert main(arguments) == 0
    assert "wrote a PMML model of the columns that its trees compare to" in capsys.readouterr().err
    assert Pmml(tmp_path / "m.pmml").target == "kind"
    assert main(arguments) != 0
    assert "is there already" in capsys.readouterr().err


def test_export_model_writes_a_file(session: Session, tmp_path: Path) -> None:
    train(session, "exported", "x, t")
    session.run(f"EXPORT MODEL exported OPTIONS(URI = '{tmp_path}/m.pmml')")
    assert Pmml(tmp_path / "m.pmml").target == "kind"


@pytest.mark.parametrize(
    ("name", "how", "message"),
    [
        ("network", {"model": "DNNClassifier"}, "PMML is written for trees"),
        ("hashed", {"clause": "COLUMN x, HASH(t, 10)"}, "HASH of column t has no form in PMML"),
        ("crossed", {"clause": "COLUMN CROSS([t, x], 10)"}, "CROSS of column t and x has no form in PMML"),
    ],
)
def test_what_has_no_form_is_named(
    session: Session, tmp_path: Path, name: str, how: dict[str, str], message: str
) -> None:
    train(session, name, "x, t", **how)
    with pytest.raises(SQLFlowError, match=message):
        write_document(session, name, tmp_path)


def test_ids_that_a_double_cannot_tell_apart_have_no_form(session: Session, tmp_path: Path) -> None:
    ids = "CAST(2 * x AS BIGINT) + 9007199254740992 AS n"
    train(session, "large", ids, "xgboost.gbtree", clause="COLUMN VOCABULARIZE(n)", label="yes")
    with pytest.raises(SQLFlowError, match="column n has no form in PMML"):
        write_document(session, "large", tmp_path)


def test_a_character_that_xml_cannot_have_is_named() -> None:
    xml = Xml()
    with pytest.raises(SQLFlowError, match=r"'a\\x00b' has the character"):
        xml.leaf("value", "a\0b")
