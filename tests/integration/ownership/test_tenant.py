"""A tenant with `edit` on the namespace: no edit of upstream objects makes a status lie or a provider delete."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from kubefoundry_local.suite import Suite
from kubefoundry_sdk._api import names
from kubefoundry_sdk._api.kinds import CONFIG_MAPS, MODEL_DEPLOYMENTS, Object
from kubefoundry_sdk._cluster.client import Client
from kubefoundry_sdk._runtime import repairs
from support.deployments import CPU, GPU, model_deployment
from support.events import notes, until_event
from support.metrics import sample, until_scraped
from support.tenant import KINDS, deployments_available, tenant
from support.tenant_edits import ENGINE, MARKS, content, patch
from support.waiting import message, phase, reason, serves, until, until_deployment

pytestmark = pytest.mark.integration

PAUSE = patch("add", "/metadata/annotations", {names.PAUSED_ANNOTATION: "true"})
WHO = "kubectl-edit"


@pytest.fixture
async def user(suite: Suite, api: Client, namespace: str, tmp_path: Path) -> AsyncIterator[Client]:
    """The tenant of the test's namespace, in which Deployments become available."""
    async with tenant(suite, namespace, tmp_path) as client, deployments_available(api, namespace):
        yield client


async def serving(user: Client, namespace: str, provider: str, *models: str) -> Object:
    """Create these models, and return the first once all serve."""
    spec = CPU if provider == "direct" else GPU
    for name in models:
        body = model_deployment(name, namespace, spec, provider=provider)
        await user.create(MODEL_DEPLOYMENTS, body, manager="test")
    served = [await until_deployment(user, name, namespace, serves) for name in models]
    return served[0]


async def config_of(user: Client, namespace: str, model: str) -> Object:
    items, _ = await user.list(CONFIG_MAPS, namespace)
    [found] = [item for item in items if item["metadata"]["name"].startswith(f"{model}-inference")]
    return found


async def test_change_that_cannot_be_reverted_is_not_ready(
    suite: Suite, user: Client, namespace: str
) -> None:
    await serving(user, namespace, "kaito", "m")
    config = (await config_of(user, namespace, "m"))["metadata"]["name"]

    change = [patch("replace", "/data/inference_config.yaml", "vllm: {}"), patch("add", "/immutable", True)]
    await user.json_patch(CONFIG_MAPS, config, namespace, change, manager=WHO)

    held = await until_deployment(user, "m", namespace, lambda obj: not serves(obj))
    assert phase(held) == "Running"
    assert reason(held, "ResourceCreated") == "ApplyRejected"
    words = held["status"]["message"]
    assert f"change the ConfigMap '{config}' accordingly" in words
    assert (
        f"others changed data.inference_config.yaml of ConfigMap '{config}', which is not reverted yet"
        in words
    )
    assert words.endswith(
        f"ConfigMap '{config}' has fields that others added: immutable ({WHO}); they are left as they are"
    )


@pytest.mark.parametrize("provider", ["direct", "dynamo"])
async def test_made_up_owner_of_a_status_stops_no_repair(
    suite: Suite, user: Client, namespace: str, provider: str
) -> None:
    model = await serving(user, namespace, provider, "m")
    kind, path = KINDS[provider], f"{ENGINE[provider]}/args"
    before = content(await user.get(kind, "m", namespace))

    entries = [
        {key: value for key, value in entry.items() if key != "subresource"}
        for entry in model["metadata"]["managedFields"]
    ]
    forged = [patch("replace", "/metadata/managedFields", entries)]
    await user.json_patch(MODEL_DEPLOYMENTS, "m", namespace, forged, manager=WHO)
    await user.json_patch(kind, "m", namespace, [patch("replace", path, ["other"])], manager=WHO)

    await until(user, kind, "m", namespace, lambda obj: obj and content(obj) == before)
    assert "args" in await until_event(user, namespace, "DriftDetected")


async def test_helper_named_for_another_model_is_kept(suite: Suite, user: Client, namespace: str) -> None:
    await serving(user, namespace, "kaito", "m", "other")
    config = await config_of(user, namespace, "m")
    other = await user.get(MODEL_DEPLOYMENTS, "other", namespace)
    owner = {key: other[key] for key in ("apiVersion", "kind")}
    owner |= {"name": "other", "uid": other["metadata"]["uid"]}

    forged = [
        patch("replace", "/metadata/ownerReferences", [owner]),
        patch("add", f"/metadata/annotations/{names.OWNER_UID_ANNOTATION.replace('/', '~1')}", owner["uid"]),
    ]
    name = config["metadata"]["name"]
    await user.json_patch(CONFIG_MAPS, name, namespace, forged, manager=WHO)
    await looked_at(suite, user, namespace, "kaito")

    kept = await user.get(CONFIG_MAPS, name, namespace)
    assert kept["metadata"]["uid"] == config["metadata"]["uid"]


