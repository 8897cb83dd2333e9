"""A CRD with every feature of structural schemas that server-side apply and validation know."""

from __future__ import annotations

from typing import Any, Final

_TEXT: Final = {"type": "string"}
_ITEM: Final = {
    "type": "object",
    "required": ["name"],
    "properties": {
        "name": _TEXT,
        "protocol": {"type": "string", "default": "TCP", "enum": ["TCP", "UDP"]},
        "weight": {"type": "integer", "format": "int32", "minimum": 0, "maximum": 100},
        "tags": {"type": "array", "items": _TEXT, "x-kubernetes-list-type": "set"},
        "extra": {"type": "object", "properties": {"a": _TEXT, "b": _TEXT}},
    },
}

SPEC: Final[dict[str, Any]] = {
    "type": "object",
    "required": ["size"],
    "properties": {
        "size": {"type": "integer", "default": 1},
        "limit": {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]},
        "note": {"type": "string", "nullable": True, "maxLength": 8},
        "word": {"type": "string", "pattern": "^[a-z]*$", "minLength": 1},
        "on": {"type": "boolean"},
        "ratio": {"type": "number"},
        "labels": {"type": "object", "additionalProperties": _TEXT},
        "whole": {
            "type": "object",
            "x-kubernetes-map-type": "atomic",
            "properties": {"x": _TEXT, "y": {"type": "integer"}},
        },
        "nested": {
            "type": "object",
            "default": {},
            "properties": {
                "depth": {"type": "integer", "default": 3},
                "inner": {
                    "type": "object",
                    "properties": {"p": _TEXT, "q": {"type": "object", "properties": {"r": _TEXT}}},
                },
            },
        },
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "part": {
            "type": "object",
            "x-kubernetes-preserve-unknown-fields": True,
            "properties": {"known": {"type": "object", "properties": {"k": _TEXT}}},
        },
        "words": {"type": "array", "items": _TEXT, "maxItems": 4},
        "names": {"type": "array", "items": _TEXT, "x-kubernetes-list-type": "set"},
        "items": {
            "type": "array",
            "items": _ITEM,
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name", "protocol"],
        },
        "groups": {
            "type": "object",
            "additionalProperties": {
                "type": "object",
                "properties": {"members": {"type": "array", "items": _TEXT}},
            },
        },
    },
}

STATUS: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "state": _TEXT,
        "ready": {"type": "integer", "minimum": 0},
        "conditions": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["type"],
            "items": {
                "type": "object",
                "required": ["type", "status"],
                "properties": {
                    **dict.fromkeys(("type", "status", "reason", "message"), _TEXT),
                    "lastTransitionTime": {"type": "string", "format": "date-time"},
                },
            },
        },
    },
}


def _crd(plural: str, kind: str, *, has_status: bool) -> dict[str, Any]:
    properties = {"spec": SPEC, "status": STATUS}
    version: dict[str, Any] = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": properties}},
    }
    if has_status:
        version["subresources"] = {"status": {}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.differential.example.com"},
        "spec": {
            "group": "differential.example.com",
            "names": {"kind": kind, "plural": plural, "listKind": f"{kind}List", "singular": kind.lower()},
            "scope": "Namespaced",
            "versions": [version],
        },
    }


GADGETS: Final = _crd("gadgets", "Gadget", has_status=True)
PLAIN_GADGETS: Final = _crd("plaingadgets", "PlainGadget", has_status=False)
