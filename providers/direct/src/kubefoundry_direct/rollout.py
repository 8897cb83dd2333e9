"""How a change rolls out: whether a new pod starts before an old one stops."""

from __future__ import annotations

from typing import Any

from kubefoundry_direct.overrides import Rollout, overrides_of
from kubefoundry_sdk.spec import ModelDeploymentSpec
from kubefoundry_sdk.status import part


def rollout(spec: ModelDeploymentSpec) -> Rollout:
    """Return the rollout of the overrides, else the default.

    By default one extra pod starts first if it needs no GPU, or if there is only one replica. Otherwise an old pod
    goes first: the other replicas keep serving, and the rollout does not wait for GPUs that may not exist.

    With a claim an old pod goes first: a claim that is ReadWriteOnce cannot be attached to a second node, and
    the new pod would wait until the deadline of the rollout.
    """
    overrides = overrides_of(spec)
    if overrides.rollout:
        return overrides.rollout
    if _claims(spec):
        return "replace"
    return "replace" if spec.gpu_count and spec.scaling.replicas > 1 else "surge"


def strategy(spec: ModelDeploymentSpec) -> dict[str, Any]:
    """Return `spec.strategy` of the Deployment, with both counts, because percentages of few replicas round to 0."""
    surge = rollout(spec) == "surge"
    return {
        "type": "RollingUpdate",
        "rollingUpdate": {"maxSurge": int(surge), "maxUnavailable": int(not surge)},
    }


def notes(spec: ModelDeploymentSpec) -> tuple[str, ...]:
    """Return notes about the needs of an update that may not be met, and about its cost."""
    claims = ", ".join(_claims(spec))
    if claims and rollout(spec) == "surge":
        return (
            f"An update starts a new pod beside the old one, which needs PersistentVolumeClaim {claims} to be "
            "ReadWriteMany, or ReadOnlyMany with readOnly: set provider.overrides.rollout to replace if a claim is "
            "ReadWriteOnce.",
        )
    if claims and not overrides_of(spec).rollout:
        return (
            f"An update stops a pod before its replacement starts, because PersistentVolumeClaim {claims} may be "
            "ReadWriteOnce: set provider.overrides.rollout to surge if all claims are ReadWriteMany.",
        )
    if rollout(spec) == "surge" and spec.gpu_count:
        return (
            f"An update keeps serving and needs {_gpus(spec)} free for a moment; where there are none, it waits "
            "and the old pods go on serving, unless provider.overrides.rollout is replace.",
        )
    if rollout(spec) == "replace" and spec.scaling.replicas == 1:
        return ("An update stops the only replica before the new one is ready: nothing serves meanwhile.",)
    return ()


def _claims(spec: ModelDeploymentSpec) -> list[str]:
    """Return the names of the claims that pods of the old and of the new spec would share, and may be unable to."""
    names = [
        overrides_of(spec).cache_claim,
        *(volume.claim_name for volume in spec.model.storage.claims if not volume.is_shared),
        *(
            part(volume, "persistentVolumeClaim").get("claimName")
            for volume in spec.pod_template.spec.volumes
        ),
    ]
    return list(dict.fromkeys(filter(None, names)))


def _gpus(spec: ModelDeploymentSpec) -> str:
    return f"{spec.gpu_count} GPU" + ("s" if spec.gpu_count > 1 else "")
