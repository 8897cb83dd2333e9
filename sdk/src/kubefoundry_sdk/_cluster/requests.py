"""The parts of a request to the API server: its path, its media types, its body."""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import quote

from kubefoundry_sdk._api.foreign_json import encode
from kubefoundry_sdk._api.kinds import Kind
from kubefoundry_sdk._cluster.errors import ApiError

JSON: Final = "application/json"
APPLY: Final = "application/apply-patch+yaml"
JSON_PATCH: Final = "application/json-patch+json"
METADATA_ONLY: Final = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
"""An `Accept` header without alternatives: a server that cannot leave out the content refuses (406)."""


def path(kind: Kind, namespace: str | None = None, name: str | None = None) -> str:
    """Return the URL path of a collection or an object.

    Raise ApiError for an empty name and for dots, because that path would be another one.
    """
    if name == "":
        raise ApiError(400, "BadRequest", f"the name of the {kind.kind} is empty")
    for step in (kind.version, namespace, name):
        if step in (".", ".."):
            raise ApiError(400, "BadRequest", f"'{step}' is no version, namespace or name of a {kind.kind}")
    # A kind may come from an annotation.
    version = quote(kind.version, safe="")
    root = f"/apis/{kind.group}/{version}" if kind.group else f"/api/{version}"
    inside = f"/namespaces/{quote(namespace, safe='')}" if namespace and kind.namespaced else ""
    return f"{root}{inside}/{kind.plural}" + (f"/{quote(name, safe='')}" if name is not None else "")


def sent(body: Any, request: str) -> bytes:
    """Return the body as JSON. Raise ApiError, which names `request`, for a value that JSON cannot hold."""
    try:
        return encode(body)
    except ValueError as error:
        raise ApiError(400, "BadRequest", f"the object cannot be sent: {error}", request=request) from error
