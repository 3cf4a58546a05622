"""Requests to the pages: what they show, whom they refuse, and what a wrong path gets."""

from __future__ import annotations

import html
import re
import shlex
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import pytest

from edl.jobs import job_folder
from edl.jobs.cluster_folder import ClusterFolder
from edl.jobs.events import EpochEnd
from edl.jobs.recording import JobRecorder
from edl.models.registry.model_store import ModelStore
from sqlflow_edl.cli.main import main
from sqlflow_edl.extensions.web.app import application
from sqlflow_edl.extensions.web.guard import FIELD, PageAccess, cookie_name
from sqlflow_edl.extensions.web.model_reader import ModelReader
from tests.sqlflow_edl.extensions.web.conftest import Browser

PAGES = (
    "/",
    "/jobs",
    "/models",
    "/models/dear",
    "/models/dear@1",
    "/models/costs",
    "/models/broken",
    "/models/%3Cb%3Ekinds",
)
VOID = ("meta", "link", "input", "br", "path", "img")


class Outline(HTMLParser):
    """Elements of a page; those that stay open are in `open`."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def of(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


@pytest.mark.variants(2)
@pytest.mark.parametrize("path", PAGES)
def test_pages_are_whole_with_landmarks_and_named_charts(browser: Browser, path: str) -> None:
    found = browser.get(path)
    assert found.status == 200
    page = Outline(found.text)
    assert page.open == []
    assert [len(page.of(tag)) for tag in ("header", "main", "footer", "h1")] == [1, 1, 1, 1]
    assert page.of("html")[0]["lang"] == "en"
    assert all(each["role"] == "img" and each["aria-label"] for each in page.of("svg"))
    assert all("scope" in each for each in page.of("th"))


@pytest.mark.variants(2)
@pytest.mark.parametrize("path", PAGES)
def test_pages_refer_to_this_server_alone_and_have_no_scripts_or_styles_inside(
    browser: Browser, path: str
) -> None:
    found = browser.get(path)
    page = Outline(found.text)
    assert all(
        (each.get("src") or "/").startswith("/static/") for each in page.of("script") if "type" not in each
    )
    assert not re.search(r'(?:href|src)="(?:https?:)?//', found.text)
    assert not [
        name for _, attributes in page.tags for name in attributes if name == "style" or name.startswith("on")
    ]
    assert "default-src 'none'" in found.headers["content-security-policy"]
    for name in ("page.css", "page.js", "icon.svg"):
        assert browser.get(f"/static/{name}").status == 200


def test_names_that_are_markup_are_text(browser: Browser) -> None:
    text = browser.get("/models/%3Cb%3Ekinds").text
    assert "&lt;b&gt;kinds" in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    for page in (text, browser.get("/models").text, browser.get("/report?model=%3Cb%3Ekinds").text):
        assert "<b>" not in page
        assert "<script>alert" not in page


@pytest.mark.soak
def test_a_model_of_two_classes_has_curves_a_threshold_and_intervals(browser: Browser) -> None:
    text = browser.get("/models/dear").text
    for label in (
        "ROC curve of TRUE, area",
        "Precision by recall of TRUE",
        "Lift of TRUE",
        "Share of TRUE by",
        "Confusion matrix of 2 classes",
    ):
        assert f'aria-label="{label}' in text
    assert 'type="range"' in text
    assert text.count('class="interval"') == 2
    assert "best f1" in text
    assert 'aria-label="Importances: amount' in text
    assert re.search(r'aria-label="Histogram of \d+ numbers', text)
    assert "SELECT amount, city, cost &gt; 20 AS dear" in text


@pytest.mark.soak
def test_a_model_of_several_classes_has_a_curve_of_each(browser: Browser) -> None:
    text = browser.get("/models/%3Cb%3Ekinds").text
    choice = text.partition('class="class-choice"')[2].partition("</select>")[0]
    assert re.findall(r"<option[^>]*>(\w+)</option>", choice) == ["far", "large", "near"]
    assert "Confusion matrix of 3 classes" in text


@pytest.mark.soak
def test_a_model_of_a_number_has_errors_and_intervals(browser: Browser) -> None:
    text = browser.get("/models/costs").text
    assert 'aria-label="absolute error from' in text
    assert 'aria-label="Predicted against actual in' in text
    assert "Intervals of predictions" in text
    assert text.count('class="interval"') == 2


def test_a_job_links_to_its_model_and_the_model_to_its_jobs(browser: Browser) -> None:
    job = job_folder.create("predict", "SELECT * FROM t TO PREDICT USING dear@1")
    job.end("done")
    other = job_folder.create("predict", "SELECT * FROM t TO PREDICT USING unknown")
    other.end("done")
    assert 'model <a href="/models/dear">dear</a>' in browser.get(f"/jobs/{job.id}").text
    assert "model <a" not in browser.get(f"/jobs/{other.id}").text
    assert '<a href="/jobs?model=dear">its jobs</a>' in browser.get("/models/dear").text
    assert job.id in browser.get("/jobs?model=dear").text


def test_a_failed_training_shows_its_reason_and_statement(browser: Browser) -> None:
    text = browser.get("/models/broken").text
    assert "The training failed: the &lt;i&gt;loss&lt;/i&gt; is not finite" in text
    assert "SELECT 1 TO TRAIN DNNClassifier" in text
    assert browser.get("/compare?model=broken&model=dear").status == 200
    assert browser.get("/report?model=broken").status == 200


def test_versions_are_compared_side_by_side(browser: Browser) -> None:
    text = browser.get("/compare?model=dear%401&model=dear%402").text
    assert 'href="/models/dear@1"' in text
    assert re.search(r'aria-label="dear@1 from [\d.]+ to [\d.]+; dear@2 from', text)
    assert re.search(r">round</text>", text)
    assert re.search(r"<del>.*num_boost_round = 5", text)
    assert re.search(r"<ins>.*num_boost_round = 9", text)
    assert re.search(r'class="differs">\s*<th scope="row"><span title="they differ">≠</span> rounds', text)


@pytest.mark.variants(1)
@pytest.mark.parametrize(
    ("path", "near"),
    [
        ("/models/deer", "/models/dear"),
        ("/models/costs@9", "/models/costs"),
        ("/modles/dear", "/models/dear"),
        ("/x", None),
    ],
)
def test_a_wrong_path_names_the_nearest_model(browser: Browser, path: str, near: str | None) -> None:
    found = browser.get(path)
    assert found.status == 404
    assert ("Perhaps you meant" in found.text) == (near is not None)
    assert near is None or f'<a href="{near}">' in found.text


def test_a_source_that_cannot_be_opened_is_explained(here: None, tmp_path: Path) -> None:
    access = PageAccess(None, local=True)
    missing = f"duckdb:///{tmp_path}/missing.duckdb"
    browser = Browser(application(ModelReader(ModelStore(missing)), missing, access), access)
    assert "there is no database file" in browser.get("/models").text
    assert browser.get("/models/m").status == 503
    assert browser.get("/jobs").status == 200


def test_without_a_source_there_are_jobs(here: None) -> None:
    access = PageAccess(None, local=True)
    browser = Browser(application(None, "", access), access)
    assert "sqlflow ui --source URL" in browser.get("/models").text
    assert browser.get("/models/m").status == 404
    assert "lightgbm.gbdt" in browser.get(f"/jobs/{job_folder.jobs()[0].id}").text


@pytest.mark.soak
def test_empty_pages_offer_the_short_form_and_lines_that_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    source = f"duckdb:///{tmp_path}/new.duckdb"
    assert main(["samples", "--source", source]) == 0
    access = PageAccess(None, local=True)
    browser = Browser(application(ModelReader(ModelStore(source)), source, access), access)
    for path in ("/", "/jobs", "/models"):
        text = html.unescape(browser.get(path).text)
        assert "SELECT * FROM my_table LABEL my_column INTO my_model" in text
        assert "sqlflow run -e 'SELECT * FROM iris LABEL species INTO my_model' --source duckdb:///" in text
    run, samples = (
        shlex.split(re.search(f"sqlflow {command}.*?(?=\n|</pre>)", text)[0])[1:]  # type: ignore[index]
        for command in ("run", "samples")
    )
    assert samples == ["samples", "--source", source]
    assert run[-1] == source
    assert main([*run, "--dry-run"]) == 0


def test_passwords_are_not_shown(here: None) -> None:
    access = PageAccess(None, local=True)
    browser = Browser(application(None, "mysql://me:secret@host/shop", access), access)
    assert "mysql://me@host/shop" in (text := browser.get("/jobs").text)
    assert "secret" not in text


# Jobs ------------------------------------------------------------------------------------------------------


@pytest.fixture
def running(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> job_folder.JobFolder:
    """A job that this process runs, in the middle of its training."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    job = job_folder.create("train", "SELECT * FROM t TO TRAIN m LABEL y INTO <i>x</i>")
    (job.logs / "training.log").write_text("\x1b[31mfirst\x1b[0m\n<i>second</i>\n")
    return job


