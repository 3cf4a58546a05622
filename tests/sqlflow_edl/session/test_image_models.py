"""Models of an image: TRAIN, PREDICT, EVALUATE and EXPLAIN in containers, for which a stand-in for docker is here."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from edl.errors import ErrorList, JobError, SQLFlowError
from edl.program import image_models
from sqlflow_edl.session.session import Session
from tests.databases import fill
from tests.engine import write_engine
from tests.mariadb import Server
from tests.sessions import open_in_folder

IMAGE = "registry.example/team/nets:1"
NETS = """
from torch import nn


class Net(nn.Module):
    def __init__(self, in_features, outputs, units=4):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(in_features, units), nn.ReLU(), nn.Linear(units, outputs))

    def forward(self, rows):
        return self.layers(rows)
"""
TRAIN = (
    f"SELECT * FROM points TO TRAIN {IMAGE}/{{}} WITH model.units = 8, train.epoch = {{}} LABEL far INTO net"
)


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The model path of the image, which is no folder of this process."""
    folder = tmp_path_factory.mktemp("image")
    (folder / "nets.py").write_text(NETS)
    (folder / "more").mkdir()
    (folder / "more" / "__init__.py").write_text("")
    (folder / "more" / "twice.py").write_text(NETS.replace("class Net", "class Twin"))
    (folder / "twins.py").write_text(NETS.replace("class Net", "class Twin"))
    return folder


@pytest.fixture(scope="module")
def engine(programs: Path, tmp_path_factory: pytest.TempPathFactory, repository: Path) -> Iterator[Path]:
    """The file with the last command of the engine."""
    folder = tmp_path_factory.mktemp("engine")
    log = write_engine(folder, repository, programs)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
        patch.setattr("edl.run.containers.ENGINES", ("docker",))
        patch.setenv("SQLFLOW_IMAGES", "registry.example/team/")
        yield log


