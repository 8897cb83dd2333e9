"""Label and field selectors of lists and watches."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk.testing._server.errors import bad_request
from kubefoundry_sdk.testing._server.resources import Resource

Selects = Callable[[Object], bool]

_COMMA: Final = re.compile(r",(?![^(]*\))")
_SET: Final = re.compile(r"(\S+)\s+(in|notin)\s*\(([^)]*)\)")
_EQUALITY: Final = re.compile(r"([^=!\s]+)\s*(==|=|!=)\s*(\S*)")
_BUILT_IN: Final[Mapping[str, frozenset[str]]] = {
    "pods": frozenset({"spec.nodeName", "spec.restartPolicy", "status.phase"}),
    "events": frozenset(
        {
            *(
                f"{part}.{name}"
                for part in ("regarding", "involvedObject")
                for name in ("kind", "name", "namespace", "uid")
            ),
            *("reason", "type", "reportingController"),
        }
    ),
    "secrets": frozenset({"type"}),
}


def selecting(resource: Resource, query: Mapping[str, str]) -> Selects:
    """Return the check of a request's selectors. Raise Refused for one that the server does not know."""
    terms = [_label_term(text) for text in _COMMA.split(query.get("labelSelector", "")) if text.strip()]
    terms += [
        _field_term(resource, text) for text in query.get("fieldSelector", "").split(",") if text.strip()
    ]
    return lambda obj: all(term(obj) for term in terms)


def _label_term(text: str) -> Selects:
    text = text.strip()
    if match := _SET.fullmatch(text):
        name, values = match[1], {value.strip() for value in match[3].split(",")}
        if match[2] == "in":
            return lambda obj: _labels(obj).get(name) in values
        return lambda obj: _labels(obj).get(name) not in values
    if match := _EQUALITY.fullmatch(text):
        name, value = match[1], match[3]
        if match[2] == "!=":
            return lambda obj: _labels(obj).get(name) != value
        return lambda obj: _labels(obj).get(name) == value
    if text.startswith("!"):
        return lambda obj: text[1:].strip() not in _labels(obj)
    return lambda obj: text in _labels(obj)


def _field_term(resource: Resource, text: str) -> Selects:
    match = _EQUALITY.fullmatch(text.strip())
    if match is None:
        raise bad_request(f"invalid field selector: {text}")
    path, value, is_equal = match[1], match[3], match[2] != "!="
    known = {"metadata.name", *(path.removeprefix(".") for path in resource.selectable)}
    known |= {"metadata.namespace"} if resource.namespaced else set()
    known |= set() if resource.custom else _BUILT_IN.get(resource.plural, frozenset())
    if path not in known:
        raise bad_request(
            f'Unable to find "{resource.api_version}, Resource={resource.plural}" that match label '
            f'selector "", field selector "{text}": field label not supported: {path}'
        )
    return lambda obj: (_field(obj, path) == value) == is_equal


def _labels(obj: Object) -> Mapping[str, Any]:
    return obj["metadata"].get("labels") or {}


def _field(obj: Object, path: str) -> str:
    value: Any = obj
    for name in path.split("."):
        value = value.get(name) if isinstance(value, Mapping) else None
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else str(value)
