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

BOTH = {"type": "object", "properties": {"b": {}, "c": {}}}
EITHER = [{"required": ["b"]}, {"required": ["c"]}]
EMBEDDED = {"type": "object", "x-kubernetes-embedded-resource": True, "properties": {"spec": {}}}
POD = {"apiVersion": "v1", "kind": "Pod"}
B: dict[str, Any] = {"b": {}}
TEXT = {"type": "string"}

CASES: list[tuple[str, dict[str, Any], Any, str]] = [
    ("string", TEXT, "x", ""),
    ("integer for string", TEXT, 1, "a: Invalid value: 1: a in body must be of type string"),
    (
        "bool is no integer",
        {"type": "integer"},
        True,
        "a: Invalid value: true: a in body must be of type integer",
    ),
    ("integer is a number", {"type": "number"}, 3, ""),
    (
        "float is no integer",
        {"type": "integer"},
        1.5,
        "a: Invalid value: 1.5: a in body must be of type integer",
    ),
    ("null", TEXT, None, "a: Invalid value: null: a in body must be of type string"),
    ("nullable", {**TEXT, "nullable": True}, None, ""),
    ("enum", {**TEXT, "enum": ["kv"]}, "none", 'a: Unsupported value: "none": supported values: "kv"'),
    ("pattern", {**TEXT, "pattern": "^a$"}, "a\n", "a in body should match '^a$'"),
    ("format", {**TEXT, "format": "date-time"}, "today", "a in body must be of type date-time"),
    ("list for a text with a format", {**TEXT, "format": "date-time"}, ["today"], ""),
    ("format that is not checked", {**TEXT, "format": "uri"}, "-", ""),
    ("minimum", {"type": "integer", "minimum": 0}, -1, "a in body should be greater than or equal to 0"),
    ("maximum", {"type": "integer", "maximum": 2}, 3, "a in body should be less than or equal to 2"),
    ("int32", {"type": "integer", "format": "int32"}, 2**31, '"a" must be of type integer with format int32'),
    ("max length", {**TEXT, "maxLength": 2}, "abc", "a: Too long: may not be more than 2 bytes"),
    ("max items", {"type": "array", "maxItems": 1}, [1, 2], "a: Too many: 2: must have at most 1 items"),
    ("items", {"type": "array", "items": TEXT}, ["x", 2], "a[1]: Invalid value: 2: "),
    ("required", {"type": "object", "required": ["b"], "properties": B}, {}, "a.b: Required value"),
    ("unknown", {"type": "object", "properties": B}, {"c": 1}, "a.c: unknown field"),
    ("object without properties", {"type": "object"}, {"c": 1}, "a.c: unknown field"),
    (
        "additional",
        {"type": "object", "additionalProperties": TEXT},
        {"x.y/z": 1},
        "a.x.y/z: Invalid value: 1: ",
    ),
    (
        "preserved, yet the declared is checked",
        {
            "type": "object",
            "x-kubernetes-preserve-unknown-fields": True,
            "properties": {"b": {"type": "object", "properties": {}}},
        },
        {"any": {"thing": 1}, "b": {"lost": 1}},
        "a.b.lost: unknown field",
    ),
    ("schemaless", {"x-kubernetes-preserve-unknown-fields": True}, {"any": [1, None]}, ""),
    ("schemaless list", {"x-kubernetes-preserve-unknown-fields": True}, [{"any": 1}], ""),
    ("quantity as integer", QUANTITY, 4, ""),
    ("quantity as string", QUANTITY, "4Gi", ""),
    ("quantity by pattern", QUANTITY, "4 Gi", "a in body should match '^[0-9]+(Gi)?$'"),
    ("quantity as float", QUANTITY, 0.5, "a in body must be of type integer,string"),
    (
        "one of",
        {**BOTH, "oneOf": EITHER},
        {"b": 1, "c": 1},
        '"a" must validate one and only one schema (oneOf)',
    ),
    ("any of", {**TEXT, "anyOf": [{"pattern": "^a"}]}, "c", '"a" must validate at least one schema (anyOf)'),
    ("not", {**BOTH, "not": EITHER[0]}, {"b": 1}, '"a" must not validate the schema (not)'),
    ("list map", NAMED, [{"port": 1}, {"port": 1, "protocol": "UDP"}], ""),
    (
        "list map with a defaulted key",
        NAMED,
        [{"port": 1}, {"port": 1, "protocol": "TCP"}],
        "a[1]: Duplicate value",
    ),
    (
        "set",
        {"type": "array", "x-kubernetes-list-type": "set", "items": TEXT},
        ["x", "x"],
        "a[1]: Duplicate value",
    ),
    ("embedded without version", EMBEDDED, {"kind": "Pod"}, "a.apiVersion: Required value"),
    ("embedded metadata", EMBEDDED, {**POD, "metadata": {"nmae": "y"}}, "a.metadata.nmae: unknown field"),
    ("embedded labels", EMBEDDED, {**POD, "metadata": {"labels": "x"}}, "a.metadata.labels: Invalid value"),
    ("embedded content", EMBEDDED, {**POD, "sepc": {}}, "a.sepc: unknown field"),
]


@pytest.mark.parametrize(
    ("below", "value", "expected"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_value_is_compared_with_its_schema(below: dict[str, Any], value: Any, expected: str) -> None:
    problems = violations({"type": "object", "properties": {"a": below}}, {"a": value})

    assert bool(problems) == bool(expected)
    assert expected in "".join(problems[:1])


def test_type_and_object_meta_need_no_declaration_at_the_top() -> None:
    value = {"apiVersion": "g/v1", "kind": "K", "metadata": {"name": "n", "labels": {"l": 1}, "x": 1}}

    assert violations({"type": "object"}, value) == [
        "metadata.x: unknown field",
        'metadata.labels.l: Invalid value: 1: metadata.labels.l in body must be of type string: "integer"',
    ]


@requires_shared
@pytest.mark.upstream
@pytest.mark.parametrize("provider", PROVIDERS)
def test_schema_of_every_release_can_be_read(provider: str) -> None:
    for crd in crds(provider):
        for version in crd.served_versions:
            assert violations(schema(crd, version), {"bogus": 1})[-1] == "bogus: unknown field", crd.name