def test_the_curve_of_a_running_job_grows(running: job_folder.JobFolder) -> None:
    access = PageAccess(None, local=True)
    browser, path = Browser(application(None, "", access), access), f"/live/jobs/{running.id}"
    with JobRecorder(ClusterFolder(running.path)) as record:
        record(EpochEnd(1, 10, 0.9, {"loss": 0.8, "auc": 0.6}, 1.0))
        assert "A curve needs two epochs" in browser.get(path).text
        record(EpochEnd(2, 20, 0.5, {"loss": 0.7, "auc": 0.7}, 2.0))
        text = browser.get(path).text
    assert "training loss from 0.9 to 0.5; validation loss from 0.8 to 0.7, by epoch" in text
    assert "validation auc from 0.6 to 0.7" in text
    running.end("done")
    assert "data-ended" in browser.get(path).text


def test_the_log_of_a_job_is_text_without_colours(running: job_folder.JobFolder) -> None:
    access = PageAccess(None, local=True)
    text = Browser(application(None, "", access), access).get(f"/jobs/{running.id}?instance=training").text
    assert "first\n&lt;i&gt;second&lt;/i&gt;\n" in text
    assert "<i>" not in text


def test_a_job_inside_another_process_cannot_be_cancelled(running: job_folder.JobFolder) -> None:
    access = PageAccess(None, local=True)
    browser = Browser(application(None, "", access), access)
    assert "Press Ctrl-C in that terminal to cancel it" in (text := browser.get(f"/jobs/{running.id}").text)
    assert "<form" not in text
    found = browser.post(f"/jobs/{running.id}/cancel", {FIELD: access.form_token})
    assert found.status == 303
    assert "runs inside process" in browser.get(found.headers["location"]).text
    assert "runs inside process" not in browser.get(found.headers["location"]).text
    assert running.status().is_alive


