"""Settings read from the upstream operators' Deployments are reported, and restart no serving model."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from kubefoundry_local.suite import Suite
from kubefoundry_sdk._api import names
from kubefoundry_sdk._api.conditions import find
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS, PROVIDER_CONFIGS, Object
from kubefoundry_sdk._cluster.client import Client
from support.audit import AuditLog
from support.deployments import GPU
from support.edits import running
from support.kinds import UPSTREAM
from support.restarts import restarted, stopped
from support.waiting import message, phase, reason, until, until_deployment

pytestmark = pytest.mark.integration

TYPE = {"KUBEFOUNDRY_KAITO_GPU_INSTANCE_TYPE": "gpu-1"}
GATE = "--feature-gates=vLLM=true,disableNodeAutoProvisioning="
IMAGE = "nvcr.io/nvidia/ai-dynamo"
OPERATORS = {
    "kaito": "kaito-workspace",
    "dynamo": "dynamo-platform-dynamo-operator-controller-manager",
}
"""Names of the operators' Deployments."""


def install(suite: Suite, namespace: str, provider: str, **container: Any) -> str:
    """The operator's Deployment as its chart names it, asking for no pod; what messages call it.

    An administrator says that operators are in the test's namespace.
    """
    suite.plane.kubectl("label", "--overwrite", "namespace", namespace, f"{names.OPERATORS_LABEL}=true")
    name = OPERATORS[provider]
    labels = {"app": name}
    pod = {"containers": [{"name": "manager", "image": "example.com/operator:1", **container}]}
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "replicas": 0,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod},
        },
    }
    suite.plane.kubectl("apply", "-f", "-", input=yaml.safe_dump(deployment))
    return f"read from Deployment {namespace}/{name}"


@pytest.fixture(autouse=True)
def forgotten(suite: Suite, namespace: str) -> Iterator[None]:
    """The operators' Deployments, and what the providers have read of them, when the test is over."""
    yield
    left = suite.plane.kubectl("get", "deployments", "-n", namespace, "-o", "name").stdout.split()
    for provider, name in OPERATORS.items():
        if f"deployment.apps/{name}" in left:
            suite.plane.kubectl("delete", "deployment", name, "-n", namespace)
            with stopped(suite.components[provider]):
                pass


async def test_kaito_mode_change_leaves_serving_models_alone(
    suite: Suite, api: Client, namespace: str
) -> None:
    with restarted(suite.components["kaito"], TYPE):
        await until_event(api, "kaito", "no Deployment kaito-workspace found in ")
        await running(api, namespace, GPU, "kaito", "brought")
        requests = AuditLog(suite)

        seen = install(suite, namespace, "kaito", args=[f"{GATE}false"])

        await until_event(api, "kaito", f"provisioning=auto: {seen}")
        await running(api, namespace, GPU, "kaito", "bought")
        assert (await workspace(api, namespace, "brought")).get("instanceType") is None
        assert (await workspace(api, namespace, "bought")).get("instanceType") == "gpu-1"

        install(suite, namespace, "kaito", args=[f"{GATE}true"])

        await until_event(api, "kaito", f"provisioning=byo: {seen}")
        await running(api, namespace, GPU, "kaito", "brought-too")
        assert (await workspace(api, namespace, "brought-too")).get("instanceType") is None
        written = requests.writes("provider-kaito", namespace, UPSTREAM["kaito"].plural)
        assert [line for line in written if "/brought?" in line] == []
        assert len([line for line in written if "/bought?" in line]) == 1

        with restarted(suite.components["kaito"], {**TYPE, "KUBEFOUNDRY_KAITO_PROVISIONING": "auto"}):
            await until_event(api, "kaito", "provisioning=auto: set by flags")
            await running(api, namespace, GPU, "kaito", "stated")
        assert (await workspace(api, namespace, "stated")).get("instanceType") == "gpu-1"


MODES = {"byo": f"{GATE}true", "auto": f"{GATE}false"}


