"""Tests the pods of external providers, refused requests, and admission of the pods."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from kubefoundry_llamastack.names import DEPLOYMENTS, INGRESSES, LLSD, PODS
from kubefoundry_local.suite import Suite
from kubefoundry_sdk._api.kinds import CONFIG_MAPS, Object
from kubefoundry_sdk._cluster.client import Client
from kubefoundry_sdk._cluster.errors import ApiError
from support.llamastack import (
    ECHO,
    GUARD,
    condition_of,
    deployment,
    edit,
    llsd,
    new_pod,
    reason,
    until_object,
    until_status,
)

pytestmark = pytest.mark.integration

BOTH: dict[str, Any] = {"safety": [GUARD], "inference": [ECHO]}
HARD = {"quote": "'\"", "lines": "a\nb", "home": "$(HOME) $$ ${env.X}", "large": 2**53 + 1}
"""Values that a shell, a kubelet or a number format would change."""


def handed(item: Object) -> Any:
    """Return the input of an init container."""
    words = item["command"]
    return json.loads(base64.b64decode("".join(words[words.index("--input") + 1 :])))


@pytest.mark.accept("FR-011", "FR-012", "FR-022", "US1-2")
async def test_init_containers_install_extract_merge(api: Client, stack: Suite, namespace: str) -> None:
    wish = {**BOTH, "inference": [{**ECHO, "config": HARD, "imagePullPolicy": "Always"}]}
    await api.create(LLSD, llsd("pod", namespace, externalProviders=wish), manager="user")

    live = await deployment(api, "pod", namespace)

    pod = live["spec"]["template"]["spec"]
    first, second, extract, merge = pod["initContainers"]
    assert [item["name"] for item in pod["initContainers"]] == [
        "external-provider-echo",
        "external-provider-guard",
        "extract-distribution-config",
        "merge-config",
    ]
    assert (first["image"], first["imagePullPolicy"]) == ("example.com/echo:1", "Always")
    assert (second["image"], second["imagePullPolicy"]) == ("example.com/guard:1", "IfNotPresent")
    assert handed(first)["config"] == HARD
    assert "config" not in handed(second)
    assert extract["image"] == merge["image"] == "example.com/stack:1"
    [tool] = [item["configMap"]["name"] for item in pod["volumes"] if item["name"] == "provider-tool"]
    assert (await api.get(CONFIG_MAPS, tool, namespace))["immutable"] is True
    mounted = {item["mountPath"] for item in first["volumeMounts"]}
    assert "/opt/llama-stack/external-providers" in mounted


TWIN = {**ECHO, "image": "example.com/other:1"}
twice = pytest.mark.parametrize(
    "twins",
    [{"inference": [ECHO, TWIN]}, {"inference": [ECHO], "safety": [TWIN]}],
    ids=["one API", "two APIs"],
)


@pytest.mark.accept("FR-009", "FR-020", "US3-8")
@twice
async def test_duplicate_id_creates_nothing(
    api: Client, stack: Suite, namespace: str, twins: dict[str, Any]
) -> None:
    await api.create(LLSD, llsd("twins", namespace, externalProviders=twins), manager="user")

    status = await until_status(
        api, "twins", namespace, lambda status: reason(status, "DeploymentReady") == "InvalidSpec"
    )

    text = condition_of(status, "ExternalProvidersReady")["message"]
    assert status["phase"] == "Failed"
    assert all(
        word in text for word in ("'echo'", "example.com/echo:1", "example.com/other:1", "Resolution:")
    )
    with pytest.raises(ApiError, match="404"):
        await api.get(DEPLOYMENTS, "twins", namespace)


@pytest.mark.accept("FR-009", "FR-020")
@twice
async def test_duplicate_id_changes_nothing(
    api: Client, stack: Suite, namespace: str, twins: dict[str, Any]
) -> None:
    await api.create(LLSD, llsd("twins", namespace, externalProviders={"inference": [ECHO]}), manager="user")
    before = await deployment(api, "twins", namespace)

    def doubled(cr: Object) -> None:
        cr["spec"]["server"].update(externalProviders=twins, workers=3)

    await edit(api, "twins", namespace, doubled)
    await until_status(
        api,
        "twins",
        namespace,
        lambda status: reason(status, "ExternalProvidersReady") == "DuplicateProviderId",
    )
    after = await api.get(DEPLOYMENTS, "twins", namespace)

    assert after["metadata"]["generation"] == before["metadata"]["generation"]
    assert after["spec"] == before["spec"]


async def test_quota_refusal_is_reported(api: Client, stack: Suite, namespace: str) -> None:
    stack.plane.kubectl("create", "quota", "tight", "--hard=pods=0", "-n", namespace)
    # admission goes by the status, which a controller writes
    stack.plane.kubectl("wait", "--for=jsonpath={.status.hard.pods}=0", "quota/tight", "-n", namespace)

    await api.create(LLSD, llsd("quota", namespace), manager="user")

    status = await until_status(
        api, "quota", namespace, lambda status: reason(status, "DeploymentReady") == "PodCreationRefused"
    )
    assert "exceeded quota" in condition_of(status, "DeploymentReady")["message"]
    assert "Resolution: " in condition_of(status, "DeploymentReady")["message"]
    assert status["phase"] == "Failed"


@pytest.mark.parametrize("level", ["baseline", "restricted"])
@pytest.mark.parametrize("providers", [{}, {"externalProviders": BOTH}], ids=["bare", "with providers"])
async def test_pods_are_admitted_by_pod_security(
    api: Client, stack: Suite, namespace: str, level: str, providers: Object
) -> None:
    stack.plane.kubectl("label", "namespace", namespace, f"pod-security.kubernetes.io/enforce={level}")

    await api.create(LLSD, llsd("safe", namespace, **providers), manager="user")

    assert await new_pod(api, "safe", namespace, "example.com/stack:1")
    items, _ = await api.list(PODS, namespace)
    live = await until_object(api, DEPLOYMENTS, "safe", namespace)
    assert len(items) == 1
    assert live["spec"]["template"]["spec"]["securityContext"].get("runAsNonRoot", False) is (
        level == "restricted"
    )


@pytest.mark.parametrize("providers", [{}, {"externalProviders": BOTH}], ids=["bare", "with providers"])
async def test_label_alone_replaces_no_pod_until_one_is_refused(
    api: Client, stack: Suite, namespace: str, providers: Object
) -> None:
    await api.create(LLSD, llsd("late", namespace, **providers), manager="user")
    running = await new_pod(api, "late", namespace, "example.com/stack:1")
    stack.plane.kubectl("label", "namespace", namespace, "pod-security.kubernetes.io/enforce=restricted")

    # the next write of the operator comes after any that the label could have led to
    await edit(
        api, "late", namespace, lambda cr: cr["spec"].update(replicas=1, network={"exposeRoute": True})
    )
    await until_object(api, INGRESSES, "late-ingress", namespace)
    labelled = await until_object(api, DEPLOYMENTS, "late", namespace)
    await api.delete(PODS, running["metadata"]["name"], namespace, uid=running["metadata"]["uid"])
    repaired = await until_object(
        api, DEPLOYMENTS, "late", namespace, lambda obj: obj["metadata"]["generation"] > 1
    )

    assert labelled["metadata"]["generation"] == 1
    assert repaired["spec"]["template"]["spec"]["securityContext"]["runAsNonRoot"] is True
    assert await new_pod(api, "late", namespace, "example.com/stack:1")
