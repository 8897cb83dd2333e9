"""Built-in kinds: the part of their schemas that this server knows. A field that is not here is answered with 501."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kubefoundry_sdk._api.kinds import (
    CLAIMS,
    CONFIG_MAPS,
    CORE_EVENTS,
    CRDS,
    DEPLOYMENTS,
    EVENTS,
    LEASES,
    NAMESPACES,
    PODS,
    SECRETS,
    SERVICES,
    Kind,
)

Schema = Mapping[str, Any]

_FREE: Final[Schema] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
_TEXT: Final[Schema] = {"type": "string"}
_NUMBER: Final[Schema] = {"type": "integer", "format": "int32"}
_BOOLEAN: Final[Schema] = {"type": "boolean"}
_TEXTS: Final[Schema] = {"type": "object", "additionalProperties": _TEXT}
_BYTES: Final[Schema] = {"type": "object", "additionalProperties": {"type": "string", "format": "byte"}}
_ATOMIC_TEXTS: Final[Schema] = {"type": "array", "items": _TEXT}
_EITHER: Final[Schema] = {"x-kubernetes-int-or-string": True}


def _object(**properties: Schema) -> Schema:
    return {"type": "object", "properties": properties}


def _by(keys: tuple[str, ...], items: Schema) -> Schema:
    return {
        "type": "array",
        "items": items,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": list(keys),
    }


def _or(schema: Schema, default: Any) -> Schema:
    return {**schema, "default": default}


_SELECTOR: Final[Schema] = {
    **_object(matchLabels=_TEXTS, matchExpressions={"type": "array", "items": _FREE}),
    "x-kubernetes-map-type": "atomic",
}
_QUANTITIES: Final[Schema] = {"type": "object", "additionalProperties": _EITHER}
_ENV: Final = _by(("name",), _object(name=_TEXT, value=_TEXT, valueFrom=_FREE))
_CONTAINER: Final = _object(
    name=_TEXT,
    image=_TEXT,
    command=_ATOMIC_TEXTS,
    args=_ATOMIC_TEXTS,
    workingDir=_TEXT,
    env=_ENV,
    envFrom={"type": "array", "items": _FREE},
    ports=_by(
        ("containerPort", "protocol"),
        _object(name=_TEXT, containerPort=_NUMBER, protocol=_or(_TEXT, "TCP")),
    ),
    resources=_or(_object(limits=_QUANTITIES, requests=_QUANTITIES), {}),
    volumeMounts=_by(("mountPath",), _object(name=_TEXT, mountPath=_TEXT, readOnly=_BOOLEAN, subPath=_TEXT)),
    terminationMessagePath=_or(_TEXT, "/dev/termination-log"),
    terminationMessagePolicy=_or(_TEXT, "File"),
    imagePullPolicy=_TEXT,
)
_POD_SPEC: Final = _object(
    containers=_by(("name",), _CONTAINER),
    initContainers=_by(("name",), _CONTAINER),
    volumes=_by(
        ("name",),
        _object(name=_TEXT, emptyDir=_FREE, configMap=_FREE, secret=_FREE, persistentVolumeClaim=_FREE),
    ),
    restartPolicy=_or(_TEXT, "Always"),
    terminationGracePeriodSeconds=_or(_NUMBER, 30),
    dnsPolicy=_or(_TEXT, "ClusterFirst"),
    nodeSelector={**_TEXTS, "x-kubernetes-map-type": "atomic"},
    serviceAccountName=_TEXT,
    securityContext=_or(_object(), {}),
    schedulerName=_or(_TEXT, "default-scheduler"),
    tolerations={"type": "array", "items": _FREE},
    imagePullSecrets=_by(("name",), _object(name=_TEXT)),
)
_META: Final = _object(name=_TEXT, labels=_TEXTS, annotations=_TEXTS)
_CONDITIONS: Final = _by(
    ("type",),
    _object(
        **dict.fromkeys(("type", "status", "reason", "message"), _TEXT),
        **dict.fromkeys(("lastTransitionTime", "lastUpdateTime"), _or(_TEXT, None)),
    ),
)
_COUNTS: Final = ("replicas", "readyReplicas", "availableReplicas", "updatedReplicas", "unavailableReplicas")
_DEPLOYMENT: Final = _object(
    spec=_object(
        replicas=_or(_NUMBER, 1),
        selector=_SELECTOR,
        template=_object(metadata=_META, spec=_POD_SPEC),
        strategy=_or(
            _object(
                type=_or(_TEXT, "RollingUpdate"),
                rollingUpdate=_or(
                    _object(maxUnavailable=_or(_EITHER, "25%"), maxSurge=_or(_EITHER, "25%")), {}
                ),
            ),
            {},
        ),
        minReadySeconds=_NUMBER,
        revisionHistoryLimit=_or(_NUMBER, 10),
        progressDeadlineSeconds=_or(_NUMBER, 600),
        paused=_BOOLEAN,
    ),
    status=_or(
        _object(
            observedGeneration={"type": "integer"}, conditions=_CONDITIONS, **dict.fromkeys(_COUNTS, _NUMBER)
        ),
        {},
    ),
)
_SERVICE: Final = _object(
    spec=_object(
        selector={**_TEXTS, "x-kubernetes-map-type": "atomic"},
        ports=_by(
            ("port", "protocol"),
            _object(
                name=_TEXT,
                port=_NUMBER,
                protocol=_or(_TEXT, "TCP"),
                targetPort=_EITHER,
                appProtocol=_TEXT,
            ),
        ),
        type=_or(_TEXT, "ClusterIP"),
        clusterIP=_TEXT,
        sessionAffinity=_or(_TEXT, "None"),
        internalTrafficPolicy=_or(_TEXT, "Cluster"),
        publishNotReadyAddresses=_BOOLEAN,
    ),
    status=_or(_FREE, {}),
)
_LEASE: Final = _object(spec=_FREE)

KINDS: Final[tuple[tuple[Kind, Schema, bool], ...]] = (
    (CONFIG_MAPS, _object(data=_TEXTS, binaryData=_BYTES, immutable=_BOOLEAN), False),
    (SECRETS, _object(data=_BYTES, type=_or(_TEXT, "Opaque"), immutable=_BOOLEAN), False),
    (DEPLOYMENTS, _DEPLOYMENT, True),
    (SERVICES, _SERVICE, True),
    (CLAIMS, _object(spec=_FREE, status=_or(_FREE, {})), True),
    (PODS, _object(spec=_POD_SPEC, status=_or(_FREE, {})), True),
    (NAMESPACES, _object(spec=_FREE, status=_or(_FREE, {})), True),
    (LEASES, _LEASE, False),
    (EVENTS, _FREE, False),
    (CORE_EVENTS, _FREE, False),
    (CRDS, _FREE, True),
)
"""Kind, schema, and whether there is a status subresource."""

COMPLETE: Final = frozenset({"configmaps", "secrets"})
"""Kinds all of whose fields are known here."""

EMPTY: Final[Mapping[str, Any]] = {
    "deployments": {
        "metadata": {},
        "spec": {
            "selector": None,
            "template": {"metadata": {}, "spec": {"containers": None}},
            "strategy": {},
        },
        "status": {},
    },
    "services": {"metadata": {}, "spec": {}, "status": {"loadBalancer": {}}},
    "persistentvolumeclaims": {"metadata": {}, "spec": {"resources": {}}, "status": {}},
    "pods": {"metadata": {}, "spec": {"containers": None}, "status": {}},
    "namespaces": {"metadata": {}, "spec": {}, "status": {}},
}
"""An object without content: the structs that are no pointers, and pointers without `omitempty` as null."""
