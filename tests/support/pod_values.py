"""A value for each setting of pods and each field of storage, for the field tables of providers."""

from __future__ import annotations

from typing import Any, Final

POD_VALUES: Final[dict[str, Any]] = {
    "model.storage.volumes": [{"name": "weights", "claimName": "weights", "purpose": "modelCache"}],
    "model.storage.volumes: an image": [
        {
            "name": "weights",
            "image": {"reference": "example.com/llama:1", "pullPolicy": "IfNotPresent"},
            "purpose": "custom",
            "mountPath": "/weights",
            "subPath": "models",
        }
    ],
    "model.storage.uri": "s3://models/llama",
    "model.storage.offline": True,
    "podTemplate.spec.imagePullSecrets": [{"name": "registry"}],
    "podTemplate.spec.serviceAccountName": "engine",
    "podTemplate.spec.securityContext": {"runAsUser": 2000, "fsGroup": 3000},
    "podTemplate.spec.priorityClassName": "high",
    "podTemplate.spec.runtimeClassName": "nvidia",
    "podTemplate.spec.schedulerName": "other",
    "podTemplate.spec.affinity": {
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {"labelSelector": {"matchLabels": {"app": "a"}}, "topologyKey": "kubernetes.io/hostname"}
            ]
        }
    },
    "podTemplate.spec.topologySpreadConstraints": [
        {"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "ScheduleAnyway"}
    ],
    "podTemplate.spec.volumes": [{"name": "weights", "persistentVolumeClaim": {"claimName": "weights"}}],
    "podTemplate.spec.terminationGracePeriodSeconds": 600,
    "podTemplate.spec.dnsConfig": {"options": [{"name": "ndots", "value": "2"}]},
    "podTemplate.spec.resourceClaims": [{"name": "gpus", "resourceClaimTemplateName": "gpus"}],
    "podTemplate.container.securityContext": {"readOnlyRootFilesystem": True},
    "podTemplate.container.volumeMounts": [{"name": "weights", "mountPath": "/weights"}],
    "podTemplate.container.resourceClaims": [{"name": "gpus"}],
}


def pod_template(path: str) -> dict[str, Any]:
    """Return a spec with only the value at a path of POD_VALUES."""
    top, part, field = path.partition(":")[0].split(".")
    return {top: {part: {field: POD_VALUES[path]}}}
