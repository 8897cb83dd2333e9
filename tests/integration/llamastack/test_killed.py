"""Tests kills of the operator before and after each of its writes: the result is the same as without a kill."""

from __future__ import annotations

import asyncio
import re
from base64 import b64decode
from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal

import pytest
from aiohttp import web

from kubefoundry_llamastack.names import AUTOSCALERS, DEPLOYMENTS, DISRUPTION_BUDGETS, LLSD
from kubefoundry_llamastack.provider_children import KINDS
from kubefoundry_local.suite import Component, Suite
from kubefoundry_sdk._api.kinds import CONFIG_MAPS, Object
from kubefoundry_sdk._cluster.client import Client
from support.llamastack import ECHO, GUARD, condition_of, edit, llsd, until_gone, until_object, until_status
from support.own_pods import own_pod, run, run_server, variable
from support.proxy import Fault, Proxy, between

pytestmark = [pytest.mark.integration, pytest.mark.thorough]

PEM = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"
WRITES = frozenset({"POST", "PUT", "PATCH", "DELETE"})
When = Literal["before", "after"]
KILLED = "killed"
"""The namespace whose writes are watched for."""

INPUT: Final = re.compile("(?:[A-Za-z0-9+/]{4}){16,}(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?")
"""An input of the tool in a pod template, which may have the address of a service and so the namespace."""

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
    component = idle.install("llamastack", environment={"KUBEFOUNDRY_PROVIDER_SERVICES": "true"})
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
    """Return the pod template as text, with the tool's inputs decoded and without the namespace."""
    text = INPUT.sub(
        lambda found: b64decode(found[0]).decode(errors="replace"), str(live["spec"]["template"])
    )
    return text.replace(namespace, "NAMESPACE")


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


@pytest.mark.accept("L2-30")
@pytest.mark.parametrize("when", ["before", "after"])
async def test_own_pods_recover_from_kill_at_every_write(
    api: Client, idle: Suite, deaths: Deaths, when: When
) -> None:
    """A sidecar gets pods of its own, and is a sidecar again."""
    results: dict[str, list[tuple[int, str]]] = {}
    deletions = []
    for namespace, kills in (("undisturbed", None), (KILLED, when)):
        idle.plane.kubectl("create", "namespace", namespace)
        deaths.when = kills
        providers = {"safety": [{**GUARD, "service": {}}]}
        await api.create(LLSD, llsd("chat", namespace, externalProviders=providers), manager="user")
        sidecar = await settled(api, deaths, namespace, 1)
        await run_server(api, "chat", namespace, variable(sidecar))
        await edit(api, "chat", namespace, set_mode("Deployment"))
        await settled(api, deaths, namespace, 2)
        await run(api, await own_pod(api, "chat", namespace))
        own = await rolled_out(api, deaths, namespace, "http://")
        for kind in KINDS:
            if kind not in (AUTOSCALERS, DISRUPTION_BUDGETS):
                await api.get(kind, "chat-guard-provider", namespace)
        await edit(api, "chat", namespace, set_mode("Sidecar"))
        back = await rolled_out(api, deaths, namespace, "http+unix://")
        await lives_until(deaths, partial(none_left, api, namespace))
        results[namespace] = [
            (live["metadata"]["generation"], template(live, namespace)) for live in (sidecar, own, back)
        ]
        deletions.append({write for write in deaths.died if write.startswith("DELETE ")})
        deaths.when = None

    assert [generation for generation, _ in results["killed"]] == [1, 2, 3]
    assert results["killed"] == results["undisturbed"]
    assert [len(paths) for paths in deletions] == [0, 4]


def set_mode(mode: str) -> Callable[[Object], None]:
    def change(cr: Object) -> None:
        [provider] = cr["spec"]["server"]["externalProviders"]["safety"]
        provider["service"] = {"mode": mode}

    return change


async def rolled_out(api: Client, deaths: Deaths, namespace: str, scheme: str) -> Object:
    """Return the server's Deployment once a pod runs in which the service has such an address."""

    async def written() -> Object:
        return await until_object(
            api, DEPLOYMENTS, "chat", namespace, lambda obj: str(variable(obj)).startswith(scheme)
        )

    await lives_until(deaths, written)
    live = await api.get(DEPLOYMENTS, "chat", namespace)
    await run_server(api, "chat", namespace, variable(live))
    return live


async def none_left(api: Client, namespace: str) -> Object:
    """Wait until no object of the service exists."""
    for kind in KINDS:
        await until_gone(api, kind, "chat-guard-provider", namespace)
    return {}
