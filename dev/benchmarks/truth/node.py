"""The simulated node of provider direct, for pods that Kubernetes' own controllers create."""

from __future__ import annotations

import asyncio
import re
from datetime import UTC, datetime
from typing import Any, Final

from benchmarks.rig import Sightings
from kubefoundry_sdk._api import conditions
from kubefoundry_sdk._api.kinds import PODS, Object
from kubefoundry_sdk._cluster.client import Client
from kubefoundry_sdk._cluster.errors import ApiError
from kubefoundry_sdk._runtime.store import key_of

VERSION: Final = re.compile(r"truth-(\d+)")
"""The value of the variable TRUTH in a pod."""

IMAGE: Final = "example.com/engine:1.0.0"
MISSING_IMAGE: Final = "example.com/missing:1.0.0"

LOADING: Final = 6.0
"""Seconds until a pod's server answers, as recorded with Dynamo."""


class Node(Sightings):
    """The pods of all namespaces. `speed` is the number of seconds of loading that pass in one second."""

    def __init__(self, speed: float) -> None:
        super().__init__()
        self._seconds = LOADING / speed
        self._arrived: asyncio.Queue[Object] = asyncio.Queue()

    def put(self, obj: Object) -> None:
        """Record a pod, and start it if it is new."""
        known_pod = self.objects.get(key_of(obj))
        super().put(obj)
        if known_pod is None or known_pod["metadata"]["uid"] != obj["metadata"]["uid"]:
            self._arrived.put_nowait(obj)

    async def run(self, client: Client) -> None:
        """Report the status of each pod until cancelled."""
        async with asyncio.TaskGroup() as starts:
            while True:
                starts.create_task(self._start(client, await self._arrived.get()))

    def answering(self, namespace: str) -> frozenset[str]:
        """Return the versions behind the model's Service: those of ready pods that do not terminate."""
        return frozenset(
            match[1]
            for (place, _), pod in self.objects.items()
            if place == namespace and _is_ready(pod) and (match := VERSION.search(str(pod["spec"])))
        )

    async def _start(self, client: Client, pod: Object) -> None:
        [container] = pod["spec"]["containers"]
        if container["image"] == MISSING_IMAGE:
            await _report(client, pod, _waiting(container))
            return
        await asyncio.sleep(self._seconds)
        await _report(client, pod, _ready())


async def _report(client: Client, pod: Object, status: Object) -> None:
    meta = pod["metadata"]
    patch: list[dict[str, Any]] = [
        {"op": "test", "path": "/metadata/uid", "value": meta["uid"]},
        {"op": "add", "path": "/status", "value": status},
    ]
    try:
        await client.json_patch(PODS, f"{meta['name']}/status", meta["namespace"], patch, manager="kubelet")
    except ApiError as error:
        # The pod may have been deleted while it loaded.
        if not error.not_found:
            raise


def _ready() -> Object:
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {
        "phase": "Running",
        "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": now}],
    }


def _waiting(container: Object) -> Object:
    reason = {
        "reason": "ImagePullBackOff",
        "message": f'Back-off pulling image "{container["image"]}": not found',
    }
    status = {
        "name": container["name"],
        "image": container["image"],
        "imageID": "",
        "ready": False,
        "restartCount": 0,
        "state": {"waiting": reason},
    }
    return {"phase": "Pending", "containerStatuses": [status]}


def _is_ready(pod: Object) -> bool:
    is_ready = conditions.is_true((pod.get("status") or {}).get("conditions"), "Ready")
    return is_ready and "deletionTimestamp" not in pod["metadata"]
