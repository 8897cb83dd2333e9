"""Values that Kubernetes fills into our objects. They do not count as additions by others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

ALLOCATED: Final[Mapping[str, tuple[str, ...]]] = {
    "Service": (
        "spec.clusterIP",
        "spec.clusterIPs",
        "spec.healthCheckNodePort",
        "spec.ipFamilies",
        "spec.ipFamilyPolicy",
        "spec.ports[*].nodePort",
    ),
    "PersistentVolumeClaim": ("spec.storageClassName", "spec.volumeName"),
}
"""Fields of helpers, by kind, that Kubernetes fills in: addresses and ports, the default class, the bound volume."""

DEFAULTS: Final[Mapping[str, tuple[Any, ...]]] = {
    "apiVersion": ("v1",),
    "defaultMode": (420,),
    "divisor": ("0",),
    "dnsPolicy": ("ClusterFirst",),
    "enableServiceLinks": (True,),
    "failureThreshold": (3,),
    "imagePullPolicy": ("Always", "IfNotPresent"),
    "internalTrafficPolicy": ("Cluster",),
    "periodSeconds": (10,),
    "preemptionPolicy": ("PreemptLowerPriority",),
    "procMount": ("Default",),
    "protocol": ("TCP",),
    "pullPolicy": ("Always", "IfNotPresent"),
    "restartPolicy": ("Always",),
    "schedulerName": ("default-scheduler",),
    "scheme": ("HTTP",),
    "sessionAffinity": ("None",),
    "successThreshold": (1,),
    "terminationGracePeriodSeconds": (30,),
    "terminationMessagePath": ("/dev/termination-log",),
    "terminationMessagePolicy": ("File",),
    "timeoutSeconds": (1,),
    "type": ("ClusterIP",),
    "volumeMode": ("Filesystem",),
}
"""Defaults that the API server fills into pod templates and helpers (Kubernetes 1.36, pkg/apis/core/v1/defaults.go).
A default has an owner only if somebody read the whole object and wrote it back, which changes nothing."""
