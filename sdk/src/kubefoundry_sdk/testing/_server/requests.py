"""Requests, answers, and the objects that paths name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk.testing._server import errors
from kubefoundry_sdk.testing._server.resources import Resource
from kubefoundry_sdk.testing._server.store import Key

APPLY: Final = "application/apply-patch+yaml"
MERGE_PATCH: Final = "application/merge-patch+json"
JSON_PATCH: Final = "application/json-patch+json"
METADATA_ONLY: Final = "PartialObjectMetadata"


class Request(NamedTuple):
    """A request: method, path, parameters, body and two headers."""

    method: str
    path: str
    query: Mapping[str, str] = {}
    body: bytes | None = None
    content_type: str = ""
    accept: str = ""
    user_agent: str = ""


@dataclass(slots=True)
class Answer:
    """An answer: status code, body, and the texts of warnings."""

    code: int
    body: Object
    warnings: list[str] = field(default_factory=list)


class Target(NamedTuple):
    """What a path names. `name` is empty for a collection."""

    resource: Resource
    namespace: str
    name: str
    subresource: str

    @property
    def key(self) -> Key:
        """Return the key in the store."""
        return self.namespace, self.name


def place(meta: Object, target: Target) -> None:
    """Set the namespace of the URL. Raise Refused if the object names another one."""
    if not target.resource.namespaced:
        if meta.get("namespace"):
            raise errors.bad_request("namespace provided for a cluster-scoped object")
        return
    if meta.setdefault("namespace", target.namespace) != target.namespace:
        raise errors.bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )


def check_name(meta: Object, target: Target) -> None:
    """Set the name of the URL. Raise Refused if the object has another one."""
    if (name := meta.setdefault("name", target.name)) != target.name:
        raise errors.bad_request(
            f"the name of the object ({name}) does not match the name on the URL ({target.name})"
        )


def manager_of(request: Request) -> str:
    """Return the field manager: the parameter, or the beginning of the user agent."""
    return request.query.get("fieldManager") or request.user_agent.partition("/")[0] or "unknown"
