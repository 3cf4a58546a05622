"""What is wrong with an object, before it is stored: the checks that our own objects could fail."""

from __future__ import annotations

import re

from tests.kubernetes import job_validation, quantities
from tests.kubernetes.errors import (
    Cause,
    bad_request,
    forbidden_field,
    invalid,
    invalid_value,
    required,
    unsupported,
)
from tests.kubernetes.kinds import CONFIG_MAP, JOB, POD, ROLE, ROLE_BINDING, SECRET, SERVICE, Kind, Object

LIMIT = 1 << 20  # bytes of the values of a ConfigMap or Secret
SUBDOMAIN = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
SERVICE_LABEL = r"[a-z]([-a-z0-9]*[a-z0-9])?"
LABEL = r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?"
CONFIG_KEY = r"[-._a-zA-Z0-9]+"
NOT_SUBDOMAIN = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must "
    f"start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '{SUBDOMAIN}')"
)
NOT_SERVICE_LABEL = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic "
    "character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation "
    f"is '{SERVICE_LABEL}')"
)
NOT_LABEL = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start "
    "and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for "
    f"validation is '{LABEL}')"
)
NOT_CONFIG_KEY = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',"
    f"  or 'key-name', regex used for validation is '{CONFIG_KEY}')"
)
POD_CHANGES = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)\n"
)


def decoded(kind: Kind, found: Object, how: str) -> list[str]:
    """Unknown fields, as warnings or refused. Types are checked where a client could easily get them wrong."""
    for name in ("data", "stringData") if kind in (CONFIG_MAP, SECRET) else ():
        for value in (found.get(name) or {}).values():
            if not isinstance(value, str):
                raise _wrong_type(kind, f"{name} of type string", value)
    known = {"apiVersion", "kind", "metadata", *kind.fields}
    unknown = [f'unknown field "{name}"' for name in found if name not in known]
    if unknown and how == "Strict":
        raise bad_request(
            f'{kind.name} in version "{kind.version}" cannot be handled as a {kind.name}: '
            f"strict decoding error: {', '.join(unknown)}"
        )
    return [] if how == "Ignore" else unknown


def _wrong_type(kind: Kind, wanted: str, value: object) -> Exception:
    names = {bool: "bool", int: "number", float: "number", list: "array", dict: "object"}
    return bad_request(
        f'{kind.name} in version "{kind.version}" cannot be handled as a {kind.name}: json: cannot unmarshal '
        f"{names.get(type(value), 'value')} into Go struct field {kind.name}.{wanted}"
    )


def check_new(kind: Kind, found: Object) -> None:
    causes = [*_metadata(kind, found["metadata"]), *_content(kind, found)]
    if causes:
        raise invalid(kind, found["metadata"].get("name", ""), causes)


def check_change(kind: Kind, found: Object, old: Object) -> None:
    causes = _content(kind, found)
    if kind in (CONFIG_MAP, SECRET) and old.get("immutable") and found.get("data") != old.get("data"):
        causes.append(forbidden_field("data", "field is immutable when `immutable` is set"))
    if kind is POD and not _is_allowed(found["spec"], old["spec"]):
        causes.append(forbidden_field("spec", POD_CHANGES))
    if kind is JOB:
        causes += _job_change(found["spec"], old["spec"])
    if causes:
        raise invalid(kind, old["metadata"]["name"], causes)


def _metadata(kind: Kind, metadata: Object) -> list[Cause]:
    name, causes = metadata.get("name", ""), []
    pattern, why = (SERVICE_LABEL, NOT_SERVICE_LABEL) if kind is SERVICE else (SUBDOMAIN, NOT_SUBDOMAIN)
    if not name:
        causes.append(required("metadata.name", "name or generateName is required"))
    elif kind not in (ROLE, ROLE_BINDING) and not re.fullmatch(pattern, name):
        causes.append(invalid_value("metadata.name", name, why))
    for value in (metadata.get("labels") or {}).values():
        if not re.fullmatch(LABEL, value):
            causes.append(invalid_value("metadata.labels", value, NOT_LABEL))
        elif len(value) > 63:
            causes.append(invalid_value("metadata.labels", value, "must be no more than 63 characters"))
    return causes


def _content(kind: Kind, found: Object) -> list[Cause]:
    if kind is POD:
        return _pod_spec(found["spec"], "spec")
    if kind is JOB:
        return _job(found["spec"])
    if kind in (CONFIG_MAP, SECRET):
        return _map(kind, found.get("data") or {})
    return []


def _map(kind: Kind, data: dict[str, str]) -> list[Cause]:
    causes = [
        invalid_value(f"data[{key}]", key, NOT_CONFIG_KEY)
        for key in data
        if not re.fullmatch(CONFIG_KEY, key)
    ]
    if sum(len(value.encode()) for value in data.values()) > LIMIT:
        field = "[]" if kind is CONFIG_MAP else "data"
        causes.append(Cause("FieldValueTooLong", field, f"Too long: may not be more than {LIMIT} bytes"))
    return causes


def _pod_spec(spec: Object, path: str) -> list[Cause]:
    causes = []
    if not spec.get("containers"):
        causes.append(required(f"{path}.containers"))
    for number, container in enumerate(spec.get("containers") or []):
        causes += _container(container, f"{path}.containers[{number}]")
    allowed = ["Always", "OnFailure", "Never"]
    if spec["restartPolicy"] not in allowed:
        causes.append(unsupported(f"{path}.restartPolicy", spec["restartPolicy"], allowed))
    return causes


def _container(container: Object, path: str) -> list[Cause]:
    resources = container.get("resources", {})
    limits, causes = resources.get("limits", {}), []
    for name, amount in resources.get("requests", {}).items():
        if name in limits and quantities.value(amount) > quantities.value(limits[name]):
            why = f"must be less than or equal to {name} limit of {limits[name]}"
            causes.append(invalid_value(f"{path}.resources.requests", amount, why))
    return causes


def _job(spec: Object) -> list[Cause]:
    causes = _pod_spec(spec["template"]["spec"], "spec.template.spec")
    if spec["template"]["spec"]["restartPolicy"] == "Always":
        causes.append(required("spec.template.spec.restartPolicy", 'valid values: "OnFailure", "Never"'))
    return [*causes, *job_validation.policies(spec)]


def _job_change(spec: Object, old: Object) -> list[Cause]:
    causes = []
    if spec["template"] != old["template"]:
        shown = "Invalid value: core.PodTemplateSpec{}: field is immutable"
        causes.append(Cause("FieldValueInvalid", "spec.template", shown))
    fixed = ("completions", "selector", "completionMode", "podFailurePolicy", "backoffLimitPerIndex")
    changed = [name for name in fixed if spec.get(name) != old.get(name)]
    return causes + [invalid_value(f"spec.{name}", spec.get(name), "field is immutable") for name in changed]


def _is_allowed(spec: Object, old: Object) -> bool:
    """Return True if only images, the deadline and tolerations differ, and gates that are removed."""

    def rest(one: Object) -> Object:
        free = ("activeDeadlineSeconds", "schedulingGates", "tolerations")
        fixed = {key: value for key, value in one.items() if key not in free}
        for name in ("containers", "initContainers"):
            if name in fixed:
                fixed[name] = [{**container, "image": ""} for container in fixed[name]]
        return fixed

    added = all(one in spec.get("tolerations", []) for one in old.get("tolerations", []))
    ungated = all(one in old.get("schedulingGates", []) for one in spec.get("schedulingGates", []))
    return added and ungated and rest(spec) == rest(old)
