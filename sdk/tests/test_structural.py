"""The structural schema check against what kube-apiserver documents and does."""

from __future__ import annotations

from typing import Any

import pytest

from kubefoundry_sdk.testing.structural import violations
from support.upstream import PROVIDERS, crds, requires_shared, schema

QUANTITY = {
    "anyOf": [{"type": "integer"}, {"type": "string"}],
    "x-kubernetes-int-or-string": True,
    "pattern": r"^[0-9]+(Gi)?$",
}
NAMED = {
    "type": "array",
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["port", "protocol"],
    "items": {
        "type": "object",
        "properties": {"port": {"type": "integer"}, "protocol": {"type": "string", "default": "TCP"}},
    },
}

CASES: list[tuple[str, dict[str, Any], Any, list[str]]] = [
    ("string", {"type": "string"}, "x", []),
    ("integer for string", {"type": "string"}, 1, ["a: must be string, is 1"]),
    ("bool is no integer", {"type": "integer"}, True, ["a: must be integer, is true"]),
    ("integer is a number", {"type": "number"}, 3, []),
    ("float is no integer", {"type": "integer"}, 1.5, ["a: must be integer, is 1.5"]),
    ("null", {"type": "string"}, None, ["a: must not be null"]),
    ("nullable", {"type": "string", "nullable": True}, None, []),
    ("enum", {"type": "string", "enum": ["kv"]}, "none", ['a: "none" is not one of ["kv"]']),
    ("pattern", {"type": "string", "pattern": "^a$"}, "a\n", ['a: "a\\n" does not match ^a$']),
    ("minimum", {"type": "integer", "minimum": 0}, -1, ["a: -1 is below the minimum 0"]),
    ("maximum", {"type": "integer", "maximum": 2}, 3, ["a: 3 is above the maximum 2"]),
    ("int32", {"type": "integer", "format": "int32"}, 2**31, ["a: 2147483648 does not fit int32"]),
    ("max length", {"type": "string", "maxLength": 2}, "abc", ["a: 3 character(s), at most 2 allowed"]),
    ("max items", {"type": "array", "maxItems": 1}, [1, 2], ["a: 2 item(s), at most 1 allowed"]),
    ("items", {"type": "array", "items": {"type": "string"}}, ["x", 2], ["a[1]: must be string, is 2"]),
    ("required", {"type": "object", "required": ["b"], "properties": {"b": {}}}, {}, ["a.b: required"]),
    ("unknown", {"type": "object", "properties": {"b": {}}}, {"c": 1}, ["a.c: unknown field"]),
    ("object without properties", {"type": "object"}, {"c": 1}, ["a.c: unknown field"]),
    (
        "additional properties",
        {"type": "object", "additionalProperties": {"type": "string"}},
        {"x.y/z": 1},
        ['a["x.y/z"]: must be string, is 1'],
    ),
    (
        "preserved, yet the declared is checked",
        {
            "type": "object",
            "x-kubernetes-preserve-unknown-fields": True,
            "properties": {"b": {"type": "object", "properties": {}}},
        },
        {"any": {"thing": 1}, "b": {"lost": 1}},
        ["a.b.lost: unknown field"],
    ),
    ("schemaless", {"x-kubernetes-preserve-unknown-fields": True}, {"any": [1, None]}, []),
    ("quantity as integer", QUANTITY, 4, []),
    ("quantity as string", QUANTITY, "4Gi", []),
    ("quantity by pattern", QUANTITY, "4 Gi", ['a: "4 Gi" does not match ^[0-9]+(Gi)?$']),
    ("quantity as float", QUANTITY, 0.5, ["a: must be integer or string, is 0.5"]),
    (
        "one of",
        {
            "type": "object",
            "properties": {"b": {}, "c": {}},
            "oneOf": [{"required": ["b"]}, {"required": ["c"]}],
        },
        {"b": 1, "c": 1},
        ["a: fits 2 branches of oneOf, must fit 1"],
    ),
    (
        "any of",
        {"type": "string", "anyOf": [{"pattern": "^a"}, {"pattern": "^b"}]},
        "c",
        ["a: fits no branch of anyOf"],
    ),
    (
        "not",
        {"type": "object", "properties": {"b": {}}, "not": {"required": ["b"]}},
        {"b": 1},
        ["a: must not fit the schema under not"],
    ),
    ("list map", NAMED, [{"port": 1}, {"port": 1, "protocol": "UDP"}], []),
    (
        "list map with a defaulted key",
        NAMED,
        [{"port": 1}, {"port": 1, "protocol": "TCP"}],
        ['a[1]: duplicate of {"port": 1, "protocol": "TCP"}'],
    ),
    (
        "set",
        {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
        ["x", "x"],
        ['a[1]: duplicate of "x"'],
    ),
    (
        "embedded resource",
        {"type": "object", "x-kubernetes-embedded-resource": True, "properties": {"spec": {}}},
        {"kind": "Pod", "metadata": {"name": "x", "nmae": "y"}, "sepc": {}},
        ["a.apiVersion: required", "a.metadata.nmae: unknown field", "a.sepc: unknown field"],
    ),
]


@pytest.mark.parametrize(("case", "below", "value", "expected"), CASES, ids=[case[0] for case in CASES])
def test_a_value_is_compared_with_its_schema(
    case: str, below: dict[str, Any], value: Any, expected: list[str]
) -> None:
    assert violations({"type": "object", "properties": {"a": below}}, {"a": value}) == expected


def test_type_and_object_meta_need_no_declaration_at_the_top() -> None:
    value = {"apiVersion": "g/v1", "kind": "K", "metadata": {"name": "n", "labels": {"l": 1}, "x": 1}}

    assert violations({"type": "object"}, value) == [
        "metadata.labels.l: must be string, is 1",
        "metadata.x: unknown field",
    ]


@requires_shared
@pytest.mark.upstream
@pytest.mark.parametrize("provider", PROVIDERS)
def test_every_schema_of_every_release_can_be_read(provider: str) -> None:
    for crd in crds(provider):
        for version in crd.served_versions:
            assert violations(schema(crd, version), {"bogus": 1})[-1] == "bogus: unknown field", crd.name
