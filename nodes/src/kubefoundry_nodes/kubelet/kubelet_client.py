"""The API server as a kubelet talks to it: what the SDK's client has no call for, because none of ours needs it."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from kubefoundry_sdk.api.kinds import CONFIG_MAPS, PODS, SECRETS, Kind, Object
from kubefoundry_sdk.cluster.client import Client
from kubefoundry_sdk.cluster.errors import ApiError, Unreachable
from kubefoundry_sdk.cluster.requests import path

MANAGER: Final = "pod-runner"
AGAIN: Final = 0.5
"""Seconds until a server that does not answer is asked again."""

NODES: Final = Kind("", "v1", "nodes", "Node", namespaced=False)
SERVICES: Final = Kind("", "v1", "services", "Service")
ENDPOINT_SLICES: Final = Kind("discovery.k8s.io", "v1", "endpointslices", "EndpointSlice")
CLAIMS: Final = Kind("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim")
VOLUMES: Final = Kind("", "v1", "persistentvolumes", "PersistentVolume", namespaced=False)

CHANGED: Final = (409, 422)
"""Answers to a patch whose `test` does not hold: the object has changed meanwhile."""

CONTENTS: Final = {"ConfigMap": CONFIG_MAPS, "Secret": SECRETS}


class KubeletClient(Client):
    """Calls raise ApiError; a server that does not answer, or asks to come again, is asked again."""

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
        try:
            return await self.get(kind, name, namespace)
        except ApiError as error:
            if error.not_found:
                return None
            raise

    async def content(self, kind: str, name: str, namespace: str) -> Object | None:
        """A `ConfigMap` or `Secret`."""
        return await self.find(CONTENTS[kind], name, namespace)

    async def bind(self, pod: Object, node: str) -> None:
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
        """Of a ServiceAccount, valid while the pod exists."""
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
        """Replaces the status of an object in the very state that was seen; the object, or None where it has changed
        or is gone."""
        meta = seen["metadata"]
        operations = [
            {"op": "test", "path": "/metadata/uid", "value": meta["uid"]},
            {"op": "test", "path": "/metadata/resourceVersion", "value": meta["resourceVersion"]},
            # `add` replaces a member that is there.
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
        """The end of a pod whose containers have ended: the object goes at once."""
        meta = pod["metadata"]
        options = {"gracePeriodSeconds": 0, "preconditions": {"uid": meta["uid"]}}
        body = {"apiVersion": "v1", "kind": "DeleteOptions", **options}
        try:
            await self._call("DELETE", path(PODS, meta["namespace"], meta["name"]), None, body)
        except ApiError as error:
            if not (error.not_found or error.conflict):
                raise
