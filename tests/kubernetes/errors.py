"""What the API server says when it does not do what it was asked for, word by word."""

from __future__ import annotations

from typing import Any, NamedTuple

from tests.kubernetes.kinds import Kind, Object


def status(code: int, reason: str, message: str, details: Object | None = None) -> Object:
    told: Object = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}
    told["message"] = message
    if reason:
        told["reason"] = reason
    if details is not None:
        told["details"] = details
    return {**told, "code": code}


class RefusedError(Exception):
    """A request that is answered by a Status."""

    def __init__(
        self, code: int, reason: str, message: str, details: Object | None = None, retry_after: int = 0
    ) -> None:
        super().__init__(message)
        self.code, self.retry_after = code, retry_after
        self.body = status(code, reason, message, details)


class Cause(NamedTuple):
    """One thing that is wrong with an object."""

    reason: str
    field: str
    message: str


def invalid_value(field: str, value: Any, why: str) -> Cause:
    shown = f'"{value}"' if isinstance(value, str) else value
    return Cause("FieldValueInvalid", field, f"Invalid value: {shown}: {why}")


def required(field: str, why: str = "") -> Cause:
    return Cause("FieldValueRequired", field, f"Required value: {why}" if why else "Required value")


def forbidden_field(field: str, why: str) -> Cause:
    return Cause("FieldValueForbidden", field, f"Forbidden: {why}")


def unsupported(field: str, value: str, supported: list[str]) -> Cause:
    named = ", ".join(f'"{one}"' for one in supported)
    return Cause("FieldValueNotSupported", field, f'Unsupported value: "{value}": supported values: {named}')


def _of(kind: Kind, name: str, called: str) -> Object:
    details: Object = {"name": name} if name else {}
    if kind.group:
        details["group"] = kind.group
    return {**details, "kind": called}


def invalid(kind: Kind, name: str, causes: list[Cause]) -> RefusedError:
    told = [f"{cause.field}: {cause.message}" for cause in causes]
    what = f"{kind.name}.{kind.group}" if kind.group else kind.name
    message = f'{what} "{name}" is invalid: ' + (told[0] if len(told) == 1 else f"[{', '.join(told)}]")
    details = _of(kind, name, kind.name)
    details["causes"] = [{"reason": c.reason, "message": c.message, "field": c.field} for c in causes]
    return RefusedError(422, "Invalid", message, details)


def bad_request(message: str) -> RefusedError:
    return RefusedError(400, "BadRequest", message)


def internal(message: str) -> RefusedError:
    return RefusedError(500, "", message)


def not_found(kind: Kind, name: str) -> RefusedError:
    return RefusedError(404, "NotFound", f'{kind.qualified} "{name}" not found', _of(kind, name, kind.plural))


def already_exists(kind: Kind, name: str, *, terminating: bool) -> RefusedError:
    prefix = "object is being deleted: " if terminating else ""
    message = f'{prefix}{kind.qualified} "{name}" already exists'
    return RefusedError(409, "AlreadyExists", message, _of(kind, name, kind.plural))


def modified(kind: Kind, name: str) -> RefusedError:
    why = "the object has been modified; please apply your changes to the latest version and try again"
    return conflict(kind, name, why)


def conflict(kind: Kind, name: str, why: str, *, of_precondition: bool = False) -> RefusedError:
    called = kind.name if of_precondition else kind.qualified
    message = f'Operation cannot be fulfilled on {called} "{name}": {why}'
    details = _of(kind, name, kind.name if of_precondition else kind.plural)
    return RefusedError(409, "Conflict", message, details)


def expired(message: str) -> RefusedError:
    return RefusedError(410, "Expired", message)


def too_large_version(asked: int, current: int) -> RefusedError:
    details = {
        "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
        "retryAfterSeconds": 1,
    }
    message = f"Timeout: Too large resource version: {asked}, current: {current}"
    return RefusedError(504, "Timeout", message, details, retry_after=1)


def rejected() -> RefusedError:
    message = "the server rejected our request due to an error in our request"
    return RefusedError(422, "Invalid", message, {})


def unknown_path() -> RefusedError:
    return RefusedError(404, "NotFound", "the server could not find the requested resource", {})


def method_not_allowed() -> RefusedError:
    message = "the server does not allow this method on the requested resource"
    return RefusedError(405, "MethodNotAllowed", message, {})


def unauthorized() -> RefusedError:
    return RefusedError(401, "Unauthorized", "Unauthorized")


def forbidden(kind: Kind, name: str, why: str) -> RefusedError:
    what = f'{kind.qualified} "{name}"' if name else kind.qualified
    return RefusedError(403, "Forbidden", f"{what} is forbidden: {why}", _of(kind, name, kind.plural))


def too_large_body(limit: int) -> RefusedError:
    message = f"Request entity too large: limit is {limit}"
    return RefusedError(413, "RequestEntityTooLarge", message)


def throttled() -> RefusedError:
    message = "Too many requests, please try again later."
    details = {"retryAfterSeconds": 1}
    return RefusedError(429, "TooManyRequests", message, details, retry_after=1)
