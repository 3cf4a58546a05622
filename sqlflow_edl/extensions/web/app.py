"""Application of `sqlflow ui`: pages about jobs and models.

Pages are rendered here, in threads, because they read files and databases; the script of a page asks for parts of it
again while a job runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from urllib.parse import parse_qs, quote

from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from edl.errors import ClusterError, SemanticError, SourceError, SpecError, SQLFlowError, nearest
from edl.jobs import job_folder
from edl.models.registry.records import split_reference
from sqlflow_edl.backends.report import INSTANCES, SERVERS, instance_rows, server_rows
from sqlflow_edl.backends.report import facts as job_facts
from sqlflow_edl.extensions.web.comparison import compare_jobs, compare_models
from sqlflow_edl.extensions.web.downloads import Downloads, has_onnx
from sqlflow_edl.extensions.web.guard import FIELD, PageAccess, PageGuard, cookie_name
from sqlflow_edl.extensions.web.job_list import JobQuery, names_in
from sqlflow_edl.extensions.web.job_reader import JobReader, JobView
from sqlflow_edl.extensions.web.model_reader import ModelDetails, ModelListing, ModelReader
from sqlflow_edl.extensions.web.model_view import render_report, view
from sqlflow_edl.extensions.web.prediction import RowPredictor
from sqlflow_edl.extensions.web.prediction_form import PredictionForm, form_of, read_row
from sqlflow_edl.extensions.web.rendering import asset, path_of, render

PART = "x-part"  # header of a request for a part of a page
RECENT = 8  # jobs and models of the overview
MOST_COMPARED = 6
MOST_BYTES = 64 << 10  # of a form
_ASSETS = {"page.css": "text/css", "page.js": "text/javascript", "icon.svg": "image/svg+xml"}
_ELSEWHERE = ("kind", "state", "error", "statement", "job", "note")  # on the page of a job


def application(models: ModelReader | None, source: str, access: PageAccess) -> ASGIApp:
    """Return the application. models: None without a data source. source: its URL without secrets."""
    pages = Pages(models, source, access)
    routes = [
        Route("/", pages.overview),
        Route("/jobs", pages.jobs),
        Route("/jobs/{job}", pages.job),
        Route("/jobs/{job}/cancel", pages.cancel, methods=["POST"]),
        Route("/live/overview", pages.overview_live),
        Route("/live/jobs", pages.jobs_live),
        Route("/live/jobs/{job}", pages.job_live),
        Route("/models", pages.models),
        Route("/models/{model:path}", pages.model),
        Route("/compare", pages.compare),
        Route("/predict", pages.predict, methods=["GET", "POST"]),
        Route("/report", pages.report),
        Route("/archive", pages.archive),
        Route("/onnx", pages.onnx, methods=["POST"]),
        Route("/login", pages.login, methods=["GET", "POST"]),
        Route("/static/{name}", static),
        Route("/healthz", health),
    ]
    app = Starlette(routes=routes)
    app.add_exception_handler(HTTPException, pages.http_error)
    app.add_exception_handler(SQLFlowError, pages.error)
    return PageGuard(app, access)


def health(request: Request) -> Response:
    """Tell that the server runs."""
    return PlainTextResponse("ok\n")


def static(request: Request) -> Response:
    """Return the style sheet or the script."""
    name = request.path_params["name"]
    if name not in _ASSETS:
        raise HTTPException(404)
    return Response(asset(name), media_type=_ASSETS[name], headers={"cache-control": "no-cache"})


class Pages:
    """Handlers of the requests."""

    def __init__(self, models: ModelReader | None, source: str, access: PageAccess) -> None:
        self._models = models
        self._jobs = JobReader()
        self._predictor = RowPredictor(models.store) if models is not None else None
        self._downloads = Downloads(models.store) if models is not None else None
        self._source = source
        self._access = access
        self._messages: dict[str, str] = {}  # outcome of a cancellation, by job, until its page has shown it

    # Jobs --------------------------------------------------------------------------------------------------

    def overview(self, request: Request) -> Response:
        """Show the last jobs and models."""
        listing, problem = self._listing()
        return self._page(
            "overview",
            "",
            jobs=self._jobs.lines(RECENT),
            versions=listing.latest()[:RECENT],
            read=listing.read,
            **problem,
        )

    def overview_live(self, request: Request) -> Response:
        """Return the part of the overview that changes."""
        return HTMLResponse(render("overview_live", jobs=self._jobs.lines(RECENT)))

    def jobs(self, request: Request) -> Response:
        """List jobs."""
        return self._page("jobs", "jobs", page=self._jobs.page(JobQuery.of(request.query_params)))

    def jobs_live(self, request: Request) -> Response:
        """Return the list of jobs."""
        return HTMLResponse(render("jobs_live", page=self._jobs.page(JobQuery.of(request.query_params))))

    def job(self, request: Request) -> Response:
        """Show a job."""
        values = self._found_job(request)
        message = self._messages.pop(request.path_params["job"], "")
        return self._page("job", "jobs", message=message, model=self._model_of(values), **_job_values(values))

    def job_live(self, request: Request) -> Response:
        """Return the parts of a job's page that change."""
        return HTMLResponse(render("job_live", **_job_values(self._found_job(request))))

    async def cancel(self, request: Request) -> Response:
        """Cancel a job, and return to its page."""
        await self._accepted_form(request)
        job = request.path_params["job"]
        try:
            self._messages[job] = await run_in_threadpool(self._jobs.cancel, job)
        except ClusterError as error:
            self._messages[job] = error.message
        return RedirectResponse(f"/jobs/{quote(job, safe='')}", 303)

    async def _accepted_form(self, request: Request) -> dict[str, str]:
        """Return the fields of a form of these pages. Raises HTTPException for another one."""
        form = await _form(request)
        if not self._access.accepts_form(request.headers, form.get(FIELD, "")):
            raise HTTPException(
                403, "this form does not come from a page of this server; load the page again"
            )
        return form

    def _found_job(self, request: Request) -> JobView:
        return self._jobs.job(request.path_params["job"], request.query_params.get("instance", ""))

    def _model_of(self, job: JobView) -> tuple[str, str] | None:
        """Return the name and the path of the model that a job makes or uses, if the source of these pages has it."""
        name, _ = names_in(job.report.statement)
        bare = split_reference(name)[0] if name else ""
        return (bare, path_of(bare)) if bare in self._listing()[0].names else None

    # Models ------------------------------------------------------------------------------------------------

    def models(self, request: Request) -> Response:
        """List the models."""
        listing, problem = self._listing()
        return self._page("models", "models", versions=listing.latest(), read=listing.read, **problem)

    def model(self, request: Request) -> Response:
        """Show a version of a model."""
        model_found = self._model(request.path_params["model"])
        listing, problem = self._listing()
        return self._page(
            "model",
            "models",
            read=listing.read,
            view=view(model_found),
            form=_form_of(model_found),
            onnx=has_onnx(model_found.archive),
            **problem,
        )

    def compare(self, request: Request) -> Response:
        """Show versions of models, or jobs, side by side."""
        jobs = list(dict.fromkeys(request.query_params.getlist("job")))[:MOST_COMPARED]
        if jobs:
            return self._page(
                "compare", "jobs", comparison=compare_jobs([self._jobs.job(job) for job in jobs])
            )
        references = list(dict.fromkeys(request.query_params.getlist("model")))[:MOST_COMPARED]
        if not references:
            raise SemanticError("nothing is chosen", hint="mark two in the list of models or jobs")
        comparison = compare_models([self._model(reference) for reference in references])
        return self._page("compare", "models", comparison=comparison)

    async def predict(self, request: Request) -> Response:
        """Predict the row of a form. A script asks for the part of the page with the prediction alone."""
        reference = request.query_params.get("model", "")
        if request.method == "GET":
            return await run_in_threadpool(self._answer_prediction, reference, None, False)
        form = await self._accepted_form(request)
        return await run_in_threadpool(self._answer_prediction, reference, form, PART in request.headers)

    def _answer_prediction(self, reference: str, values: dict[str, str] | None, is_part: bool) -> Response:
        model = self._model(reference)
        form = _form_of(model, values)
        if form is None or model.archive is None or self._predictor is None:
            raise SemanticError(
                f"{model.version.reference} predicts no single rows here",
                hint="use it in a statement",
            )
        prediction, problem = None, ("", "")
        if values is not None:
            try:
                row = read_row(model.archive, values)
                prediction = self._predictor.predict(model.version, row, model.usual)
            except SQLFlowError as error:
                problem = error.message, error.hint or ""
        shown = {"prediction": prediction, "message": problem[0], "hint": problem[1]}
        if is_part:
            return HTMLResponse(render("prediction", **shown), headers={"cache-control": "no-store"})
        return self._page("predict", "models", form=form, **shown)

    def report(self, request: Request) -> Response:
        """Return a model as one static file."""
        model = self._model(request.query_params.get("model", ""))
        return HTMLResponse(render_report(model), headers=_attachment(model, ".html"))

    def archive(self, request: Request) -> Response:
        """Return the archive of a model."""
        model, downloads = self._find_downloads(request)
        return _file(model, ".zip", *downloads.archive(model.version))

    async def onnx(self, request: Request) -> Response:
        """Return a model as ONNX."""
        await self._accepted_form(request)

        def exported() -> Response:
            model, downloads = self._find_downloads(request)
            return _file(model, ".onnx", *downloads.onnx(model.version))

        return await run_in_threadpool(exported)

    def _find_downloads(self, request: Request) -> tuple[ModelDetails, Downloads]:
        model = self._model(request.query_params.get("model", ""))
        if model.archive is None or self._downloads is None:
            raise SemanticError(f"{model.version.reference} has no archive: its training failed")
        return model, self._downloads

    def _model(self, reference: str) -> ModelDetails:
        if self._models is None:
            raise SemanticError("there is no data source", hint="start with sqlflow ui --source URL")
        return self._models.model(reference)

    def _listing(self) -> tuple[ModelListing, dict[str, object]]:
        """Return the versions, and the problem that a page shows."""
        if self._models is None:
            return ModelListing(), {"problem": "", "hint": ""}
        try:
            listing = self._models.listing()
        except SourceError as error:
            return ModelListing(), {"problem": error.message, "hint": error.hint or ""}
        return listing, {"problem": listing.problem, "hint": ""}

    # Access and errors ---------------------------------------------------------------------------------------

    async def login(self, request: Request) -> Response:
        """Take the token of the server, and give the browser a cookie in its place."""
        if not self._access.is_secured:
            return RedirectResponse("/", 303)
        if request.method == "GET":
            return HTMLResponse(render("login", message=""))
        form = await _form(request)
        if not self._access.is_token(form.get("token", "")):
            return HTMLResponse(render("login", message="That is not the token."), 401)
        answer = RedirectResponse("/", 303)
        secure = request.url.scheme == "https"
        answer.set_cookie(
            cookie_name(request.scope), self._access.cookie(), httponly=True, samesite="strict", secure=secure
        )
        return answer

    def http_error(self, request: Request, error: Exception) -> Response:
        """Show an error of HTTP, such as a path that does not exist."""
        assert isinstance(error, HTTPException)  # noqa: S101 - registered for it alone
        if error.status_code != 404:
            return self._error(error.status_code, "This is not possible", error.detail, "")
        path = request.url.path.strip("/")
        near = self._near_model(path) or self._near_job(path)
        return self._error(404, "Page not found", f"There is no page {request.url.path}", "", near)

    def error(self, request: Request, error: Exception) -> Response:
        """Show an error about a job or a model."""
        assert isinstance(error, SQLFlowError)  # noqa: S101 - registered for it alone
        if not isinstance(error, SemanticError):
            status = 503 if isinstance(error, SourceError | ClusterError) else 500
            title = "Damaged" if isinstance(error, SpecError) else "Not available"
            return self._error(status, title, error.message, error.hint or "")
        model, job = request.path_params.get("model", ""), request.path_params.get("job", "")
        near = self._near_model(model) if model else self._near_job(job)
        return self._error(404, "Not found", error.message, error.hint or "", near)

    def _error(
        self, status: int, title: str, message: str, hint: str, near: tuple[str, str] | None = None
    ) -> Response:
        return self._page("error", "", status, title=title, message=message, hint=hint, near=near)

    def _near_model(self, path: str) -> tuple[str, str] | None:
        """Return the name and the path of the model that is nearest to what was asked for."""
        listing, _ = self._listing()
        name = nearest(split_reference(path.rpartition("/")[2] or path)[0], listing.names)
        return (name, path_of(name)) if name else None

    def _near_job(self, path: str) -> tuple[str, str] | None:
        job_id = nearest(path, [job.id for job in job_folder.jobs()]) if path else None
        return (job_id, f"/jobs/{job_id}") if job_id else None

    def _page(self, template: str, here: str, status: int = 200, /, **values: object) -> Response:
        common = {
            "here": here,
            "source": self._source,
            "has_source": self._models is not None,
            "form_field": FIELD,
            "form_token": self._access.form_token,
        }
        headers = {"cache-control": "no-store"}
        return HTMLResponse(render(template, **common, **values), status, headers)


