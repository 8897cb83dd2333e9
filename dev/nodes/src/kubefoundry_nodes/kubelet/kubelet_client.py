"""Requests of a kubelet to the API server that the SDK's client does not have."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from kubefoundry_sdk._api.kinds import CONFIG_MAPS, PODS, SECRETS, Kind, Object
from kubefoundry_sdk._cluster.client import Client
from kubefoundry_sdk._cluster.errors import ApiError, Unreachable
from kubefoundry_sdk._cluster.requests import path

MANAGER: Final = "pod-runner"
AGAIN: Final = 0.5
"""Seconds between attempts while the server does not answer."""

NODES: Final = Kind("", "v1", "nodes", "Node", namespaced=False)
SERVICES: Final = Kind("", "v1", "services", "Service")
ENDPOINT_SLICES: Final = Kind("discovery.k8s.io", "v1", "endpointslices", "EndpointSlice")
CLAIMS: Final = Kind("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim")
VOLUMES: Final = Kind("", "v1", "persistentvolumes", "PersistentVolume", namespaced=False)

CHANGED: Final = (409, 422)
"""Codes of a patch whose `test` failed because the object has changed."""

CONTENTS: Final = {"ConfigMap": CONFIG_MAPS, "Secret": SECRETS}


class KubeletClient(Client):
    """A client that repeats a request if the server does not answer or asks for a retry. Calls raise ApiError."""

    async def __aenter__(self) -> KubeletClient:
        await super().__aenter__()
        return self

    async def _call(self, *arguments: Any, **more: Any) -> Object:
        while True:
            try:
                return await super()._call(*arguments, **more)
            except Unreachable:
                await asyncio.sleep(AGAIN)
            except ApiError as error:
                if error.retry_after is None:
                    raise
                await asyncio.sleep(error.retry_after)

    async def find(self, kind: Kind, name: str, namespace: str | None = None) -> Object | None:
        """Return an object, or None if it does not exist."""
        try:
            return await self.get(kind, name, namespace)
        except ApiError as error:
            if error.not_found:
                return None
            raise

    async def content(self, kind: str, name: str, namespace: str) -> Object | None:
        """Return a `ConfigMap` or `Secret`, or None if it does not exist."""
        return await self.find(CONTENTS[kind], name, namespace)

    async def bind(self, pod: Object, node: str) -> None:
        """Bind a pod to a node."""
        meta = pod["metadata"]
        await self._call(
            "POST",
            f"{path(PODS, meta['namespace'], meta['name'])}/binding",
            {"fieldManager": MANAGER},
            {
                "apiVersion": "v1",
                "kind": "Binding",
                "metadata": {key: meta[key] for key in ("name", "namespace", "uid")},
                "target": {"apiVersion": "v1", "kind": "Node", "name": node},
            },
        )

    async def token(self, pod: Object, account: str, audience: str | None, seconds: int) -> str:
        """Return a token of a ServiceAccount that is valid while the pod exists."""
        meta = pod["metadata"]
        bound = {"apiVersion": "v1", "kind": "Pod", "name": meta["name"], "uid": meta["uid"]}
        answer = await self._call(
            "POST",
            f"{path(Kind('', 'v1', 'serviceaccounts', ''), meta['namespace'], account)}/token",
            None,
            {
                "apiVersion": "authentication.k8s.io/v1",
                "kind": "TokenRequest",
                "spec": {
                    "audiences": [audience] if audience else [],
                    "expirationSeconds": seconds,
                    "boundObjectRef": bound,
                },
            },
        )
        return str(answer["status"]["token"])

    async def put_status(self, kind: Kind, seen: Object, status: Object) -> Object | None:
        """Replace the status of an object, and return it, or None if it has changed or is gone since it was read."""
        meta = seen["metadata"]
        operations = [
            {"op": "test", "path": "/metadata/uid", "value": meta["uid"]},
            {"op": "test", "path": "/metadata/resourceVersion", "value": meta["resourceVersion"]},
            # `add` replaces an existing member.
            {"op": "add", "path": "/status", "value": status},
        ]
        try:
            return await self.json_patch(
                kind, f"{meta['name']}/status", meta.get("namespace"), operations, manager=MANAGER
            )
        except ApiError as error:
            if error.not_found or error.code in CHANGED:
                return None
            raise

    async def remove(self, pod: Object) -> None:
        """Delete a pod whose containers have ended, without grace."""
        meta = pod["metadata"]
        options = {"gracePeriodSeconds": 0, "preconditions": {"uid": meta["uid"]}}
        body = {"apiVersion": "v1", "kind": "DeleteOptions", **options}
        try:
            await self._call("DELETE", path(PODS, meta["namespace"], meta["name"]), None, body)
        except ApiError as error:
            if not (error.not_found or error.conflict):
                raise
