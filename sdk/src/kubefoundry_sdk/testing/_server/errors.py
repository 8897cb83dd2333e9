"""Refusals of the API server: each is a `Status` with the code, reason and details of the real one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from kubefoundry_sdk._api.kinds import Object


class Problem(NamedTuple):
    """A problem with a field.

    Attributes:
        reason: The reason of the cause, such as `FieldValueInvalid`.
        field: The path of the field, such as `spec.replicas`.
        text: The message to follow the path.
    """

    reason: str
    field: str
    text: str


class Refused(Exception):
    """The server refuses a request; `status` is the body of its answer."""

    def __init__(self, code: int, reason: str, message: str, details: Object | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.status: Object = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": message,
            **({"reason": reason} if reason else {}),
            **({"details": details} if details else {}),
            "code": code,
        }


def unknown_feature(text: str) -> Refused:
    """Return the refusal of a request that this server does not implement. It never guesses an answer."""
    return Refused(501, "NotImplemented", f"the API server in memory does not implement {text}")


def bad_request(text: str) -> Refused:
    """Return a 400."""
    return Refused(400, "BadRequest", text)


def internal(text: str) -> Refused:
    """Return a 500 without reason, as for an apply that does not fit the schema."""
    return Refused(500, "", text)


def not_served() -> Refused:
    """Return the 404 for a path that the server does not know."""
    message = "the server could not find the requested resource"
    return Refused(404, "NotFound", message, {})


def not_found(group: str, plural: str, name: str) -> Refused:
    """Return the 404 for an object."""
    details = _details(group, plural, name)
    return Refused(404, "NotFound", f'{_qualified(plural, group)} "{name}" not found', details)


def already_exists(group: str, plural: str, name: str) -> Refused:
    """Return the 409 for a create."""
    details = _details(group, plural, name)
    return Refused(409, "AlreadyExists", f'{_qualified(plural, group)} "{name}" already exists', details)


MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"


def conflict(group: str, plural: str, name: str, text: str = MODIFIED) -> Refused:
    """Return the 409 for an outdated resourceVersion or a failed precondition."""
    message = f'Operation cannot be fulfilled on {_qualified(plural, group)} "{name}": {text}'
    return Refused(409, "Conflict", message, _details(group, plural, name))


def invalid(group: str, kind: str, name: str, problems: Sequence[Problem]) -> Refused:
    """Return the 422 for an object with invalid fields."""
    texts = list(dict.fromkeys(f"{item.field}: {item.text}" for item in problems))
    joined = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    causes = [{"reason": item.reason, "message": item.text, "field": item.field} for item in problems]
    details = {**_details(group, kind, name), "causes": causes}
    return Refused(422, "Invalid", f'{_qualified(kind, group)} "{name}" is invalid: {joined}', details)


def unpatchable() -> Refused:
    """Return the 422 for a JSON patch that does not fit the object."""
    return Refused(422, "Invalid", "the server rejected our request due to an error in our request", {})


def owned_by_others(fields: Sequence[tuple[str, str]]) -> Refused:
    """Return the 409 for an apply of fields that other managers own: pairs of manager and field."""
    by_manager: dict[str, list[str]] = {}
    for manager, field in fields:
        by_manager.setdefault(manager, []).append(field)
    if len(fields) == 1:
        manager, field = fields[0]
        message = f"Apply failed with 1 conflict: conflict with {manager}: {field}"
    else:
        lines = [
            line
            for manager, owned in by_manager.items()
            for line in (f"conflicts with {manager}:", *(f"- {field}" for field in owned))
        ]
        message = f"Apply failed with {len(fields)} conflicts: " + "\n".join(lines)
    causes: list[Any] = [
        {"reason": "FieldManagerConflict", "message": f"conflict with {manager}", "field": field}
        for manager, field in fields
    ]
    return Refused(409, "Conflict", message, {"causes": causes})


def _qualified(plural: str, group: str) -> str:
    return f"{plural}.{group}" if group else plural


def _details(group: str, kind: str, name: str) -> Object:
    stated = {"name": name, "group": group, "kind": kind}
    return {key: value for key, value in stated.items() if value}
