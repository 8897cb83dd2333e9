"""The examples as processes on a real API server with core, each with its own permissions."""

from __future__ import annotations

import sys

import pytest

from kubefoundry_local.suite import Suite
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS
from kubefoundry_sdk._api.managed_fields import managers
from kubefoundry_sdk._api.names import SELECTOR_MANAGER
from kubefoundry_sdk._cluster.client import Client
from support.deployments import GPU, model_deployment
from support.suites import install_crd
from support.upstream import standin
from support.waiting import message, reason, serves, until, until_deployment
from support.widgets import EXAMPLES, WIDGETS, install

pytestmark = pytest.mark.integration


async def test_third_party_provider_serves_and_cleans_up(fresh: Suite, api: Client, namespace: str) -> None:
    install(fresh)
    fresh.start("core", "widgets")

    body = model_deployment("m", namespace, {**GPU, "image": "example.com/vllm:1"}, provider="widgets")
    deployment = await api.create(MODEL_DEPLOYMENTS, body, manager="test")
    widget = await until(api, WIDGETS, "m", namespace, lambda obj: obj)
    assert widget
    assert widget["spec"]["model"] == "org/model"
    assert widget["metadata"]["ownerReferences"][0]["uid"] == deployment["metadata"]["uid"]

    patch = '{"status": {"state": "Serving", "ready": 1}}'
    fresh.plane.kubectl(
        *("patch", "widget", "m", "-n", namespace, "--subresource=status", "--type=merge", "-p", patch)
    )
    running = await until_deployment(api, "m", namespace, serves)
    assert running["status"]["endpoint"] == {"service": "m", "port": 8000}

    await api.delete(MODEL_DEPLOYMENTS, "m", namespace, uid=deployment["metadata"]["uid"])
    await until(api, MODEL_DEPLOYMENTS, "m", namespace, lambda obj: obj is None)
    await until(api, WIDGETS, "m", namespace, lambda obj: obj is None)


async def test_custom_selector_replaces_the_default_one(fresh: Suite, api: Client, namespace: str) -> None:
    install_crd(fresh, standin("dynamo").document)
    fresh.simulate("dynamo")
    fresh.start("core", "dynamo")
    await api.create(MODEL_DEPLOYMENTS, model_deployment("m", namespace, GPU), manager="test")
    waiting = await until_deployment(
        api, "m", namespace, lambda obj: reason(obj, "ProviderSelected") == "NoSelector"
    )
    reported = "No provider specified and provider-selector not installed"
    assert (waiting["status"]["message"], message(waiting, "ProviderSelected")) == (reported, reported)

    # Account, permissions, arguments and environment are those of the manifest; the program is the example.
    selector = fresh.install("selector")
    selector.command = [sys.executable, str(EXAMPLES / "selector" / "selector.py"), *selector.command[1:]]
    fresh.start("selector")

    running = await until_deployment(api, "m", namespace, serves)
    assert running["status"]["provider"]["selectedReason"] == "house rule → dynamo"

    name_it = '{"spec": {"provider": {"name": "dynamo"}}}'
    fresh.plane.kubectl("patch", "md", "m", "-n", namespace, "--type=merge", "-p", name_it)
    await until_deployment(
        api,
        "m",
        namespace,
        lambda obj: (
            reason(obj, "ProviderSelected") == "ExplicitlySelected"
            and SELECTOR_MANAGER not in managers(obj, "status")
        ),
    )
