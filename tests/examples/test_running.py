"""The examples as processes on a real API server with core, each with its own permissions."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable

import pytest

from kubefoundry_local.suite import Suite
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS, Object
from kubefoundry_sdk._api.managed_fields import managers
from kubefoundry_sdk._api.names import SELECTOR_MANAGER
from kubefoundry_sdk._cluster.client import Client
from support.deployments import GPU, model_deployment
from support.suites import install_crd
from support.upstream import standin
from support.waiting import message, reason, serves, until, until_deployment
from support.widgets import EXAMPLES, WIDGETS, create, in_python, in_shell, says, start, without_code

pytestmark = pytest.mark.integration


@pytest.mark.parametrize(
    "manifest",
    [
        pytest.param(in_python, id="python"),
        pytest.param(
            in_shell,
            id="shell",
            marks=pytest.mark.skipif(shutil.which("jq") is None, reason="there is no jq here"),
        ),
        pytest.param(without_code, id="mapping"),
    ],
)
async def test_third_party_provider_serves_and_cleans_up(
    manifest: Callable[[], list[Object]], fresh: Suite, api: Client, namespace: str
) -> None:
    start(fresh, manifest())

    deployment = await create(api, namespace)
    widget = await until(api, WIDGETS, "m", namespace, lambda obj: obj)
    assert widget and widget["spec"]["model"] == GPU["model"]["id"]
    assert widget["metadata"]["ownerReferences"][0]["uid"] == deployment["metadata"]["uid"]

    await says(api, namespace, state="Serving", ready=1)
    running = await until_deployment(api, "m", namespace, serves)
    assert running["status"]["endpoint"] == {"service": "m", "port": 8000, "model": "model"}

    await create(api, namespace, "refused", nodeSelector={"zone": "a"})
    refused = await until_deployment(
        api, "refused", namespace, lambda obj: reason(obj, "ProviderCompatible") == "Unsupported"
    )
    assert message(refused, "ProviderCompatible") == "Widgets has no place for nodeSelector: remove it"

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
