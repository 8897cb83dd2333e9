"""How a change reaches the pods: whether a new one comes before an old one goes."""

from __future__ import annotations

from typing import Any

from kubefoundry_direct.overrides import Rollout, overrides_of
from kubefoundry_sdk.api.modeldeployment import ModelDeploymentSpec


def rollout(spec: ModelDeploymentSpec) -> Rollout:
    """As stated. Else a replica more for a moment where it costs no GPU, or where it is the only one that serves;
    where others go on serving meanwhile, GPUs that nobody has are not waited for."""
    stated = overrides_of(spec).rollout
    if stated:
        return stated
    return "replace" if spec.gpu_count and spec.scaling.replicas > 1 else "surge"


def strategy(spec: ModelDeploymentSpec) -> dict[str, Any]:
    """`spec.strategy` of the Deployment; both counts are stated, because percentages of few replicas round to 0."""
    surge = rollout(spec) == "surge"
    return {
        "type": "RollingUpdate",
        "rollingUpdate": {"maxSurge": int(surge), "maxUnavailable": int(not surge)},
    }


def notes(spec: ModelDeploymentSpec) -> tuple[str, ...]:
    """What an update needs, where it may not be there, and what it costs."""
    if rollout(spec) == "surge" and spec.gpu_count:
        return (
            f"An update keeps serving and needs {_gpus(spec)} free for a moment; where there are none, it waits "
            "and the old pods go on serving, unless provider.overrides.rollout is replace.",
        )
    if rollout(spec) == "replace" and spec.scaling.replicas == 1:
        return ("An update stops the only replica before the new one is ready: nothing serves meanwhile.",)
    return ()


def _gpus(spec: ModelDeploymentSpec) -> str:
    return f"{spec.gpu_count} GPU" + ("s" if spec.gpu_count > 1 else "")
