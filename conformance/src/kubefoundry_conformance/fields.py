"""Leaf fields of a ModelDeployment's spec, each of which a provider honours or refuses (contract §2)."""

from __future__ import annotations

from typing import Any, Final, get_args, get_origin

from pydantic import BaseModel

from kubefoundry_sdk._api.modeldeployment import ApiModel, ModelDeploymentSpec


def _leaves(model: type[BaseModel], prefix: str = "") -> list[str]:
    paths: list[str] = []
    for name, field in model.model_fields.items():
        path = f"{prefix}{field.alias or name}"
        # a list is one field: a provider honours or refuses the whole
        kinds = (
            () if get_origin(field.annotation) is list else (field.annotation, *get_args(field.annotation))
        )
        nested = [kind for kind in kinds if _is_part(kind)]
        paths += _leaves(nested[0], f"{path}.") if nested else [path]
    return paths


def _is_part(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, ApiModel)


FIELDS: Final[tuple[str, ...]] = tuple(_leaves(ModelDeploymentSpec))
"""Paths such as `scaling.prefill.gpu.count`, derived from the types of the spec."""
