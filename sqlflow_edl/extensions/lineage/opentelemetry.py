"""Spans of OpenTelemetry: one for each statement, below it its job, and below that each pod of a job on Kubernetes.

They are sent when the statement ends, by OTLP over HTTP in JSON, so no client has to be installed. OpenTelemetry's own
variables configure it: OTEL_EXPORTER_OTLP_ENDPOINT or OTEL_EXPORTER_OTLP_TRACES_ENDPOINT, OTEL_EXPORTER_OTLP_HEADERS,
OTEL_SERVICE_NAME, and TRACEPARENT for the span that the statement belongs to. Passwords are in no span.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any

from edl.errors import ClusterError, SpecError, SQLFlowError
from edl.installation import VERSION
from edl.jobs import job_folder
from edl.jobs.job_folder import JobFolder
from sqlflow_edl.extensions.lineage import Execution

if TYPE_CHECKING:
    from edl.cluster.kubernetes.pods import Pod
    from sqlflow_edl.reports.result import Result

TIMEOUT = 10.0  # seconds for a request
SERVICE = "sqlflow-edl"  # unless OTEL_SERVICE_NAME has another name
MOST_LETTERS = 5000  # of the text of a statement

Span = dict[str, Any]
_PARENT = re.compile(r"00-(?P<trace>[0-9a-f]{32})-(?P<span>[0-9a-f]{16})-[0-9a-f]{2}")
_INTERNAL, _FAILED = 1, 2  # kind of a span, code of a status


class OpenTelemetry:
    """Tracker of one statement. Raises ClusterError if its spans cannot be sent."""

    def __init__(self, execution: Execution) -> None:
        self._of = execution
        self._endpoint = _endpoint()
        parent = _PARENT.fullmatch(os.environ.get("TRACEPARENT", ""))
        self._trace, self._parent = (
            (parent["trace"], parent["span"]) if parent else (secrets.token_hex(16), "")
        )
        self._began = 0.0

    def begins(self) -> None:
        self._began = time.time()

    def ends(self, result: Result | None, error: str) -> None:
        of = self._of
        name = " ".join(filter(None, (of.statement.kind.upper(), of.trains or of.uses)))
        facts = {
            "db.query.text": of.statement.text[:MOST_LETTERS],
            "sqlflow.source": of.source,
            "sqlflow.model": (result.model if result is not None else "") or of.trains or of.uses,
            "sqlflow.reads": ", ".join(of.reads),
            "sqlflow.makes": ", ".join(of.makes),
        }
        statement = self._span(
            name, self._parent, self._began, time.time(), facts, error if result is None else ""
        )
        _send(self._endpoint, [statement, *self._spans_of_job(result, statement["spanId"])])

    def _spans_of_job(self, result: Result | None, parent: str) -> Iterator[Span]:
        """Yield the spans of the job that the statement has started, if any, and of its pods."""
        folder = self._find_job(result)
        if folder is None:
            return
        status = folder.status()
        facts = {"sqlflow.job": folder.id, "sqlflow.place": status.place}
        ended = _seconds(status.ended) or time.time()
        span = self._span(f"job {status.kind}", parent, _seconds(status.started), ended, facts, status.error)
        yield span
        for pod in _pods(folder):
            yield self._span_of_pod(pod, span["spanId"])

    def _find_job(self, result: Result | None) -> JobFolder | None:
        with suppress(SQLFlowError):
            if result is not None:
                return job_folder.find(result.job) if result.job else None
            for folder in reversed(job_folder.jobs()):  # of a statement that failed
                status = folder.status()
                if status.pid == os.getpid() and _seconds(status.started) >= self._began - 1e-3:
                    return folder
        return None

    def _span_of_pod(self, pod: Pod, parent: str) -> Span:
        from sqlflow_edl.backends.kubernetes.job_status import instance_name

        end = pod.end
        facts = {
            "k8s.pod.name": pod.metadata.name,
            "k8s.pod.uid": pod.metadata.uid,
            "k8s.node.name": pod.spec.node_name,
            "sqlflow.exit_code": "" if end is None else str(end.exit_code),
        }
        began = _seconds(pod.metadata.creation_timestamp or "")
        ended = _seconds(end.finished_at or "") if end is not None else time.time()
        error = end.reason or "failed" if end is not None and end.exit_code else ""
        return self._span(f"pod {instance_name(pod)}", parent, began, ended or time.time(), facts, error)

    def _span(
        self, name: str, parent: str, began: float, ended: float, facts: Mapping[str, str], error: str
    ) -> Span:
        span: Span = {
            "traceId": self._trace,
            "spanId": secrets.token_hex(8),
            "name": name,
            "kind": _INTERNAL,
            "startTimeUnixNano": str(int(began * 1e9)),
            "endTimeUnixNano": str(int(max(began, ended) * 1e9)),
            "attributes": _attributes(facts),
        }
        if parent:
            span["parentSpanId"] = parent
        if error:
            span["status"] = {"code": _FAILED, "message": error}
        return span


def _pods(folder: JobFolder) -> list[Pod]:
    """Return the pods of a job on Kubernetes; none if it has none, or the cluster does not tell."""
    if not folder.status().place:
        return []
    from sqlflow_edl.backends.kubernetes.handle import KubernetesJobHandle

    with suppress(ClusterError, SpecError):
        return KubernetesJobHandle(folder).pods()
    return []


def _attributes(facts: Mapping[str, str]) -> list[dict[str, Any]]:
    return [{"key": name, "value": {"stringValue": text}} for name, text in facts.items() if text]


def _seconds(date: str) -> float:
    return datetime.fromisoformat(date).timestamp() if date else 0.0


def _endpoint() -> str:
    """Return the URL for spans. Raises ClusterError if the environment asks for another protocol."""
    protocol = os.environ.get("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json")
    if protocol not in ("http/json", "http/protobuf"):
        raise ClusterError(
            f"OTEL_EXPORTER_OTLP_PROTOCOL is {protocol}, and spans are sent by HTTP alone",
            hint="set it to http/json, and the endpoint to the collector's port for HTTP, mostly 4318",
        )
    base = os.environ.get("OTEL_EXPORTER_OTLP_ENDPOINT", "").rstrip("/")
    return os.environ.get("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") or f"{base}/v1/traces"


def _headers() -> dict[str, str]:
    """Return the headers of requests, of which OTEL_EXPORTER_OTLP_HEADERS has more: name=value,name=value."""
    text = os.environ.get("OTEL_EXPORTER_OTLP_HEADERS", "")
    pairs = (pair.partition("=") for pair in text.split(",") if "=" in pair)
    more = {name.strip(): urllib.parse.unquote(value.strip()) for name, _, value in pairs}
    return {"Content-Type": "application/json", **more}


def _send(endpoint: str, spans: list[Span]) -> None:
    service = {"service.name": os.environ.get("OTEL_SERVICE_NAME") or SERVICE, "service.version": VERSION}
    scope = {"scope": {"name": SERVICE, "version": VERSION}, "spans": spans}
    body = {"resourceSpans": [{"resource": {"attributes": _attributes(service)}, "scopeSpans": [scope]}]}
    if not endpoint.startswith(("http://", "https://")):
        raise ClusterError(
            f"the endpoint of OpenTelemetry is {endpoint!r}, not a URL with http:// or https://"
        )
    request = urllib.request.Request(endpoint, json.dumps(body).encode(), _headers())  # noqa: S310 - checked above
    with urllib.request.urlopen(request, timeout=TIMEOUT):  # noqa: S310
        pass
