"""LlamaStackDistributions whose pods really run, and calls to their servers."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any, Final

import aiohttp

from kubefoundry_llamastack.names import DEPLOYMENTS, INSTANCE_LABEL, LLSD, PODS, SERVICES
from kubefoundry_llamastack.observe.deployments import counts
from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._cluster.client import Client
from pods.images import distribution
from support.llamastack import llsd
from support.waiting import until

STARTED: Final = 240.0
"""Seconds within which pods have to serve or fail: its server begins to be probed after 15 (sources §5.1)."""

PORT: Final = 8321


def stack(name: str, namespace: str, *, env: list[Object] | None = None, **server: Any) -> Object:
    """A CR on the real distribution image; keywords are fields of spec.server."""
    return llsd(
        name,
        namespace,
        **{
            "distribution": {"image": distribution.NAME},
            "containerSpec": {"port": PORT, "env": env or []},
            **server,
        },
    )


def entry(provider_id: str, image: str, **config: Any) -> Object:
    """An entry of a section of externalProviders."""
    return {"providerId": provider_id, "image": image, **({"config": config} if config else {})}


async def until_ready(api: Client, name: str, namespace: str) -> Object:
    """The CR's status as soon as all is well with its newest spec: its pods serve, and the operator has asked their
    server through the Service."""

    def well(obj: Object | None) -> bool:
        status = (obj or {}).get("status") or {}
        return status.get("phase") == "Ready" and all(
            (item["status"], item["observedGeneration"]) == ("True", (obj or {})["metadata"]["generation"])
            for item in status["conditions"]
        )

    found = await until(api, LLSD, name, namespace, well, seconds=STARTED)
    assert found is not None
    return dict(found["status"])


@dataclass(frozen=True, slots=True)
class Answer:
    """What the server said: the HTTP status and its JSON."""

    status: int
    body: Any


@dataclass(frozen=True, slots=True)
class Server:
    """A llama-stack server behind its Service."""

    url: str

    @classmethod
    def of(cls, pod: Object) -> Server:
        """That of one pod, whatever others are behind the Service."""
        return cls(f"http://{pod['status']['podIP']}:{PORT}")

    async def chat(self, model: str, text: str) -> Answer:
        """A chat completion; the body is the text of the answer where there is one."""
        asked = {"model": model, "messages": [{"role": "user", "content": text}]}
        answer = await self.ask("POST", "/v1/chat/completions", asked)
        if answer.status != 200:
            return answer
        return Answer(200, answer.body["choices"][0]["message"]["content"])

    async def shield(self, shield: str, text: str) -> Answer:
        """Runs a shield on a message; the body is the violation, None where there is none."""
        message = {"role": "user", "content": text}
        asked = {"shield_id": shield, "messages": [message], "params": {}}
        answer = await self.ask("POST", "/v1/safety/run-shield", asked)
        return Answer(200, answer.body.get("violation")) if answer.status == 200 else answer

    async def providers(self) -> dict[str, Object]:
        """What /v1/providers lists, by id."""
        listed = await self.ask("GET", "/v1/providers")
        return {item["provider_id"]: item for item in listed.body["data"]}

    async def ask(self, method: str, path: str, body: Any = None) -> Answer:
        async with (
            aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=60)) as session,
            session.request(method, f"{self.url}{path}", json=body) as response,
        ):
            return Answer(response.status, await response.json())


async def server(api: Client, name: str, namespace: str) -> Server:
    """The server behind the CR's Service, at the address that its clients use."""
    return await behind(api, f"{name}-service", namespace)


async def behind(api: Client, service: str, namespace: str) -> Server:
    """What a Service leads to."""
    spec = (await api.get(SERVICES, service, namespace))["spec"]
    return Server(f"http://{spec['clusterIP']}:{spec['ports'][0]['port']}")


async def until_answers(server: Server, path: str) -> None:
    """Waits until GET of the path is answered with 200."""
    async with asyncio.timeout(STARTED):
        while True:
            try:
                if (await server.ask("GET", path)).status == 200:
                    return
            except (aiohttp.ClientError, TimeoutError):
                # Nobody listens yet; the probe of a kubelet asks again, too.
                await asyncio.sleep(0.05)


async def until_rolled_out(api: Client, name: str, namespace: str, *, generation: int) -> None:
    """Waits until all pods are of that generation of the Deployment, and serve."""

    def complete(obj: Object | None) -> bool:
        if obj is None or obj["metadata"]["generation"] < generation:
            return False
        found = counts(obj)
        return found.enough and found.complete

    await until(api, DEPLOYMENTS, name, namespace, complete, seconds=STARTED)


async def serving_pod(api: Client, name: str, namespace: str) -> Object:
    """The CR's only pod that is not about to end."""
    items, _ = await api.list(PODS, namespace, selector={"labelSelector": f"{INSTANCE_LABEL}={name}"})
    [pod] = [item for item in items if not item["metadata"].get("deletionTimestamp")]
    return pod