@pytest.fixture(scope="module")
def session(engine: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    draw = np.random.default_rng(2)
    x, y = draw.normal(size=(2, 400))
    with open_in_folder(tmp_path_factory.mktemp("session")) as opened:
        fill(opened, "points", pa.table({"x": x, "y": y, "far": x + y > 0.5}))
        opened.run(TRAIN.format("Net", 60))
        yield opened


def rows(session: Session, text: str) -> list[dict[str, object]]:
    return list(session.run(text))[-1].to_arrow().to_pylist()


def test_a_model_of_an_image_predicts_in_the_image(session: Session, engine: Path) -> None:
    [figures] = rows(session, "SELECT * FROM points TO EVALUATE net WITH validation.metrics = accuracy")
    session.run("SELECT * FROM points TO PREDICT said.far USING net")
    [share] = rows(
        session, "SELECT AVG((p.far = q.far)::INT) AS right FROM said p JOIN points q ON p.x = q.x"
    )
    assert isinstance(share["right"], float)
    assert share["right"] > 0.9
    assert share["right"] == pytest.approx(figures["accuracy"])
    command = json.loads(engine.read_text())
    assert IMAGE in command
    assert "--network=none" in command
    [shared] = [text for text in command if text.startswith("--volume=")]
    assert "/jobs/" in shared
    assert not [text for text in command if "PATH" in text]


def test_a_model_of_an_image_is_explained_in_the_image(session: Session) -> None:
    assert {row["feature"] for row in rows(session, "SELECT * FROM points LIMIT 50 TO EXPLAIN net")} == {
        "x",
        "y",
    }


def test_the_image_is_kept_with_the_model(session: Session) -> None:
    described = {row["name"]: row["value"] for row in rows(session, "DESCRIBE MODEL net")}
    assert (described["model"], described["image"]) == ("nets.Net", IMAGE)


def test_a_search_tries_models_of_an_image(session: Session) -> None:
    [result] = session.run(
        f"SELECT x, y, far FROM points TO TRAIN {IMAGE}/nets.Net WITH model.units = CANDIDATES(2, 8), "
        "train.epoch = 4 LABEL far INTO searched"
    )
    assert len(result.trials) == 2
    assert len(rows(session, "SELECT * FROM points LIMIT 3 TO PREDICT USING searched")) == 3


@pytest.mark.parametrize(
    ("model", "message", "hint"),
    [
        ("Nett", "no module of the image .* defines Nett", "Net"),
        ("Twin", "several modules of the image .* define Twin: more.twice, twins", "more.twice.Twin"),
        ("DNNClassifier", "is a model of this package", "write DNNClassifier"),
    ],
)
def test_a_wrong_class_is_an_error_with_the_right_one(
    session: Session, model: str, message: str, hint: str
) -> None:
    with pytest.raises(SQLFlowError, match=message) as raised:
        session.run(TRAIN.format(model, 1))
    assert hint in str(raised.value.hint)
    assert raised.value.span is not None


def test_a_parameter_is_checked_by_the_source_in_the_image(session: Session) -> None:
    with pytest.raises(SQLFlowError, match=r"unknown attribute model\.unit") as raised:
        session.run(TRAIN.format("Net", 1).replace("units", "unit"))
    errors = raised.value.errors if isinstance(raised.value, ErrorList) else (raised.value,)
    assert "model.units" in str(errors[0].hint)


def test_an_image_must_be_permitted_for_every_use(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SQLFLOW_IMAGES", "other/")
    for text in (
        "SELECT * FROM points TO PREDICT USING net",
        TRAIN.format("Net", 1).replace("nets:1", "new:1"),
    ):
        with pytest.raises(SQLFlowError, match="no statement may run the image registry"):
            session.run(text)


def test_an_absent_engine_and_an_absent_image_are_errors(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(SQLFlowError, match=r"docker cannot run the image .*: Unable to find image"):
        session.run("SELECT x, far FROM points TO TRAIN registry.example/team/absent/Net LABEL far INTO m")
    monkeypatch.setattr("edl.run.containers.ENGINES", ())
    with pytest.raises(SQLFlowError, match="which docker or podman runs, and neither is here"):
        session.run("SELECT x, far FROM points TO TRAIN registry.example/team/other/Net LABEL far INTO m")


def test_workers_of_a_model_of_an_image_need_a_cluster(session: Session) -> None:
    with pytest.raises(SQLFlowError, match="runs one process here") as raised:
        session.run(TRAIN.format("Net", 1).replace("WITH", "WITH train.num_workers = 2,"))
    assert "--on kubernetes" in str(raised.value.hint)


def test_a_process_outside_of_the_image_says_where_the_model_is(session: Session) -> None:
    with pytest.raises(JobError, match=rf"nets\.Net is a model of the image {IMAGE}"):
        _load_here(session)


def _load_here(session: Session) -> None:
    from edl.program.user_model import with_digest

    [statement] = session.parse("DESCRIBE MODEL net")
    assert statement.model
    with_digest(session.compiler.load_spec(statement.model))


def test_sources_survive_their_lines() -> None:
    sources = image_models.ImageSources(
        image_models.present_build(), {"a.py": "x = 1\n" * 5000, "b/c.py": "é"}
    )
    lines = list(image_models.to_lines(sources))
    assert image_models.from_lines(["noise", *lines, ""], IMAGE) == sources


@pytest.mark.parametrize("lines", [[], ["edl-image-sources ????"], ["edl-image-sources aGFsbG8="]])
def test_other_output_is_no_list_of_models(lines: list[str]) -> None:
    with pytest.raises(SQLFlowError, match="does not list its models"):
        image_models.from_lines(lines, IMAGE)


def test_a_path_that_leaves_the_folder_is_refused(tmp_path: Path) -> None:
    sources = image_models.ImageSources(image_models.present_build(), {"../evil.py": ""})
    with pytest.raises(SQLFlowError, match="in no folder of its model path"):
        sources.write(tmp_path)


@pytest.mark.soak
def test_rows_of_a_server_are_copied_for_the_container(engine: Path, mariadb: Server) -> None:
    with Session(mariadb.url(), create=True) as opened:
        draw = np.random.default_rng(3)
        x, y = draw.normal(size=(2, 120))
        fill(opened, "points", pa.table({"x": x, "y": y, "far": x + y > 0.5}))
        opened.run(TRAIN.format("Net", 2))
        opened.run("SELECT * FROM points TO PREDICT said.far USING net")
        assert rows(opened, "SELECT COUNT(*) AS n FROM said") == [{"n": 120}]
        assert not [name for name in opened.source.tables() if name.startswith("edl_rows")]
