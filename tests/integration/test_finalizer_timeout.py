"""When a clean-up does not come about, the finalizer goes after its time, and what is left is named."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from kubefoundry_demo.suite import Suite
from kubefoundry_sdk.api.kinds import MODEL_DEPLOYMENTS, PROVIDER_CONFIGS, Object
from kubefoundry_sdk.cluster.client import Client
from support.deployments import GPU, model_deployment
from support.events import until_told
from support.kinds import NAMESPACES, UPSTREAM
from support.suites import running_suite
from support.waiting import message, phase, until, until_deployment

pytestmark = pytest.mark.integration

EVERY = pytest.mark.parametrize("provider", UPSTREAM)
HELD = "example.com/held-by-the-test"
TIMEOUT = "2"
"""Seconds, in place of 5 minutes."""


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Suite]:
    """Core, shims and simulated operators; finalizers go after 2 s."""
    with running_suite(tmp_path_factory.mktemp("timeout"), *UPSTREAM) as made:
        for name in ("core", *UPSTREAM):
            made.install(name, environment={"KUBEFOUNDRY_FINALIZER_TIMEOUT": TIMEOUT})
        made.start("core", *UPSTREAM)
        yield made


@EVERY
async def test_an_upstream_object_that_does_not_go(
    suite: Suite, api: Client, namespace: str, provider: str
) -> None:
    kind = UPSTREAM[provider]
    made = await create_running(api, namespace, provider)
    held = {"name": "m", "namespace": namespace, "finalizers": [HELD]}
    await api.apply(
        kind, {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": held}, manager="test"
    )

    await api.delete(MODEL_DEPLOYMENTS, "m", namespace, uid=made["metadata"]["uid"])

    await until_deployment(api, "m", namespace, lambda obj: phase(obj) == "Terminating")
    await until(api, MODEL_DEPLOYMENTS, "m", namespace, lambda obj: obj is None)
    told = await until_told(api, namespace, "FinalizerTimeout")
    assert told == (
        f"Finalizer removed after timeout, provider resource may be orphaned: {kind.kind} {namespace}/m"
    )


@EVERY
async def test_a_shim_that_may_not_delete(suite: Suite, api: Client, namespace: str, provider: str) -> None:
    kind = UPSTREAM[provider]
    made = await create_running(api, namespace, provider)
    role = without_verbs(suite, provider, "delete")

    await api.delete(MODEL_DEPLOYMENTS, "m", namespace, uid=made["metadata"]["uid"])

    leaving = await until_deployment(api, "m", namespace, lambda obj: phase(obj) == "Terminating")
    assert "Deleting what was made upstream failed: " in message(leaving, "ResourceCreated")
    assert f'cannot delete resource "{kind.plural}"' in message(leaving, "ResourceCreated")
    await until(api, MODEL_DEPLOYMENTS, "m", namespace, lambda obj: obj is None)
    told = await until_told(api, namespace, "FinalizerTimeout")
    assert f'cannot delete resource "{kind.plural}"' in told
    suite.plane.kubectl("replace", "-f", "-", input=role)


@EVERY
async def test_a_shim_that_cannot_see_its_objects(
    suite: Suite, api: Client, namespace: str, provider: str
) -> None:
    kind = UPSTREAM[provider]
    made = await create_running(api, namespace, provider)
    shim = suite.components[provider]
    shim.stop()
    role = without_verbs(suite, provider, "list", "watch")
    shim.start()

    await api.delete(MODEL_DEPLOYMENTS, "m", namespace, uid=made["metadata"]["uid"])

    await until(api, MODEL_DEPLOYMENTS, "m", namespace, lambda obj: obj is None)
    told = await until_told(api, namespace, "FinalizerTimeout")
    assert f"{kind.kind} {namespace}/m (unknown: {kind.crd} cannot be listed)" in told
    suite.plane.kubectl("replace", "-f", "-", input=role)
    shim.wait_ready()


@EVERY
async def test_a_namespace_whose_shim_was_uninstalled(
    suite: Suite, api: Client, namespace: str, provider: str
) -> None:
    await create_running(api, namespace, provider)
    suite.uninstall(provider)
    suite.plane.kubectl("delete", "inferenceproviderconfig", provider)

    suite.plane.kubectl("delete", "namespace", namespace, "--wait=false")

    await until(api, NAMESPACES, namespace, None, lambda obj: obj is None, seconds=60)
    suite.install(provider, environment={"KUBEFOUNDRY_FINALIZER_TIMEOUT": TIMEOUT})
    suite.start(provider)


async def test_a_deployment_whose_shim_was_uninstalled(suite: Suite, api: Client, namespace: str) -> None:
    made = await create_running(api, namespace, "dynamo")
    suite.uninstall("dynamo")
    config = await api.get(PROVIDER_CONFIGS, "dynamo")
    await api.delete(PROVIDER_CONFIGS, "dynamo", None, uid=config["metadata"]["uid"])

    await api.delete(MODEL_DEPLOYMENTS, "m", namespace, uid=made["metadata"]["uid"])

    await until(api, MODEL_DEPLOYMENTS, "m", namespace, lambda obj: obj is None)
    told = await until_told(api, namespace, "FinalizerTimeout")
    assert f"DynamoGraphDeployment {namespace}/m" in told
    # What the finalizer stood for, the garbage collector does.
    await until(api, UPSTREAM["dynamo"], "m", namespace, lambda obj: obj is None, seconds=60)
    suite.install("dynamo", environment={"KUBEFOUNDRY_FINALIZER_TIMEOUT": TIMEOUT})
    suite.start("dynamo")


async def create_running(api: Client, namespace: str, provider: str) -> Object:
    made = await api.create(
        MODEL_DEPLOYMENTS, model_deployment("m", namespace, GPU, provider=provider), manager="test"
    )
    await until_deployment(api, "m", namespace, lambda obj: phase(obj) == "Running", seconds=60)
    return made


def without_verbs(suite: Suite, provider: str, *verbs: str) -> str:
    """Takes rights on its upstream kind from the shim; the role as it was, to be put back."""
    name = f"kubefoundry-provider-{provider}"
    before = suite.plane.kubectl("get", "clusterrole", name, "-o", "json").stdout
    role = json.loads(before)
    del role["metadata"]["resourceVersion"]
    whole = json.dumps(role)
    for rule in role["rules"]:
        if UPSTREAM[provider].plural in rule["resources"]:
            rule["verbs"] = [verb for verb in rule["verbs"] if verb not in verbs]
    suite.plane.kubectl("replace", "-f", "-", input=json.dumps(role))
    return whole
