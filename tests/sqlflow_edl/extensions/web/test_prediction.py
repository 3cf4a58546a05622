"""The form that predicts a row: its fields, the prediction with its reasons, and what it refuses."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from edl.models.registry.model_store import ModelStore
from sqlflow_edl.extensions.web import prediction
from sqlflow_edl.extensions.web.guard import FIELD
from sqlflow_edl.extensions.web.model_reader import ModelReader
from sqlflow_edl.extensions.web.prediction import RowPredictor
from sqlflow_edl.extensions.web.prediction_form import read_row
from sqlflow_edl.session.session import Session
from tests.sqlflow_edl.extensions.web.conftest import Answer, Browser


def asked(browser: Browser, model: str, **fields: str) -> Answer:
    """Send the form of a model as its script does."""
    return browser.post(f"/predict?model={model}", {FIELD: browser.access.form_token, **fields}, x_part="yes")


def test_the_page_of_a_model_has_a_field_for_each_column_with_a_usual_value(browser: Browser) -> None:
    text = browser.get("/models/costs").text
    form = text.partition('<form class="prediction"')[2].partition("</form>")[0]
    assert re.findall(r'<label for="c\d">(\w+) ', form) == ["amount", "city", "is_new"]
    assert re.search(r'<input type="text"[^>]+name="c0" value="[\d.]+"', form)
    assert re.search(
        r'<input type="range"[^>]+data-of="c0"[^>]+min="[\d.-]+" max="[\d.]+" step="[\d.]+"', form
    )
    assert re.search(r'<option value="(TRUE|FALSE)" selected>', form)


def test_a_row_is_predicted_with_its_reasons(browser: Browser) -> None:
    low, high = asked(browser, "costs", c0="1"), asked(browser, "costs", c0="90")
    assert low.status == 200
    assert low.text != high.text
    assert re.search(r"cost is [\d.-]+, on average [\d.-]+: ", low.text)
    assert 'aria-label="Contributions: ' in low.text
    assert "90% interval" in low.text
    assert "<html" not in low.text


def test_classes_are_predicted_with_their_probabilities(browser: Browser) -> None:
    text = asked(browser, "%3Cb%3Ekinds", c0="5").text
    assert re.search(r'aria-label="Probability: (far|large|near) [\d.]+ %, ', text)
    assert "&lt;script&gt;alert(1)&lt;/script&gt; 5" in text
    assert "<script>" not in text


def test_without_the_script_the_form_comes_back_as_a_page_with_its_values(browser: Browser) -> None:
    found = browser.post("/predict?model=costs", {FIELD: browser.access.form_token, "c0": "7.25"})
    assert found.status == 200
    assert 'name="c0" value="7.25"' in found.text
    assert "cost is" in found.text
    assert "cost is" not in browser.get("/predict?model=costs").text


def test_a_value_of_another_kind_is_named(browser: Browser) -> None:
    assert "&#39;much&#39; is not a number" in asked(browser, "costs", c0="much").text


def test_a_form_of_another_site_predicts_nothing(browser: Browser) -> None:
    assert browser.post("/predict?model=costs", {"c0": "1"}).status == 403
    form = {FIELD: browser.access.form_token}
    assert browser.post("/predict?model=costs", form, sec_fetch_site="cross-site").status == 403


def test_a_model_without_an_archive_has_no_form(browser: Browser) -> None:
    assert '<form class="prediction"' not in browser.get("/models/broken").text
    assert browser.get("/predict?model=broken").status == 404


def test_a_model_that_is_too_large_is_not_loaded(browser: Browser, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prediction, "MOST_BYTES", 100)
    assert "too much for this page" in asked(browser, "costs", c0="1").text


def test_more_predictions_than_wait_are_refused(source: str) -> None:
    reader, predictor = ModelReader(ModelStore(source)), RowPredictor(ModelStore(source))
    found = reader.model("costs")
    assert found.archive is not None
    row = read_row(found.archive, {"c0": "1"})
    for _ in range(prediction.MOST_WAITING):
        predictor._room.acquire()
    with pytest.raises(Exception, match="makes other predictions"):
        predictor.predict(found.version, row, found.usual)


@pytest.mark.soak
def test_the_reasons_equal_explain(browser: Browser, source: str, tmp_path: Path) -> None:
    statement = "SELECT 7.25 AS amount, 'Bonn' AS city, TRUE AS is_new TO EXPLAIN costs"
    with Session(source) as session:
        [explained] = session.run(statement)
    words = re.escape(explained.message)
    assert re.search(words, asked(browser, "costs", c0="7.25", c1="Bonn", c2="TRUE").text)


@pytest.mark.soak
def test_the_page_of_the_form_ends_as_all_pages_do(browser: Browser) -> None:
    footer = re.compile("<footer>.*</footer>")
    assert footer.findall(browser.get("/predict?model=costs").text) == footer.findall(browser.get("/").text)
