"""Providers of every kind behind one real server: in the server, in sidecars, in own pods, and a ModelDeployment."""

from __future__ import annotations

from typing import Final

import pytest

from kubefoundry_llamastack.names import LLSD
from kubefoundry_local.suite import Suite
from kubefoundry_nodes.kubelet.runner import Node
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS, Object
from kubefoundry_sdk._cluster.client import Client
from pods.images import provider
from pods.images.provider import ECHO, GUARD, SHOUT, WHISPER
from pods.llama_stack.distributions import entry, server, stack, until_ready
from pods.llama_stack.engines import MODEL, report, start
from support.deployments import GPU, model_deployment

pytestmark = [pytest.mark.integration, pytest.mark.thorough]

PLAIN: Final = "example.com/acme-plain:1"
MURMUR, DISTANT = "example.com/acme-murmur:1", "example.com/acme-distant:1"
DENIED: Final = "password"

SIDECAR: Final[Object] = {"mode": "Sidecar"}
SERVICES: Final[dict[str, tuple[str, Object]]] = {
    "shout": (SHOUT, SIDECAR),
    "whisper": (WHISPER, {**SIDECAR, "transport": "TCP"}),
    "murmur": (MURMUR, SIDECAR),
    "distant": (DISTANT, {"mode": "Deployment"}),
}
"""Image and service of each provider that has one."""
INLINE: Final = {"echo": ECHO, "plain": PLAIN}
"""Image of each inference provider in the server. The third one is for the API safety."""


@pytest.fixture(scope="module")
def images(
    node: Node, examples: None, served_images: None, engine: None, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The node has all images."""
    work = tmp_path_factory.mktemp("kinds")
    files = provider.scaffolded("inference", "acme-plain")
    [wheel] = provider.wheels([files], work / "plain")
    node.add(provider.image(PLAIN, work / "image", files["lls-provider-spec.yaml"], [wheel]))
    sources = {
        name: provider.scaffolded_service(name[len("example.com/") : -2]) for name in (MURMUR, DISTANT)
    }
    for image in provider.served(sources, work / "served"):
        node.add(image)


def cr(namespace: str) -> Object:
    inline = [entry(name, image, prefix=f"{name}: ") for name, image in INLINE.items()]
    served = [
        {**entry(name, image, prefix=f"{name}: "), "service": service}
        for name, (image, service) in SERVICES.items()
    ]
    return stack(
        "chat",
        namespace,
        env=[{"name": "SHIELD_PROVIDER", "value": "guard"}],
        externalProviders={
            "inference": [*inline, *served],
            "safety": [entry("guard", GUARD, deny=[DENIED])],
        },
        modelDeployments=[{"name": "llama", "providerId": "local"}],
    )


@pytest.mark.accept("L2-18")
async def test_providers_of_every_kind_answer_and_are_listed(
    api: Client, suite: Suite, images: None, namespace: str
) -> None:
    await start(api, suite, namespace, {"first": 80})
    await api.create(MODEL_DEPLOYMENTS, model_deployment("llama", namespace, GPU), manager="user")
    await report(api, namespace, True, "first", 80)
    await api.create(LLSD, cr(namespace), manager="user")

    status = await until_ready(api, "chat", namespace)

    live = await server(api, "chat", namespace)
    said = {name: (await live.chat(f"{name}/echo-1", "ping")).body for name in (*INLINE, *SERVICES)}
    model = await live.chat(f"local/{MODEL}", "ping")
    refused = await live.shield("words", DENIED)
    assert said == {
        **{name: f"{name}: ping" for name in INLINE},
        **{name: f"{name}: PING" for name in SERVICES},
    }
    assert model.body == "first heard ping"
    assert refused.body["user_message"] == f"'{DENIED}' is not allowed here"
    rows = {row["providerId"]: (row["mode"], row["ready"]) for row in status["externalProviderStatus"]}
    assert rows == {
        **dict.fromkeys(("guard", *INLINE), ("Inline", True)),
        **{name: (service["mode"], True) for name, (_, service) in SERVICES.items()},
    }
    assert status["providersReady"] == "7/7"
    assert [(row["name"], row["ready"]) for row in status["modelDeployments"]] == [("llama", True)]
