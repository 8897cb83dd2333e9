"""`spec.provider.overrides` for KAITO.

KAITO needs these three settings, and no field of the spec can express them.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from kubefoundry_sdk.spec import ApiModel, ModelDeploymentSpec

LlamaCppServer = Literal["aikit", "llama-server"]


class Overrides(ApiModel):
    """The fields of `provider.overrides` that KAITO reads."""

    instance_type: Annotated[str | None, Field(min_length=1)] = None
    """Instance type of the nodes that KAITO creates. KAITO requires one in mode `auto`."""

    preferred_nodes: list[str] = Field(default_factory=list)
    """Names of existing nodes; KAITO before 0.8 takes existing nodes in no other way."""

    llamacpp_server: LlamaCppServer = "aikit"
    """Which program the llamacpp image starts: AIKit (LocalAI) or llama.cpp's own `llama-server`.

    Their command lines have no option in common.
    """


def overrides_of(spec: ModelDeploymentSpec) -> Overrides:
    """Return the overrides of a spec. Raise pydantic's ValidationError for invalid values."""
    return spec.overrides_as(Overrides)
