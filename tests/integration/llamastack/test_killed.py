"""Tests kills of the operator before and after each of its writes: the result is the same as without a kill."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pytest
from aiohttp import web

from kubefoundry_llamastack.names import DEPLOYMENTS, LLSD
from kubefoundry_local.suite import Component, Suite
from kubefoundry_sdk._api.kinds import CONFIG_MAPS, Object
from kubefoundry_sdk._cluster.client import Client
from support.llamastack import ECHO, condition_of, edit, llsd, until_status
from support.proxy import Fault, Proxy, between

pytestmark = pytest.mark.integration

PEM = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"
WRITES = frozenset({"POST", "PUT", "PATCH", "DELETE"})
When = Literal["before", "after"]
KILLED = "killed"
"""The namespace whose writes are watched for."""

WISH: dict[str, Any] = {
    "externalProviders": {"inference": [ECHO]},
    "userConfig": {"configMapName": "conf"},
    "tlsConfig": {"caBundle": {"configMapName": "cas"}},
    "storage": {"size": "1Gi"},
    "podDisruptionBudget": {"minAvailable": 1},
}


@dataclass(slots=True)
class Deaths:
    """Kills the operator at each write at which it has not died yet."""

    component: Component
    proxy: Proxy
    when: When | None = None
    died: set[str] = field(default_factory=set)
    reported: asyncio.Event = field(default_factory=asyncio.Event)
    """A write of the status is among those."""

    def before(self, request: web.Request) -> Fault | None:
        if self.when == "before" and self._new(request):
            self.component.kill()
            return Fault(503, "ServiceUnavailable")
        return None

    def after(self, request: web.Request) -> None:
        if self.when == "after" and self._new(request):
            self.component.kill()

    async def count(self) -> int:
        """Return how many writes have killed it since the last call, the last of them a status."""
        if self.when is None:
            return 0
        # a watch may show a status before its writer has the answer
        await self.reported.wait()
        self.reported.clear()
        counted = len(self.died)
        self.died.clear()
        return counted

    def _new(self, request: web.Request) -> bool:
        write = f"{request.method} {request.path}"
        if request.method not in WRITES or request.path.endswith("/events") or write in self.died:
            return False
        if f"/namespaces/{KILLED}/" not in request.path:
            # the status of the CR that was left alone still reports its pods
            return False
        self.died.add(write)
        if request.path.endswith("/status"):
            self.reported.set()
        return self.component.running


@pytest.fixture
async def deaths(idle: Suite, tmp_path: Path) -> AsyncIterator[Deaths]:
    component = idle.install("llamastack")
    # the Lease of one that is killed would have to run out each time
    component.command = ["--leader-elect=false" if "leader" in word else word for word in component.command]
    # each life with another order of sets, as in a pod; forked processes share one
    component.environment["PYTHONHASHSEED"] = "random"
    account = Path(component.environment["KUBEFOUNDRY_SERVICE_ACCOUNT_DIR"])
    authority = tmp_path / "ca.crt"
    authority.write_bytes((account / "ca.crt").read_bytes())
    async with between(component, idle.plane.server, authority, tmp_path / "proxy") as proxy:
        killer = Deaths(component, proxy)
        proxy.rule, proxy.done = killer.before, killer.after
        yield killer


async def lives_until(deaths: Deaths, condition: Callable[[], Coroutine[Any, Any, Object]]) -> None:
    """Start the operator as often as it dies, until the condition returns."""
    while True:
        component = deaths.component
        if not component.running:
            component.start()
        process = component.process
        assert process is not None
        died = asyncio.create_task(asyncio.to_thread(process.wait))
        waiting = asyncio.create_task(condition())
        await asyncio.wait({died, waiting}, return_when=asyncio.FIRST_COMPLETED)
        if waiting.done():
            waiting.result()
            return
        waiting.cancel()


def template(live: Object, namespace: str) -> str:
    return str(live["spec"]["template"]).replace(namespace, "NAMESPACE")


async def prepare(api: Client, namespace: str) -> None:
    for name, data in (("conf", {"config.yaml": "version: 2"}), ("cas", {"ca-bundle.crt": PEM})):
        meta = {"name": name, "namespace": namespace}
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}
        await api.create(CONFIG_MAPS, body, manager="user")


def newer(cr: Object) -> None:
    server = cr["spec"]["server"]
    server["externalProviders"]["inference"][0]["image"] = "example.com/echo:2"
    for part in ("tlsConfig", "storage", "podDisruptionBudget"):
        del server[part]


@pytest.mark.parametrize("when", ["before", "after"])
async def test_operator_recovers_from_kill_at_every_write(
    api: Client, idle: Suite, deaths: Deaths, when: When
) -> None:
    results: dict[str, list[Object]] = {}
    died = []
    for namespace, kills in (("undisturbed", None), (KILLED, when)):
        idle.plane.kubectl("create", "namespace", namespace)
        await prepare(api, namespace)
        deaths.when = kills
        await api.create(LLSD, llsd("chat", namespace, **WISH), manager="user")
        first = await settled(api, deaths, namespace, 1)
        died.append(await deaths.count())
        await edit(api, "chat", namespace, newer)
        results[namespace] = [first, await settled(api, deaths, namespace, 2)]
        died.append(await deaths.count())
        deaths.when = None

    # account, claim, Service, three ConfigMaps, Deployment, budget, status;
    # then record, Deployment, two that go, status
    assert died == [0, 0, 9, 5]
    assert [live["metadata"]["generation"] for live in results["killed"]] == [1, 2]
    for undisturbed, killed in zip(results["undisturbed"], results["killed"], strict=True):
        assert template(undisturbed, "undisturbed") == template(killed, "killed")


async def settled(api: Client, deaths: Deaths, namespace: str, generation: int) -> Object:
    """Return the Deployment once the status is of that generation of the CR."""

    async def reported() -> Object:
        return await until_status(
            api,
            "chat",
            namespace,
            lambda status: condition_of(status, "DeploymentReady").get("observedGeneration") == generation,
        )

    await lives_until(deaths, reported)
    return await api.get(DEPLOYMENTS, "chat", namespace)
