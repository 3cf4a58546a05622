"""Files of a model from its page: the archive, and ONNX."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from edl.models.archive import read_archive
from edl.models.registry.model_store import ModelStore
from sqlflow_edl.extensions.serving.model import load_model
from sqlflow_edl.extensions.web.downloads import Downloads
from sqlflow_edl.extensions.web.guard import FIELD
from sqlflow_edl.extensions.web.model_reader import ModelReader
from tests.sqlflow_edl.extensions.web.conftest import Browser


def test_the_archive_of_a_version_is_a_file(browser: Browser) -> None:
    assert 'href="/archive?model=dear%401"' in browser.get("/models/dear@1").text
    found = browser.get("/archive?model=dear%401")
    assert found.headers["content-disposition"] == 'attachment; filename="dear_1.zip"'
    assert read_archive(found.body).lineage.statement.count("num_boost_round = 5")


@pytest.mark.soak
def test_a_file_that_was_sent_is_gone(source: str, here: None) -> None:
    file, remove = Downloads(ModelStore(source)).archive(
        ModelReader(ModelStore(source)).model("dear").version
    )
    assert load_model(file).archive.spec.label.column == "dear"
    remove()
    assert not file.parent.exists()


def test_a_failed_training_has_no_files(browser: Browser) -> None:
    assert browser.get("/archive?model=broken").status == 404
    assert "/archive" not in browser.get("/models/broken").text
    assert browser.post("/onnx?model=broken", {FIELD: browser.access.form_token}).status == 404


def test_only_a_form_of_these_pages_exports(browser: Browser) -> None:
    assert browser.get("/onnx?model=dear").status == 405
    assert browser.post("/onnx?model=dear", {}).status == 403


def test_beyond_this_machine_files_need_the_token(browse: Callable[..., Browser]) -> None:
    found = browse("long-token", local=False).get("/archive?model=dear", host="box.example")
    assert (found.status, found.headers["location"]) == (303, "/login")


@pytest.mark.soak
def test_a_model_is_exported_as_onnx(browser: Browser) -> None:
    pytest.importorskip("onnx")
    found = browser.post("/onnx?model=costs", {FIELD: browser.access.form_token})
    assert found.status == 200
    assert found.headers["content-disposition"] == 'attachment; filename="costs_1.onnx"'
    assert b"amount" in found.body


@pytest.mark.soak
def test_what_has_no_form_as_onnx_is_told(browser: Browser, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sqlflow_edl.extensions.web.downloads.SECONDS", 0.01)
    found = browser.post("/onnx?model=costs", {FIELD: browser.access.form_token})
    assert found.status == 500
    assert "the export takes more than 0 s" in found.text
