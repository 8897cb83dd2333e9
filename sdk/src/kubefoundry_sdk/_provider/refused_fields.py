"""Refuses fields of a spec that an upstream does not support, instead of dropping them silently."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from pydantic import BaseModel

from kubefoundry_sdk._api.modeldeployment import ModelDeploymentSpec


def refused_fields(spec: ModelDeploymentSpec, table: Mapping[str, str]) -> list[str]:
    """Return a sentence for each field that the spec sets to a value other than its default, in the table's order.

    For example:

        refused_fields(spec, dict.fromkeys(("env", "tolerations"), "Widgets has no place for {field}: remove it"))

    Args:
        spec: The spec.
        table: The sentence by path, as users write the path (`podTemplate.metadata.labels`); `{field}` in it
            becomes the path.

    Raises:
        LookupError: A ModelDeployment has no such path.
    """
    return [words.replace("{field}", field) for field, words in table.items() if _is_set(spec, field)]


def _is_set(spec: BaseModel, path: str) -> bool:
    value: Any = spec
    default: Any = None
    for step in path.split("."):
        if value is None:
            return False
        field = _fields(type(value)).get(step) if isinstance(value, BaseModel) else None
        if field is None:
            raise LookupError(f"a ModelDeployment has no field {path}")
        name, default = field
        value = getattr(value, name)
    return bool(value != default)


@cache
def _fields(model: type[BaseModel]) -> dict[str, tuple[str, Any]]:
    """Return attribute and default of each field of a spec, by the name that users write. There are few models."""
    return {
        field.alias or name: (name, field.get_default(call_default_factory=True, validated_data={}))
        for name, field in model.model_fields.items()
    }
