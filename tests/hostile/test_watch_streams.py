"""Every store of every component, fed with objects in which any one part is something else than it should be.

Each part of a usual object is replaced by each of HOSTILE, as text, and comes by a watch and by a list. Whatever it
is, nothing is raised, and the good object that comes after it is taken in.
"""

from __future__ import annotations

import copy
import itertools
import json
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from kubefoundry_core.controller import reported_health
from kubefoundry_kuberay.provider import provider as kuberay
from kubefoundry_kuberay.settings import Settings
from kubefoundry_llamastack import stores
from kubefoundry_sdk._api import names
from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._cluster import reflector, responses
from kubefoundry_sdk._cluster.client import Client
from kubefoundry_sdk._cluster.credentials import Credentials
from kubefoundry_sdk._cluster.errors import ApiError, Unreachable
from kubefoundry_sdk._cluster.reflector import Sink
from kubefoundry_sdk._provider import controller
from kubefoundry_sdk._provider.watch.pod_creation import CreationWatch
from kubefoundry_sdk._provider.watch.pods import PodWatch
from kubefoundry_sdk._provider.watch.upstream import Upstream
from kubefoundry_sdk._provider.watch.upstream_operator import Evidence, unavailable, unheld
from kubefoundry_sdk._provider.write import manifest
from kubefoundry_sdk._runtime import options
from kubefoundry_sdk._runtime.process import Process
from kubefoundry_sdk._runtime.store import Store
from kubefoundry_selector.decision import is_undecided
from support.hostile_json import HOSTILE, places, spoilt
from support.upstream import standin

CONDITION = {"type": "Ready", "status": "True", "reason": "R", "message": "m", "lastTransitionTime": "t"}
META: Object = {
    "name": "m",
    "namespace": "n",
    "uid": "u",
    "generation": 1,
    "resourceVersion": "5",
    "creationTimestamp": "2026-01-01T00:00:00Z",
    "labels": {names.MANAGED_BY_LABEL: "kubefoundry"},
    "annotations": {names.APPLIED_ANNOTATION: "eJw="},
    "finalizers": ["kubefoundry.ai/kuberay-provider"],
    "managedFields": [
        {
            "manager": "kuberay-provider",
            "operation": "Apply",
            "subresource": "status",
            "fieldsV1": {"f:a": {}},
        }
    ],
    "ownerReferences": [
        {
            "apiVersion": names.API_VERSION,
            "kind": "ModelDeployment",
            "name": "m",
            "uid": "u",
            "controller": True,
        }
    ],
}
DEPLOYMENT: Object = {
    "apiVersion": names.API_VERSION,
    "kind": "ModelDeployment",
    "metadata": META,
    "spec": {
        "model": {"id": "o/m"},
        "provider": {"name": "kuberay", "overrides": {"a": 1}},
        "env": [{"name": "A"}],
    },
    "status": {
        "provider": {"name": "kuberay", "selectedReason": "r"},
        "conditions": [CONDITION],
        "phase": "Running",
    },
}
CONTAINER = {
    "name": "c",
    "image": "i",
    "restartCount": 3,
    "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "m"}},
    "lastState": {"terminated": {"exitCode": 1, "message": "a\nb", "startedAt": "t", "finishedAt": "t"}},
}
POD: Object = {
    "metadata": {**META, "labels": {"ray.io/cluster": "c"}},
    "spec": {"containers": [{"name": "c", "image": "i"}]},
    "status": {"conditions": [CONDITION], "containerStatuses": [CONTAINER], "phase": "Running"},
}
EVENT: Object = {
    "metadata": {**META, "creationTimestamp": "2026-01-01T00:00:00Z"},
    "involvedObject": {"kind": "ReplicaSet", "name": "r"},
    "reason": "FailedCreate",
    "message": "quota",
}
CONFIG_MAP: Object = {"metadata": META, "data": {"a": "b"}, "binaryData": {"c": "ZA=="}}
REPLICA_SET: Object = {"metadata": META, "spec": {"template": {"spec": {"volumes": [{"name": "v"}]}}}}
WORKLOAD: Object = {"metadata": META, "spec": {"replicas": 1}, "status": {"availableReplicas": 1}}
LEASE: Object = {
    "metadata": META,
    "spec": {"holderIdentity": "a", "leaseDurationSeconds": 15, "renewTime": "t"},
}

