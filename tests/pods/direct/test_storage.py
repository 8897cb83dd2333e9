"""Weights in a claim: what the hub is asked at a first start, at a restart, by a second replica, and offline."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from kubefoundry_nodes.kubelet import addresses
from kubefoundry_nodes.llama import hub, image
from kubefoundry_nodes.llama.hub import Hub
from kubefoundry_sdk._api.kinds import Kind
from kubefoundry_sdk._cluster.client import Client
from pods.direct.models import REPOSITORY, SERVED, created, failed, running, tiny, words
from support.wishes import change_spec

pytestmark = pytest.mark.integration

CLAIMS: Final = Kind("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim", built_in=True)
MODEL: Final = {"id": f"{REPOSITORY}/{image.MODEL}", "servedName": SERVED}


@pytest.fixture
def own(models: Hub, tmp_path: Path) -> Iterator[Hub]:
    """Yield a hub for one test: models of earlier tests may start again, and fetch theirs."""
    file = tmp_path / models.file
    file.write_bytes(models.content)
    with hub.serving(addresses.NODE, 0, REPOSITORY, file) as made:
        yield made


@pytest.fixture
async def claim(api: Client, namespace: str) -> str:
    body = {
        "apiVersion": CLAIMS.api_version,
        "kind": CLAIMS.kind,
        "metadata": {"name": "weights", "namespace": namespace},
        "spec": {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    await api.create(CLAIMS, body, manager="test")
    return "weights"


def model(claim: str, **storage: Any) -> dict[str, Any]:
    """Return `spec.model` with its cache in a claim."""
    volume = {"name": "weights", "claimName": claim, "purpose": "modelCache"}
    read_only = {"readOnly": True} if storage.get("offline") else {}
    return {**MODEL, "storage": {"volumes": [{**volume, **read_only}], **storage}}


async def test_weights_in_a_claim_of_the_provider_are_fetched_once(
    api: Client, namespace: str, own: Hub, claim: str
) -> None:
    await created(api, tiny(namespace, own, overrides={"cacheClaim": claim}))
    await running(api, namespace)
    assert own.downloads == 1

    await change_spec(api, namespace, "/spec/engine/contextLength", 1024)
    await running(api, namespace)

    assert own.downloads == 1


async def test_hub_gets_no_request_when_model_is_offline(
    api: Client, namespace: str, own: Hub, claim: str
) -> None:
    await created(api, tiny(namespace, own, model=model(claim)))
    await running(api, namespace)
    first = own.requests
    assert own.downloads == 1

    await change_spec(api, namespace, "/spec/scaling", {"replicas": 2})
    await running(api, namespace, 2)
    second = own.requests

    await change_spec(api, namespace, "/spec/model", model(claim, offline=True))
    await running(api, namespace, 2)

    print(
        f"requests: {first} at the first start, {second - first} of a second replica, {own.requests - second} offline"
    )
    assert own.downloads == 1
    assert second > first
    assert own.requests == second
    assert "data: {" in await words(api, namespace, max_tokens=1)


async def test_model_without_weights_fails_when_offline(
    api: Client, namespace: str, own: Hub, claim: str
) -> None:
    await created(api, tiny(namespace, own, model=model(claim, offline=True)))

    await failed(api, namespace, "failed to load model")

    assert own.requests == 0
