"""The leaf fields of a ModelDeployment's spec: each is honoured or refused (contract §2)."""

from __future__ import annotations

from typing import Any, Final, get_args

from pydantic import BaseModel

from kubefoundry_sdk.api.modeldeployment import ApiModel, ModelDeploymentSpec


def _leaves(model: type[BaseModel], prefix: str = "") -> list[str]:
    found = []
    for name, field in model.model_fields.items():
        path = f"{prefix}{field.alias or name}"
        nested = [kind for kind in (field.annotation, *get_args(field.annotation)) if _is_part(kind)]
        found += _leaves(nested[0], f"{path}.") if nested else [path]
    return found


def _is_part(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, ApiModel)


FIELDS: Final[tuple[str, ...]] = tuple(_leaves(ModelDeploymentSpec))
"""Every leaf field of a ModelDeployment's spec (contract §2), as `scaling.prefill.gpu.count`; from its types."""
