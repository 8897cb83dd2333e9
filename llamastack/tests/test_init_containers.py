"""Tests the containers before the server: their order, and their mounts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from kubefoundry_llamastack.api.spec import ExternalProviders
from kubefoundry_llamastack.render.deployment import deployment
from kubefoundry_llamastack.render.request import Distribution, PodInputs, Settings, UserConfig
from llamastack_providers import layout, request

Make = Callable[..., Distribution]
Object = dict[str, Any]

FOUND = PodInputs(image="example.com/stack:1", tool="chat-provider-tool-0")
SECTIONS = [str(field.alias) for field in ExternalProviders.model_fields.values()]
ECHO = {"providerId": "echo", "image": "example.com/echo:1"}


def pod(cr: Distribution, pod_inputs: PodInputs = FOUND) -> Object:
    pod_spec: Object = deployment(cr, pod_inputs, Settings())["spec"]["template"]["spec"]
    return pod_spec


def names(containers: list[Object]) -> list[str]:
    return [item["name"] for item in containers]


def mounts(container: Object) -> dict[str, Object]:
    return {item["mountPath"]: item for item in container["volumeMounts"]}


@pytest.mark.accept("FR-007", "FR-011", "FR-012", "US1-2")
def test_install_containers_follow_section_and_list_order(make: Make) -> None:
    """The CR has two of each section, names the sections backwards, and lists ids against the alphabet."""
    wish = {
        section: [
            {"providerId": f"{letter}-{section.lower()}", "image": f"{section.lower()}:{letter}"}
            for letter in "ba"
        ]
        for section in reversed(SECTIONS)
    }

    containers = pod(make(externalProviders=wish))["initContainers"]

    expected = [f"{letter}-{section.lower()}" for section in SECTIONS for letter in "ba"]
    assert len(expected) == 26
    assert names(containers) == [
        *(f"external-provider-{provider_id}" for provider_id in expected),
        "extract-distribution-config",
        "merge-config",
    ]
    assert [item["image"] for item in containers[:2]] == ["inference:b", "inference:a"]


@pytest.mark.accept("FR-011")
@pytest.mark.parametrize("policy", ["Always", "Never", "IfNotPresent"])
def test_install_container_has_providers_image_and_policy(make: Make, policy: str) -> None:
    first, *_ = pod(make(externalProviders={"inference": [{**ECHO, "imagePullPolicy": policy}]}))[
        "initContainers"
    ]

    assert (first["image"], first["imagePullPolicy"]) == ("example.com/echo:1", policy)


@pytest.mark.accept("FR-011", "FR-013")
def test_only_install_containers_write_shared_tree(make: Make) -> None:
    containers = pod(
        make(externalProviders={"inference": [ECHO], "safety": [{**ECHO, "providerId": "guard"}]})
    )

    *installs, extract, merge = containers["initContainers"]
    [server] = containers["containers"]
    shared = [mounts(item)[layout.EXTERNAL_PROVIDERS] for item in (*installs, merge, server)]
    assert {item["name"] for item in shared} == {"external-providers"}
    assert [item.get("readOnly", False) for item in shared] == [False, False, True, True]
    assert layout.EXTERNAL_PROVIDERS not in mounts(extract)


@pytest.mark.accept("FR-012", "FR-017", "US2-2")
@pytest.mark.parametrize("key", ["config.yaml", "run.yaml"])
def test_user_config_replaces_distribution_config(make: Make, key: str) -> None:
    cr = make(externalProviders={"inference": [ECHO]}, userConfig={"configMapName": "mine"})

    pod_spec = pod(cr, replace(FOUND, user_config=UserConfig(key, "digest")))

    assert names(pod_spec["initContainers"]) == ["external-provider-echo", "merge-config"]
    base = mounts(pod_spec["initContainers"][-1])[f"{layout.BASE_CONFIG}/run.yaml"]
    [volume] = [item for item in pod_spec["volumes"] if item["name"] == base["name"]]
    assert (base["subPath"], volume["configMap"]["name"]) == (key, "mine")
    words = pod_spec["initContainers"][-1]["command"]
    merge_input = request.decode(words[words.index("--input") + 1 :])
    assert request.merge(merge_input).base == f"key '{key}' of ConfigMap 'mine'"
