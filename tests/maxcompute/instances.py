"""Instances: SQL that was submitted, run before the answer, and told of as MaxCompute tells of it."""

from __future__ import annotations

import base64
import csv
import io
import json
import re
import time
from dataclasses import dataclass
from xml.etree import ElementTree
from xml.sax.saxutils import escape

from tests.maxcompute import queries
from tests.maxcompute.answers import Answer, Request, cdata, http_date, json_answer, xml
from tests.maxcompute.metadata import session_schema
from tests.maxcompute.storage import Download, Project, RefusedError, Table, World

RESULT_ROWS = 10_000  # that a CSV result, or a limited tunnel, has at most


@dataclass
class Instance:
    id: str
    job: str  # the XML element that was submitted
    task: str
    started: float
    result: Table | None = None
    failure: RefusedError | None = None
    polls: int = 0  # that are still to be told that it runs
    stopped: bool = False

    @property
    def is_running(self) -> bool:
        return self.polls > 0


@dataclass
class Instances:
    world: World
    polls: int = 0  # of the instances that are made

    def __post_init__(self) -> None:
        self._instances: dict[str, Instance] = {}
        self._submitted: dict[str, str] = {}  # by the id that the client gave

    def submit(self, project: Project, request: Request) -> Answer:
        job = ElementTree.fromstring(request.body).find("Job")  # noqa: S314 - pyodps made it
        assert job is not None
        if known := self._submitted.get(job.findtext("Guid") or ""):
            return _made(project, known)
        task = job.find("Tasks/SQL")
        if task is None:
            raise RefusedError(400, "InvalidParameter", "only SQL is run here")
        name = task.findtext("Name") or ""
        settings: dict[str, str] = {}
        for found in task.iterfind("Config/Property"):
            if found.findtext("Name") == "settings":
                settings = json.loads(found.findtext("Value") or "{}")
        text = task.findtext("Query") or ""
        instance = Instance(
            self.world.new_id(), ElementTree.tostring(job, "unicode"), name, time.time(), polls=self.polls
        )
        try:
            instance.result = queries.run(project, text, settings)
        except RefusedError as refused:
            if refused.code == "ODPS-0130161":  # a syntax error is told at once
                raise RefusedError(400, "ParseError", f"{refused.code}:{refused.message}") from None
            instance.failure = refused
        self._instances[instance.id] = instance
        self._submitted[job.findtext("Guid") or instance.id] = instance.id
        return _made(project, instance.id)

    def tell(self, instance_id: str, request: Request) -> Answer:
        instance = self.find(instance_id)
        if request.method == "PUT":
            instance.stopped, instance.polls = True, 0
            return Answer()
        if "taskstatus" in request.options:
            return self._tasks(instance)
        if "result" in request.options:
            return self._result(instance)
        if "source" in request.options:
            return xml(instance.job)
        if instance.polls:
            instance.polls -= 1
        state = "Running" if instance.is_running else "Terminated"
        return xml(
            f"<Instance><Status>{state}</Status></Instance>",
            x_odps_owner="owner",
            x_odps_start_time=http_date(instance.started),
            x_odps_end_time="" if instance.is_running else http_date(time.time()),
        )

    def tunnel(self, instance_id: str, request: Request) -> Answer:
        """A download session of a SELECT's result, which without a right to more has 10,000 rows at most."""
        instance = self.find(instance_id)
        if instance.result is None or instance.result.comment == "text":
            raise RefusedError(400, "InstanceTypeNotSupported", "The instance is not a SELECT.")
        rows = instance.result.parts[()]
        if "instance_tunnel_limit_enabled" in request.options:
            rows = rows.slice(0, RESULT_ROWS)
        session = Download(self.world.new_id(), instance.result.columns, rows)
        self.world.downloads[session.id] = session
        return json_answer(
            {
                "DownloadID": session.id,
                "Status": "normal",
                "RecordCount": rows.num_rows,
                "Schema": session_schema(session.columns),
            }
        )

    def find(self, instance_id: str) -> Instance:
        if instance_id not in self._instances:
            raise RefusedError(404, "NoSuchInstance", "The specified instance does not exist.")
        return self._instances[instance_id]

    def _tasks(self, instance: Instance) -> Answer:
        state = "Failed" if instance.failure else "Cancelled" if instance.stopped else "Success"
        state = "Running" if instance.is_running else state
        return xml(
            f'<Instance><Status>{"Running" if instance.is_running else "Terminated"}</Status><Tasks><Task Type="SQL">'
            f"<Name>{escape(instance.task)}</Name><StartTime>{http_date(instance.started)}</StartTime>"
            f"<EndTime>{http_date(time.time())}</EndTime><Status>{state}</Status><Histories/></Task></Tasks></Instance>"
        )

    def _result(self, instance: Instance) -> Answer:
        if instance.failure:
            kind, text = "text", f"{instance.failure.code}:{instance.failure.message}"
        elif instance.result is None:
            kind, text = "text", ""
        elif instance.result.comment == "text":
            kind, text = "text", "\n".join(instance.result.parts[()].column(0).to_pylist())
        else:
            kind, text = "csv", _csv(instance.result)
        encoded = base64.b64encode(text.encode()).decode()
        state = "Failed" if instance.failure else "Success"
        return xml(
            f'<Instance><Tasks><Task Type="SQL"><Name>{escape(instance.task)}</Name>'
            f'<Result Transform="Base64" Format="{kind}">{cdata(encoded)}</Result><Status>{state}</Status>'
            "</Task></Tasks></Instance>"
        )


def _made(project: Project, instance: str) -> Answer:
    return Answer(b"", 201, {"Location": f"/api/projects/{project.name}/instances/{instance}"})


def _csv(table: Table) -> str:
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow([column.name for column in table.columns])
    for row in table.parts[()].slice(0, RESULT_ROWS).to_pylist():
        writer.writerow([r"\N" if value is None else value for value in row.values()])
    return re.sub("\r\n", "\n", text.getvalue())
