"""A new version of a provider with another default image restarts nothing; only edited models change."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from kubefoundry_local.audit_log import requests_by_user
from kubefoundry_local.suite import Suite
from kubefoundry_sdk._api.kinds import CONFIG_MAPS, MODEL_DEPLOYMENTS, Object
from kubefoundry_sdk._cluster.client import Client
from support.changes.seen import runs
from support.deployments import GPU, model_deployment
from support.kinds import UPSTREAM
from support.restarts import restarted
from support.waiting import phase, until, until_deployment

pytestmark = pytest.mark.integration

OLD = "example.com/engine:2.54.0"
NEW = "example.com/engine:2.55.0"


@pytest.fixture(params=UPSTREAM)
def provider(request: pytest.FixtureRequest, suite: Suite) -> Iterator[str]:
    """A provider whose process runs with the old default image."""
    with restarted(suite.components[request.param], default(OLD)):
        yield request.param


PRESET = {**GPU, "model": {"id": "microsoft/phi-4"}}


def default(image: str) -> dict[str, str]:
    return {"KUBEFOUNDRY_DEFAULT_IMAGE": f"vllm={image}"}


async def running(api: Client, namespace: str, name: str, provider: str) -> Object:
    """The upstream object of a new ModelDeployment, at rest."""
    body = model_deployment(name, namespace, GPU, provider=provider)
    await api.create(MODEL_DEPLOYMENTS, body, manager="test")
    await until_deployment(api, name, namespace, lambda obj: phase(obj) == "Running")
    live = await until(api, UPSTREAM[provider], name, namespace, runs)
    assert live is not None
    return live


def writes(suite: Suite, namespace: str, name: str, start: int) -> list[str]:
    """Requests that changed an upstream object, by anyone, since then."""
    assert suite.plane.audit_log is not None
    plurals = {kind.plural for kind in UPSTREAM.values()}
    return [
        f"{entry['verb']} {entry['requestURI']} by {entry['user']['username']}"
        for entry in requests_by_user(suite.plane.audit_log, start)
        if entry["verb"] not in ("get", "list", "watch")
        and entry.get("objectRef", {}).get("resource") in plurals
        and (entry["objectRef"].get("namespace"), entry["objectRef"].get("name")) == (namespace, name)
    ]


async def test_upgrade_writes_nothing_and_a_scale_only_the_scale(
    suite: Suite, api: Client, namespace: str, provider: str
) -> None:
    kind = UPSTREAM[provider]
    before = await running(api, namespace, "m", provider)
    assert OLD in str(runs(before))
    assert suite.plane.audit_log is not None
    start = suite.plane.audit_log.stat().st_size

    with restarted(suite.components[provider], default(NEW)):
        # the new provider looks at what is there before it comes to what is made later
        later = await running(api, namespace, "later", provider)
        assert NEW in str(runs(later))
        assert writes(suite, namespace, "m", start) == []
        assert (await api.get(kind, "m", namespace))["metadata"] == before["metadata"]

        if provider == "kaito":
            return  # serves one replica only
        suite.plane.kubectl("scale", "md/m", "-n", namespace, "--replicas=3")
        scaled = await until_deployment(
            api, "m", namespace, lambda obj: (obj["status"].get("replicas") or {}).get("ready") == 3
        )

    assert phase(scaled) == "Running"
    after = await api.get(kind, "m", namespace)
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert (
        different(before["spec"], after["spec"])
        == {
            "dynamo": {".services.VllmWorker.replicas"},
            "kuberay": {".serveConfigV2"},
        }[provider]
    )
    assert NEW not in str(runs(after))


async def test_serving_preset_keeps_its_config_on_a_new_default(
    suite: Suite, api: Client, namespace: str
) -> None:
    body = model_deployment("m", namespace, PRESET, provider="kaito")
    await api.create(MODEL_DEPLOYMENTS, body, manager="test")
    await until_deployment(api, "m", namespace, lambda obj: phase(obj) == "Running")
    before = await api.get(UPSTREAM["kaito"], "m", namespace)
    config = await api.get(CONFIG_MAPS, before["inference"]["config"], namespace)
    assert suite.plane.audit_log is not None
    start = suite.plane.audit_log.stat().st_size

    with restarted(suite.components["kaito"], default(NEW)):
        # it comes to what is made later only after it has looked at what is there
        later = await running(api, namespace, "later", "kaito")

    assert NEW in str(later)
    assert writes(suite, namespace, "m", start) == []
    assert (await api.get(UPSTREAM["kaito"], "m", namespace))["inference"] == before["inference"]
    # one that is deleted is soon recreated, with another uid
    assert await api.get(CONFIG_MAPS, before["inference"]["config"], namespace) == config


CHANGES: dict[str, tuple[dict[str, Any], str]] = {
    "refresh": ({"path": "/metadata/annotations", "value": {"kubefoundry.ai/refresh": "1"}}, NEW),
    "identity": ({"path": "/spec/model/id", "value": "org/other"}, NEW),
    "image": ({"path": "/spec/image", "value": NEW}, NEW),
    "another-field": ({"path": "/spec/engine/contextLength", "value": 8192}, OLD),
}
"""By the name of a ModelDeployment what the user changes on it, and the image that it has then."""


async def test_edited_models_take_the_new_default_image(
    suite: Suite, api: Client, namespace: str, provider: str
) -> None:
    before = {name: await running(api, namespace, name, provider) for name in CHANGES}

    with restarted(suite.components[provider], default(NEW)):
        await asyncio.gather(
            *(changed(api, namespace, provider, name, *CHANGES[name], before[name]) for name in CHANGES)
        )


async def changed(
    api: Client, namespace: str, provider: str, name: str, patch: dict[str, Any], image: str, before: Object
) -> None:
    change = [{"op": "add", **patch}]
    edited = await api.json_patch(MODEL_DEPLOYMENTS, name, namespace, change, manager="test")

    # KAITO's operator waits for the garbage collector, which learns of new kinds every 30 s only
    live = await until(
        api,
        UPSTREAM[provider],
        name,
        namespace,
        lambda obj: runs(obj) and runs(obj) != runs(before),
        seconds=300,
    )
    await until_deployment(
        api,
        name,
        namespace,
        lambda obj: (
            phase(obj) == "Running"
            and obj["status"]["observedGeneration"] == edited["metadata"]["generation"]
        ),
    )
    assert image in str(runs(live)), name
    assert ({OLD, NEW} - {image}).pop() not in str(runs(live)), name


def different(old: Any, new: Any, path: str = "") -> set[str]:
    """Paths at which the two differ in more than empty objects, which operators and API server add and drop."""
    if old == new or not (old or new):
        return set()
    if isinstance(old, dict) and isinstance(new, dict):
        return set().union(*(different(old.get(key), new.get(key), f"{path}.{key}") for key in {*old, *new}))
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        return set().union(*(different(*pair, path) for pair in zip(old, new, strict=True)))
    return {path}