def test_a_form_of_another_site_cancels_nothing(running: job_folder.JobFolder) -> None:
    access = PageAccess(None, local=True)
    browser, path = Browser(application(None, "", access), access), f"/jobs/{running.id}/cancel"
    assert browser.post(path, {}).status == 403
    assert browser.post(path, {FIELD: "guessed"}).status == 403
    assert browser.post(path, {FIELD: access.form_token}, sec_fetch_site="cross-site").status == 403
    assert browser.get(path).status == 405


def test_an_unknown_job_names_the_nearest(running: job_folder.JobFolder) -> None:
    access = PageAccess(None, local=True)
    found = Browser(application(None, "", access), access).get(f"/jobs/{running.id[:-2]}zz")
    assert found.status == 404
    assert f'<a href="/jobs/{running.id}">' in found.text


# Access ----------------------------------------------------------------------------------------------------


def test_another_host_name_is_refused_on_this_machine(browser: Browser) -> None:
    assert browser.get("/jobs", host="evil.example").status == 403


def test_beyond_this_machine_visitors_sign_in(browse: Callable[..., Browser]) -> None:
    browser = browse("long-token", local=False)
    turned = browser.get("/models", host="box.example")
    assert (turned.status, turned.headers["location"]) == (303, "/login")
    assert browser.get("/healthz").status == 200
    assert browser.post("/login", {"token": "wrong"}).status == 401
    found = browser.post("/login", {"token": "long-token"})
    cookie = found.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert "long-token" not in cookie
    pair = cookie.partition(";")[0]
    assert pair.startswith(cookie_name({"server": ("127.0.0.1", 8080)}))
    assert browser.get("/models", cookie=pair).status == 200
    assert browser.get("/models", cookie=f"{pair}0").status == 303
    assert browser.get("/models", authorization="Bearer long-token").status == 200
