"""LlamaStackDistributions whose pods really run, and calls to their servers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import aiohttp

from kubefoundry_llamastack.names import DEPLOYMENTS, INSTANCE_LABEL, PODS, SERVICES
from kubefoundry_llamastack.observe.deployments import counts
from kubefoundry_sdk.api.kinds import Object
from kubefoundry_sdk.cluster.client import Client
from pods.images import distribution
from support.llamastack import llsd, until_status
from support.waiting import until

STARTED: Final = 240.0
"""Seconds within which pods have to serve or fail: its server begins to be probed after 15 (facts §2)."""

PORT: Final = 8321

ECHO: Final = "example.com/acme-echo:0.1.0"
GUARD: Final = "example.com/acme-guard:0.1.0"
"""Images of the providers of examples/llamastack."""


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
    """The CR's status as soon as its pods serve and its server has answered the operator."""
    return await until_status(
        api,
        name,
        namespace,
        lambda status: status.get("phase") == "Ready" and "providers" in status.get("distributionConfig", {}),
        seconds=STARTED,
    )


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
    service = await api.get(SERVICES, f"{name}-service", namespace)
    return Server(f"http://{service['spec']['clusterIP']}:{service['spec']['ports'][0]['port']}")


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