def _job_values(job: JobView) -> dict[str, object]:
    facts = [
        (name, value)
        for name, value in job_facts(job.report)
        if name not in _ELSEWHERE and not name.endswith(" tasks")
    ]
    metrics = dict.fromkeys(name for row in job.curve for name in row.metrics if name != "loss")
    return {
        "job": job,
        "metrics": list(metrics),
        "fact_rows": facts,
        "instance_columns": tuple(INSTANCES),
        "instances": instance_rows(job.report),
        "server_columns": SERVERS,
        "servers": server_rows(job.report),
    }


def _form_of(model: ModelDetails, values: Mapping[str, str] | None = None) -> PredictionForm | None:
    """Return the form that predicts a row, with given or usual values; None for a model that does not."""
    if model.archive is None:
        return None
    important = list(model.importances.columns) if model.importances is not None else []
    return form_of(model.archive, model.version.reference, model.usual, important, values)


def _attachment(model: ModelDetails, suffix: str) -> dict[str, str]:
    """Return the header that names a file after a version of a model."""
    name = "".join(
        character if character.isalnum() or character in "._-" else "_"
        for character in model.version.reference
    )
    return {
        "content-disposition": f'attachment; filename="{name.encode("ascii", "replace").decode()}{suffix}"'
    }


def _file(model: ModelDetails, suffix: str, file: Path, remove: Callable[[], None]) -> Response:
    """Return the file, which is removed when it has been sent."""
    return FileResponse(
        file,
        media_type="application/octet-stream",
        headers={**_attachment(model, suffix), "cache-control": "no-store"},
        background=BackgroundTask(remove),
    )


async def _form(request: Request) -> dict[str, str]:
    """Return the fields of a form, the last value of each."""
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > MOST_BYTES:
            raise HTTPException(413, "the form is too large")
    fields = parse_qs(body.decode("utf-8", "replace"), keep_blank_values=True)
    return {name: values[-1] for name, values in fields.items()}
