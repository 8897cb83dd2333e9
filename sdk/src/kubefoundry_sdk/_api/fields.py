"""Types that the fields of our resources share, and their marks for the CRD."""

from __future__ import annotations

from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field, GetJsonSchemaHandler
from pydantic.alias_generators import to_camel
from pydantic_core import CoreSchema

from kubefoundry_sdk._api import formats

MAX_INT32: Final = 2**31 - 1

Count = Annotated[int, Field(ge=0, le=MAX_INT32)]
"""A count, in Kubernetes' range for replicas and GPUs (int32)."""

Quantity = Annotated[int, Field(ge=0)] | Annotated[str, Field(max_length=64, pattern=formats.QUANTITY)]
"""An amount of a resource; `kubefoundry_sdk._api.quantity` reads it."""

ALWAYS_THERE: Final = Field(json_schema_extra={"default": {}})
"""Marks an object that the API server adds if it is omitted, so that the defaults inside it apply."""


class ApiModel(BaseModel):
    """A part of a resource: camelCase on the wire, immutable in memory, unknown fields ignored."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        populate_by_name=True,
        extra="ignore",
        frozen=True,
        use_attribute_docstrings=True,
    )


class ItemsLike:
    """Annotation: the CRD describes the items of this list like `model`; in Python they stay JSON."""

    def __init__(self, model: type[BaseModel]) -> None:
        self.model = model

    def __get_pydantic_json_schema__(
        self, core_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        described = handler(core_schema)
        described["items"] = handler(self.model.__pydantic_core_schema__)
        return described


class Like:
    """Annotation: the CRD describes this object like `model`; in Python it stays JSON."""

    def __init__(self, model: type[BaseModel]) -> None:
        self.model = model

    def __get_pydantic_json_schema__(
        self, core_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return handler(self.model.__pydantic_core_schema__)