OWN = frozenset({"kuberay-provider", names.CORE_MANAGER})


def upstream() -> Upstream:
    chosen = options.parser("t", "").parse_args([])
    process = Process("t", chosen, Client(Credentials("", None, lambda: None), user_agent="t"))
    return Upstream(process, kuberay(Settings()), "kuberay-provider", lambda: None)


def pod_watch() -> PodWatch:
    pods = kuberay(Settings()).pods
    assert pods is not None
    return PodWatch(pods, lambda key: None)


def creation_watch() -> CreationWatch:
    pods = kuberay(Settings()).pods
    assert pods is not None
    return CreationWatch(pods, lambda key: None)


SINKS: dict[str, tuple[Callable[[], Any], Object]] = {
    "core": (lambda: Store(managers=OWN, index=reported_health), DEPLOYMENT),
    "selector": (
        lambda: Store(managers=OWN, index=lambda obj: "x" if is_undecided(obj) else None),
        DEPLOYMENT,
    ),
    "provider": (lambda: Store(managers=OWN, trim=lambda obj: controller.trim(obj, "kuberay")), DEPLOYMENT),
    "another provider": (
        lambda: Store(managers=OWN, trim=lambda obj: controller.trim(obj, "other")),
        DEPLOYMENT,
    ),
    "helpers": (lambda: Store(managers=OWN, index=manifest.owner_uid), CONFIG_MAP),
    "pods": (pod_watch, POD),
    "Events of refused pods": (creation_watch, EVENT),
    "operator's Deployment": (lambda: Evidence(unavailable, lambda: 0.0, lambda namespace: True), WORKLOAD),
    "operator's Lease": (lambda: Evidence(unheld, lambda: 0.0, lambda namespace: True), LEASE),
    "upstream CRD": (upstream, standin("kuberay").document),
    "llamastack's ConfigMaps": (lambda: Store(trim=stores.reduce_to_digests), CONFIG_MAP),
    "llamastack's own ConfigMaps": (lambda: Store(managers=OWN, trim=stores.without_tool), CONFIG_MAP),
    "llamastack's ReplicaSets": (lambda: Store(trim=stores.replica_set, index=stores.owner_uid), REPLICA_SET),
    "llamastack's pods": (lambda: Store(trim=stores.pod, index=stores.owner_uid), POD),
    "llamastack's namespaces": (lambda: Store(trim=stores.namespace), WORKLOAD),
}


def come(sink: Sink, kind: str, raw: bytes) -> None:
    """By a watch. What the client refuses as no event of an API server is asked for again."""
    with suppress(Unreachable, ApiError):
        event = responses.event_of(b'{"type":"' + kind.encode() + b'","object":' + raw + b"}", "x")
        reflector._deliver(event, sink)


def there(sink: Any) -> list[Object]:
    found = sink._store if isinstance(sink, PodWatch) else sink
    if isinstance(found, Upstream):
        return [{"metadata": {"name": "after"}}] if found.listed and found.kind else []
    if isinstance(found, CreationWatch):
        return found.events()
    return found.seen if isinstance(found, Evidence) else list(found.objects())


@pytest.mark.slow
@pytest.mark.parametrize("name", SINKS)
async def test_store_skips_a_hostile_object_and_continues(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    make, good = SINKS[name]
    after = copy.deepcopy(good)
    after["metadata"] = {**META, **after["metadata"], "name": "after", "resourceVersion": "900"}
    tried, rest = 0, itertools.cycle(("BOOKMARK", "ERROR", "OTHER"))
    for path in places(good):
        for text in HOSTILE.values():
            caplog.clear()
            sink = make()
            raw = spoilt(good, path, text)
            for kind in ("ADDED", "MODIFIED", "DELETED", next(rest)):
                come(sink, kind, raw)
            page = responses.object_of(b'{"items":[' + raw + b"," + json.dumps(after).encode() + b"]}", "x")
            items = page["items"][-1:] if isinstance(sink, Upstream) else page["items"]
            try:
                sink.replace(iter(items), "901", rewound=False)
            except Exception as error:
                pytest.fail(f"{path} {text[:20]}: {error!r}")
            assert [obj["metadata"]["name"] for obj in there(sink)].count("after") == 1, (path, text[:20])
            tried += 1
    print(f"{name}: {tried} documents, none fatal")
