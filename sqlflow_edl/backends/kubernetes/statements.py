"""Statements that can run on Kubernetes: their rows, results and models must be within reach of pods."""

from __future__ import annotations

from ipaddress import ip_address

from edl.data.server_url import parse_server
from edl.data.url import ROWS
from edl.errors import SemanticError
from sqlflow_edl.analysis.settings import values
from sqlflow_edl.backends.kubernetes.manifests import pods
from sqlflow_edl.backends.kubernetes.settings import Configuration, KubernetesSettings
from sqlflow_edl.syntax.ast import Statement

_ELSEWHERE = "or run it here, without --on"


def settings_of(statement: Statement, place: Configuration, source: str, models: str) -> KubernetesSettings:
    """Return the settings of a statement's job. source, models: URLs of its rows and of the model registry.

    Raises SemanticError if it cannot run there, or a setting is wrong.
    """
    scheme = source.partition(":")[0]
    if scheme not in ROWS:
        raise SemanticError(
            f"a job on Kubernetes cannot read {scheme}, whose rows are only on this machine",
            span=statement.span,
            hint=f"use a data source that pods reach ({', '.join(f'{name}://…' for name in ROWS)}), {_ELSEWHERE}",
        )
    if _gives_rows(statement) and not (statement.target or statement.into):
        clause = "TO PREDICT my_table.my_column" if statement.kind == "predict" else "INTO my_table"
        does = "writes" if statement.kind == "run" else f"{statement.kind}s"
        raise SemanticError(
            f"a job on Kubernetes {does} into a table of the data source, and the statement names none",
            span=statement.span,
            hint=f"write {clause}, {_ELSEWHERE}",
        )
    settings = place.settings(statement.attributes)
    if statement.image is not None and not statement.runs_file:
        settings = settings.with_image(str(statement.image))
    pods.check_settings(settings)
    _check_host(parse_server(source).host, settings, statement)
    _check_models(models, settings, statement)
    return settings


def _gives_rows(statement: Statement) -> bool:
    """Return True if the result is a table written by the pods, not only metrics."""
    texts = {
        attribute.key.casefold(): str(values.to_python(attribute.value)).casefold()
        for attribute in statement.attributes
    }
    match statement.kind:
        case "explain":
            return texts.get("explain.level") == "rows"
        case "evaluate":
            return texts.get("evaluate.report", "figures") != "figures"
        case kind:
            return kind in ("predict", "run") and texts.get("predict.report") not in ("drift", "features")


def _check_host(host: str, settings: KubernetesSettings, statement: Statement) -> None:
    if _is_own(host) and not settings.text("pod_template"):  # which may add a proxy there
        address = host or "its socket"
        raise SemanticError(
            f"a job on Kubernetes cannot reach the data source at {address}, which is the pod itself there",
            span=statement.span,
            hint=f"name it by an address that pods reach, such as that of this machine, {_ELSEWHERE}; where pods "
            "have a proxy there, kubernetes.pod_template names what starts it",
        )


def _is_own(host: str) -> bool:
    """Return True if the host is a loopback or unspecified address, which means another machine in each pod."""
    try:
        address = ip_address(host.strip("[]"))
    except ValueError:
        return host in ("", "localhost") or host.endswith(".localhost")
    return address.is_loopback or address.is_unspecified


def _check_models(models: str, settings: KubernetesSettings, statement: Statement) -> None:
    scheme, _, folder = models.partition("://")
    if scheme == "memory":
        raise SemanticError(
            "a job on Kubernetes cannot keep its model in the memory of this process",
            span=statement.span,
            hint=f"name an object store with --model-store, {_ELSEWHERE}",
        )
    if scheme == "file" and not settings.text("pod_template"):
        raise SemanticError(
            f"a job on Kubernetes cannot reach the models in {folder}, a folder of this machine",
            span=statement.span,
            hint="name an object store with --model-store, or mount the folder with kubernetes.pod_template",
        )
