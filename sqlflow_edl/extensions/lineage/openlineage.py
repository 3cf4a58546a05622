"""OpenLineage events of a statement: START, then COMPLETE or FAIL, sent as the client of OpenLineage is configured.

Tables and models are datasets, a version of a model is the version of its dataset, and the figures of a training are
tags of the run. See https://openlineage.io/docs/spec/naming for the names of datasets.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime

from openlineage.client import OpenLineageClient
from openlineage.client.event_v2 import InputDataset, Job, OutputDataset, Run, RunEvent, RunState
from openlineage.client.facet_v2 import (
    dataset_version_dataset,
    error_message_run,
    job_type_job,
    output_statistics_output_dataset,
    set_producer,
    sql_job,
    tags_run,
)
from openlineage.client.uuid import generate_new_uuid

from edl.data.server_url import parse_server
from edl.data.url import SERVERS
from edl.installation import VERSION
from edl.models.registry.records import split_reference
from sqlflow_edl.extensions.lineage import Execution
from sqlflow_edl.reports.result import Result

PRODUCER = f"urn:sqlflow-edl:{VERSION}"
NAMESPACE = "sqlflow"  # of jobs, unless OPENLINEAGE_NAMESPACE names another
_SCHEMES = {"postgresql": "postgres"}  # scheme of a URL -> scheme of a dataset


class OpenLineage:
    """Tracker of one statement."""

    def __init__(self, execution: Execution) -> None:
        set_producer(PRODUCER)
        self._client = OpenLineageClient()
        self._of = execution
        self._run = str(generate_new_uuid())
        kind = execution.statement.kind
        name = next(filter(None, (*execution.makes, execution.trains, execution.uses)), "result")
        facets = {
            "sql": sql_job.SQLJobFacet(execution.statement.text, execution.dialect),
            "jobType": job_type_job.JobTypeJobFacet("BATCH", "SQLFLOW", kind.upper()),
        }
        self._job = Job(os.environ.get("OPENLINEAGE_NAMESPACE", NAMESPACE), f"{kind}.{name}", facets)

    def begins(self) -> None:
        self._emit(RunState.START, {}, self._outputs(None))

    def ends(self, result: Result | None, error: str) -> None:
        if result is None:
            failed = error_message_run.ErrorMessageRunFacet(error, "SQL")
            self._emit(RunState.FAIL, {"errorMessage": failed}, self._outputs(None))
            return
        figures = (result.figures or {}).items()
        tags = [tags_run.TagsRunFacetFields(name, str(value), "SQLFLOW") for name, value in figures]
        if result.measured_on:
            tags.append(tags_run.TagsRunFacetFields("measured_on", result.measured_on, "SQLFLOW"))
        self._emit(
            RunState.COMPLETE, {"tags": tags_run.TagsRunFacet(tags)} if tags else {}, self._outputs(result)
        )

    def _emit(self, state: RunState, facets: dict[str, object], outputs: list[OutputDataset]) -> None:
        run = Run(self._run, facets)
        now = datetime.now(UTC).isoformat()
        self._client.emit(
            RunEvent(
                eventType=state,
                eventTime=now,
                run=run,
                job=self._job,
                producer=PRODUCER,
                inputs=self._inputs(),
                outputs=outputs,
            )
        )

    def _inputs(self) -> list[InputDataset]:
        datasets = [InputDataset(*self._table(name)) for name in self._of.reads]
        if self._of.uses:
            name, version = split_reference(self._of.uses)
            datasets.append(InputDataset(self._of.models, name, facets=_version(version)))
        return datasets

    def _outputs(self, result: Result | None) -> list[OutputDataset]:
        rows = {}
        if result is not None and result.rows:
            rows = {
                "outputStatistics": output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet(
                    result.rows
                )
            }
        datasets = [OutputDataset(*self._table(name), rows) for name in self._of.makes]
        if self._of.trains:
            version = split_reference(result.model)[1] if result is not None else None
            datasets.append(OutputDataset(self._of.models, self._of.trains, facets=_version(version)))
        return datasets

    def _table(self, name: str) -> tuple[str, str]:
        """Return the namespace and the name of a table's dataset: of a server, its address and the full name."""
        scheme = self._of.source.partition(":")[0]
        if scheme not in SERVERS:
            return self._of.source, name
        url = parse_server(self._of.source)
        port = url.port or SERVERS[scheme]
        place = f"{_SCHEMES.get(scheme, scheme)}://{url.host}{f':{port}' if port else ''}"
        parts = name.split(".")
        if scheme == "postgresql" and len(parts) == 1:
            parts.insert(0, "public")
        depth = 3 if scheme == "postgresql" else 2
        return place, ".".join([url.path, *parts] if len(parts) < depth else parts)


def _version(version: object) -> dict[str, dataset_version_dataset.DatasetVersionDatasetFacet]:
    if version is None:
        return {}
    return {"version": dataset_version_dataset.DatasetVersionDatasetFacet(str(version))}
