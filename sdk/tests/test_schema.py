from __future__ import annotations

from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field, create_model

from kubefoundry_sdk._api.fields import ItemsLike
from kubefoundry_sdk._api.schema import Inexpressible, structural

TEXT = {"description": "text"}


def _schema_of(annotation: Any, **field: Any) -> dict[str, Any]:
    model = create_model("Part", f=(annotation, Field(description="text", **field)))
    schema: dict[str, Any] = structural(model)["properties"]["f"]
    return schema


class Inner(BaseModel):
    """An inner part."""

    x: str = Field(description="text")


@pytest.mark.parametrize(
    ("annotation", "schema"),
    [
        (str, {**TEXT, "type": "string"}),
        (str | None, {**TEXT, "type": "string"}),
        (bool, {**TEXT, "type": "boolean"}),
        (int, {**TEXT, "type": "integer", "format": "int32"}),
        (Literal["only"], {**TEXT, "type": "string", "enum": ["only"]}),
        (Literal["a", "b"], {**TEXT, "type": "string", "enum": ["a", "b"]}),
        (dict[str, str], {**TEXT, "type": "object", "additionalProperties": {"type": "string"}}),
        (dict[str, Any], {**TEXT, "type": "object", "x-kubernetes-preserve-unknown-fields": True}),
        (
            Annotated[int, Field(ge=0)] | Annotated[str, Field(pattern="^x$")] | None,
            {
                **TEXT,
                "anyOf": [{"type": "integer"}, {"type": "string"}],
                "minimum": 0,
                "pattern": "^x$",
                "x-kubernetes-int-or-string": True,
            },
        ),
        (
            Inner,
            {**TEXT, "type": "object", "required": ["x"], "properties": {"x": {**TEXT, "type": "string"}}},
        ),
        (
            Annotated[list[dict[str, Any]], ItemsLike(Inner)],
            {
                **TEXT,
                "type": "array",
                "items": {
                    "description": "An inner part.",
                    "type": "object",
                    "required": ["x"],
                    "properties": {"x": {**TEXT, "type": "string"}},
                },
            },
        ),
    ],
)
def test_typed_field_becomes_structural_schema(annotation: Any, schema: dict[str, Any]) -> None:
    assert _schema_of(annotation) == schema


def test_schema_states_a_default_unless_it_is_none() -> None:
    assert _schema_of(int, default=3)["default"] == 3
    assert "default" not in _schema_of(int | None, default=None)


class Endless(BaseModel):
    inner: Endless | None = Field(default=None, description="text")


class Undocumented(BaseModel):
    f: str


class Strict(BaseModel):
    """Unknown fields are pruned by the API server in any case."""

    model_config = ConfigDict(extra="forbid")


@pytest.mark.parametrize(
    ("annotation", "why"),
    [
        (str | bool, "Part.f: a union"),
        (Inner | str, "Part.f: a union"),
        (set[str], "Part.f: uniqueItems"),
        (tuple[int, str], "Part.f: prefixItems"),
        (Annotated[int, Field(gt=0)], "Part.f: exclusiveMinimum"),
        (list[Any], r"Part.f\[\]: has no type"),
        (Endless, "Part.f.inner: Endless contains itself"),
        (Undocumented, "Part.f.f: has no documentation"),
    ],
)
def test_inexpressible_field_is_rejected_by_name(annotation: Any, why: str) -> None:
    with pytest.raises(Inexpressible, match=why):
        _schema_of(annotation)


def test_closed_model_has_no_additional_properties() -> None:
    assert structural(Strict)["type"] == "object"
    assert "additionalProperties" not in structural(Strict)
