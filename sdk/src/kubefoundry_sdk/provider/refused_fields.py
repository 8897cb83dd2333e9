"""Fields of a spec that an upstream has no place for: stated ones are refused, never silently dropped."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

from kubefoundry_sdk.api.modeldeployment import ModelDeploymentSpec


def refused_fields(spec: ModelDeploymentSpec, table: Mapping[str, str]) -> list[str]:
    """The sentence of each field that the spec states with another value than its default, in the table's order.

    table: by path as users write it (`podTemplate.metadata.labels`), the sentence; `{field}` in it becomes the path:

        refused_fields(spec, dict.fromkeys(("env", "tolerations"), "Widgets has no place for {field}: remove it"))

    Raises LookupError for a path that no ModelDeployment has.
    """
    return [words.replace("{field}", field) for field, words in table.items() if _stated(spec, field)]


def _stated(spec: BaseModel, path: str) -> bool:
    at: Any = spec
    for step in path.split("."):
        if at is None:
            return False
        known = (
            {item.alias or name: name for name, item in type(at).model_fields.items()}
            if _is_model(at)
            else {}
        )
        if step not in known:
            raise LookupError(f"a ModelDeployment has no field {path}")
        field, at = type(at).model_fields[known[step]], getattr(at, known[step])
    return bool(at != field.get_default(call_default_factory=True, validated_data={}))


def _is_model(value: object) -> bool:
    return isinstance(value, BaseModel)
