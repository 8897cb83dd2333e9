"""The upstream CRD is installed after the provider, in an unusable form, or removed while it runs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kubefoundry_local.suite import Suite
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS
from kubefoundry_sdk._cluster.client import Client
from support.deployments import GPU, model_deployment
from support.kinds import UPSTREAM
from support.registrations import until_upstream
from support.suites import install_crd, running_suite
from support.upgrades import bare
from support.upstream import standin
from support.waiting import message, phase, reason, serves, until, until_deployment

pytestmark = [pytest.mark.integration, pytest.mark.parametrize("provider", UPSTREAM)]

TITLES = {"kaito": "KAITO", "dynamo": "Dynamo", "kuberay": "KubeRay"}


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Suite]:
    """Core, the providers and simulated operators on a control plane without any upstream CRD."""
    with running_suite(tmp_path_factory.mktemp("arrival")) as made:
        made.start("core", *UPSTREAM)
        made.simulate(*UPSTREAM)
        yield made


@pytest.fixture
def absent(suite: Suite, namespace: str, provider: str) -> Iterator[None]:
    """No upstream CRD at the start, and the provider started after it went; a deletion takes the API server 5 s."""
    crd = f"crd/{UPSTREAM[provider].crd}"
    suite.plane.kubectl("wait", "--for=delete", "--timeout=180s", crd)
    component = suite.components[provider]
    component.stop()
    component.start()
    component.wait_ready()
    yield
    suite.plane.kubectl("delete", "modeldeployments", "--all", "-n", namespace)
    suite.plane.kubectl("delete", crd, "--ignore-not-found", "--wait=false")


async def test_crd_installed_later_needs_no_restart(
    suite: Suite, absent: None, api: Client, namespace: str, provider: str
) -> None:
    waiting = await until_upstream(api, provider, "CRDNotInstalled")
    assert waiting["status"]["ready"] is False
    started = suite.components[provider].process

    await api.create(
        MODEL_DEPLOYMENTS, model_deployment("m", namespace, GPU, provider=provider), manager="test"
    )
    pending = await until_deployment(
        api, "m", namespace, lambda obj: reason(obj, "ResourceCreated") == "CRDNotInstalled"
    )
    assert phase(pending) == "Pending"
    assert message(pending, "ResourceCreated") == (
        f"Provider '{provider}' CRD not installed in cluster; ask an administrator to install the "
        f"{TITLES[provider]} operator"
    )
    assert pending["status"]["message"] == message(pending, "ResourceCreated")
    assert reason(pending, "Ready") == "Progressing"
    install_crd(suite, standin(provider).document)

    await until_deployment(api, "m", namespace, lambda obj: phase(obj) == "Running")
    ready = await until_upstream(api, provider, "SchemaSupported")
    assert ready["status"]["ready"] is True
    assert ready["status"]["upstreamCRDVersion"] == UPSTREAM[provider].api_version
    assert suite.components[provider].process is started
    assert suite.components[provider].running


async def test_schema_without_the_needed_fields_gets_nothing_written(
    suite: Suite, absent: None, api: Client, namespace: str, provider: str
) -> None:
    install_crd(suite, bare(standin(provider).document))
    waiting = await until_upstream(api, provider, "UnsupportedSchema")
    assert waiting["status"]["ready"] is False

    await api.create(
        MODEL_DEPLOYMENTS, model_deployment("m", namespace, GPU, provider=provider), manager="test"
    )
    pending = await until_deployment(
        api, "m", namespace, lambda obj: reason(obj, "ResourceCreated") == "UnsupportedSchema"
    )
    assert phase(pending) == "Pending"
    assert f"CRD {UPSTREAM[provider].crd} lacks " in message(pending, "ResourceCreated")
    written, _ = await api.list(UPSTREAM[provider], namespace)
    assert written == []
    install_crd(suite, standin(provider).document)

    await until_deployment(api, "m", namespace, lambda obj: phase(obj) == "Running")


async def test_crd_that_goes_and_comes_back_gets_its_object_again(
    suite: Suite, absent: None, api: Client, namespace: str, provider: str
) -> None:
    install_crd(suite, standin(provider).document)
    await api.create(
        MODEL_DEPLOYMENTS, model_deployment("m", namespace, GPU, provider=provider), manager="test"
    )
    await until_deployment(api, "m", namespace, lambda obj: phase(obj) == "Running")

    suite.plane.kubectl("delete", "crd", UPSTREAM[provider].crd)

    left = await until_deployment(
        api, "m", namespace, lambda obj: reason(obj, "ResourceCreated") == "CRDNotInstalled"
    )
    assert phase(left) == "Pending"
    assert {"endpoint", "replicas"}.isdisjoint(left["status"])
    install_crd(suite, standin(provider).document)
    await until(api, UPSTREAM[provider], "m", namespace, lambda obj: obj is not None)
    await until_deployment(
        api, "m", namespace, lambda obj: reason(obj, "ResourceCreated") == "ResourceCreated"
    )
    reported = suite.plane.kubectl(
        "get", "events", "-n", namespace, "-o", "jsonpath={.items[*].reason}"
    ).stdout
    assert "ApplyRejected" not in reported


async def test_deployment_can_be_deleted_without_its_upstream_crd(
    suite: Suite, absent: None, api: Client, namespace: str, provider: str
) -> None:
    install_crd(suite, standin(provider).document)
    made = await api.create(
        MODEL_DEPLOYMENTS, model_deployment("m", namespace, GPU, provider=provider), manager="test"
    )
    running = await until_deployment(api, "m", namespace, serves)
    assert running["metadata"]["finalizers"] == [f"kubefoundry.ai/{provider}-provider"]
    suite.plane.kubectl("delete", "crd", UPSTREAM[provider].crd)

    await api.delete(MODEL_DEPLOYMENTS, "m", namespace, uid=made["metadata"]["uid"])

    await until(api, MODEL_DEPLOYMENTS, "m", namespace, lambda obj: obj is None)