@pytest.mark.parametrize(
    ("overrides", "before", "after", "says"),
    [
        pytest.param(
            {},
            "byo",
            "auto",
            "KAITO creates nodes in this cluster and needs an instance type: set provider.overrides.instanceType, "
            "or start the KAITO provider with --kaito-gpu-instance-type",
            id="KAITO is to make nodes",
        ),
        pytest.param(
            {"instanceType": "gpu-1"},
            "auto",
            "byo",
            "KAITO creates no nodes in this cluster, so it cannot honour provider.overrides.instanceType: "
            "remove it and use nodeSelector",
            id="KAITO makes none any more",
        ),
    ],
)
async def test_serving_model_stays_when_a_setting_is_gone(
    suite: Suite,
    api: Client,
    namespace: str,
    overrides: dict[str, str],
    before: str,
    after: str,
    says: str,
) -> None:
    install(suite, namespace, "kaito", args=[MODES[before]])
    await until_event(api, "kaito", f"provisioning={before}")
    await running(api, namespace, {**GPU, "provider": {"overrides": overrides}}, "kaito", "m")
    served = await api.get(UPSTREAM["kaito"], "m", namespace)

    install(suite, namespace, "kaito", args=[MODES[after]])

    reported = await until_deployment(
        api, "m", namespace, lambda obj: reason(obj, "ProviderCompatible") == "Unsupported"
    )
    assert message(reported, "ProviderCompatible") == says
    assert reported["status"]["message"] == f"{says}; the model keeps serving"
    assert (phase(reported), reason(reported, "Ready")) == ("Running", "DeploymentReady")
    assert reported["status"]["endpoint"]["service"] == "m"

    install(suite, namespace, "kaito", args=[MODES[before]])

    await until_deployment(
        api, "m", namespace, lambda obj: reason(obj, "ProviderCompatible") == "CompatibilityVerified"
    )
    assert await api.get(UPSTREAM["kaito"], "m", namespace) == served


async def test_serving_model_stays_when_it_could_not_be_recreated(
    suite: Suite, api: Client, namespace: str
) -> None:
    await running(api, namespace, GPU, "kaito", "m")
    given_back = [{"op": "remove", "path": "/spec/provider"}]
    await api.json_patch(MODEL_DEPLOYMENTS, "m", namespace, given_back, manager="test")
    await until_deployment(api, "m", namespace, lambda obj: reason(obj, "ProviderSelected") == "AutoSelected")

    install(suite, namespace, "kaito", args=[MODES["auto"]])

    await until_deployment(
        api, "m", namespace, lambda obj: reason(obj, "ProviderCompatible") == "Unsupported"
    )
    # A change of the spec, which makes the selector look again.
    change = [{"op": "add", "path": "/spec/engine/contextLength", "value": 4096}]
    edited = await api.json_patch(MODEL_DEPLOYMENTS, "m", namespace, change, manager="test")
    kept = await until_deployment(
        api,
        "m",
        namespace,
        lambda obj: (
            (find(obj["status"]["conditions"], "ProviderCompatible") or {}).get("observedGeneration")
            == edited["metadata"]["generation"]
            and selected(obj).get("observedGeneration") == edited["metadata"]["generation"]
        ),
    )
    assert (kept["status"]["provider"]["name"], phase(kept)) == ("kaito", "Running")
    assert reason(kept, "ProviderCompatible") == "Unsupported"


def selected(obj: Object) -> dict[str, Any]:
    return find(obj["status"]["conditions"], "ProviderSelected") or {}


async def test_default_image_of_dynamo_is_of_its_operators_release(
    suite: Suite, api: Client, namespace: str
) -> None:
    await until_event(api, "dynamo", "no Deployment dynamo-platform-dynamo-operator-controller-manager found")
    await running(api, namespace, GPU, "dynamo", "before")
    requests = AuditLog(suite)

    seen = install(suite, namespace, "dynamo", image=f"{IMAGE}/kubernetes-operator:1.0.2")

    await until_event(api, "dynamo", f"operatorVersion=1.0.2: {seen}")
    await running(api, namespace, GPU, "dynamo", "after")
    assert await images(api, namespace, "before") == {f"{IMAGE}/vllm-runtime:1.0.1"}
    assert await images(api, namespace, "after") == {f"{IMAGE}/vllm-runtime:1.0.2"}
    written = requests.writes("provider-dynamo", namespace, UPSTREAM["dynamo"].plural)
    assert [line for line in written if "/before?" in line] == []


async def workspace(api: Client, namespace: str, name: str) -> Object:
    found: Object = (await api.get(UPSTREAM["kaito"], name, namespace))["resource"]
    return found


async def images(api: Client, namespace: str, name: str) -> set[str]:
    services = (await api.get(UPSTREAM["dynamo"], name, namespace))["spec"]["services"]
    return {service["extraPodSpec"]["mainContainer"]["image"] for service in services.values()}


async def until_event(api: Client, provider: str, words: str) -> None:
    """Until the InferenceProviderConfig's `SettingsDiscovered` begins with these words."""
    found = await until(
        api,
        PROVIDER_CONFIGS,
        provider,
        None,
        lambda obj: obj is not None and message(obj, "SettingsDiscovered").startswith(words),
    )
    assert found is not None
    assert reason(found, "SettingsDiscovered") == ("NotDiscovered" if words.startswith("no ") else "Known")