@pytest.mark.parametrize("provider", KINDS)
async def test_object_without_owner_is_named_at_deletion(
    suite: Suite, user: Client, namespace: str, provider: str
) -> None:
    model, kind = await serving(user, namespace, provider, "m"), KINDS[provider]
    await user.json_patch(MODEL_DEPLOYMENTS, "m", namespace, [PAUSE], manager=WHO)
    await until_deployment(user, "m", namespace, lambda obj: "paused" in obj["status"]["message"])
    await user.json_patch(kind, "m", namespace, [patch("remove", "/metadata/ownerReferences")], manager=WHO)

    await user.delete(MODEL_DEPLOYMENTS, "m", namespace, uid=model["metadata"]["uid"])

    await until(user, MODEL_DEPLOYMENTS, "m", namespace, lambda obj: obj is None)
    assert await until_event(user, namespace, "ObjectLeft") == (
        f"{kind.kind} {namespace}/m stays: it has no owner reference to this ModelDeployment; delete it "
        "unless somebody else uses it"
    )
    assert len(await notes(user, namespace, "ObjectLeft")) == 1


async def test_object_that_keeps_losing_its_marks_is_observed(
    suite: Suite, user: Client, namespace: str
) -> None:
    await serving(user, namespace, "dynamo", "m")
    kind = KINDS["dynamo"]

    strip = [patch("remove", f"/metadata/{part}") for part in MARKS]
    for _ in range(repairs.LIMIT):
        await user.json_patch(kind, "m", namespace, strip, manager=WHO)
        await until(user, kind, "m", namespace, lambda obj: obj and "ownerReferences" in obj["metadata"])
    await user.json_patch(kind, "m", namespace, strip, manager=WHO)

    held = await until_deployment(
        user, "m", namespace, lambda obj: "no longer reverted" in message(obj, "Ready")
    )
    assert phase(held) == "Running"
    assert not serves(held)


async def looked_at(suite: Suite, user: Client, namespace: str, provider: str) -> None:
    """The provider has seen everything before, once a later model serves and nothing is pending."""
    await serving(user, namespace, provider, "later")
    await until_idle(suite, provider)


async def test_dry_run_of_a_changed_object_is_no_failure(suite: Suite, user: Client, namespace: str) -> None:
    await serving(user, namespace, "dynamo", "m")
    dry = patch("add", "/metadata/annotations", {names.DRY_RUN_ANNOTATION: "true"})
    await user.json_patch(MODEL_DEPLOYMENTS, "m", namespace, [dry], manager=WHO)
    await until_deployment(user, "m", namespace, lambda obj: reason(obj, "ResourceCreated") == "DryRun")

    # Each causes another dry run of the same object.
    path = f"{ENGINE['dynamo']}/args"
    for count in range(12):
        change: list[Any] = [patch("replace", path, ["other", str(count)])]
        await user.json_patch(KINDS["dynamo"], "m", namespace, change, manager=WHO)
        await until_idle(suite, "dynamo")

    held = await until_deployment(user, "m", namespace, lambda obj: not serves(obj))
    assert reason(held, "ResourceCreated") == "DryRun"
    assert "others changed" in held["status"]["message"]
    assert await notes(user, namespace, "ApplyFailed") == []


async def until_idle(suite: Suite, provider: str) -> None:
    await until_scraped(
        suite.components[provider],
        lambda series: sample(series, "kubefoundry_reconciliations_pending", provider=provider) == 0,
    )


async def test_unregistered_name_of_a_serving_model_has_a_remedy(
    suite: Suite, user: Client, namespace: str
) -> None:
    await serving(user, namespace, "dynamo", "m")

    name = patch("replace", "/spec/provider/name", "nosuch")
    await user.json_patch(MODEL_DEPLOYMENTS, "m", namespace, [name], manager=WHO)

    refused = await until_deployment(
        user,
        "m",
        namespace,
        lambda obj: (
            reason(obj, "ProviderSelected") == "ProviderNotRegistered"
            and "nosuch" in obj["status"]["message"]
        ),
    )
    assert message(refused, "ProviderSelected") in refused["status"]["message"]
