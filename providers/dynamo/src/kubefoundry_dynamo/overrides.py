"""`spec.provider.overrides` of Dynamo (contract §2)."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import ConfigDict, Field

from kubefoundry_sdk.spec import ApiModel, ModelDeploymentSpec, Quantity

ROUTER_MODE_ENV: Final = "DYN_ROUTER_MODE"
"""Environment variable of the Frontend that chooses the router mode (sources §2.7)."""


class StrictModel(ApiModel):
    """No conversion between types: `replicas: "2"` is a mistake that the user should see."""

    model_config = ConfigDict(strict=True)


class FrontendResources(StrictModel):
    """Resources of a frontend pod."""

    cpu: Quantity = "2"
    """CPU request of a frontend pod."""
    memory: Quantity = "4Gi"
    """Memory request and limit of a frontend pod."""


class FrontendOverrides(StrictModel):
    """Number and size of the frontend pods."""

    replicas: Annotated[int, Field(ge=1)] = 1
    """Number of frontend pods."""
    resources: FrontendResources = FrontendResources()


class Overrides(StrictModel):
    """The fields of `provider.overrides` that Dynamo reads."""

    runtime_version: Annotated[str, Field(pattern=r"^(0|[1-9]\d{0,3})(\.(0|[1-9]\d{0,3})){2}$")] | None = None
    """Dynamo version in the image, MAJOR.MINOR.PATCH, if its tag does not show it."""
    router_mode: Literal["kv", "round-robin", "none"] | None = None
    """How requests are routed; `round-robin` by default. `none` passes no mode to Dynamo, which has no mode of that
    name (sources §2.7)."""
    frontend: FrontendOverrides = FrontendOverrides()


def overrides_of(spec: ModelDeploymentSpec) -> Overrides:
    """Return the overrides of a spec. Raise pydantic's ValidationError for wrong types."""
    return spec.overrides_as(Overrides)


def router_mode(spec: ModelDeploymentSpec) -> str | None:
    """Return the frontend's mode: the override, else the user's own variable, else `round-robin`.

    Return None if no mode is passed to the frontend.
    """
    stated = overrides_of(spec).router_mode
    if stated is not None:
        return None if stated == "none" else stated
    for variable in spec.env:
        if variable.get("name") == ROUTER_MODE_ENV:
            return variable.get("value")
    return "round-robin"
