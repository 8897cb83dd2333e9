"""Refuses fields of a spec that an upstream does not support, instead of dropping them silently."""

from __future__ import annotations

from collections.abc import Mapping
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
    for step in path.split("."):
        if value is None:
            return False
        names = (
            {item.alias or name: name for name, item in type(value).model_fields.items()}
            if _is_model(value)
            else {}
        )
        if step not in names:
            raise LookupError(f"a ModelDeployment has no field {path}")
        field, value = type(value).model_fields[names[step]], getattr(value, names[step])
    return bool(value != field.get_default(call_default_factory=True, validated_data={}))


def _is_model(value: object) -> bool:
    return isinstance(value, BaseModel)
