"""The containers before the server: which, in which order, and what each sees."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from kubefoundry_llamastack.api.spec import ExternalProviders
from kubefoundry_llamastack.render.deployment import deployment
from kubefoundry_llamastack.render.request import Distribution, PodInputs, Settings, UserConfig
from llamastack_providers import layout

Make = Callable[..., Distribution]
Object = dict[str, Any]

FOUND = PodInputs(image="example.com/stack:1", tool="chat-provider-tool-0")
SECTIONS = [str(field.alias) for field in ExternalProviders.model_fields.values()]
ECHO = {"providerId": "echo", "image": "example.com/echo:1"}


def pod(cr: Distribution, found: PodInputs = FOUND) -> Object:
    made: Object = deployment(cr, found, Settings())["spec"]["template"]["spec"]
    return made


def names(containers: list[Object]) -> list[str]:
    return [item["name"] for item in containers]


def mounts(container: Object) -> dict[str, Object]:
    return {item["mountPath"]: item for item in container["volumeMounts"]}


@pytest.mark.accept("FR-007", "FR-011", "FR-012", "US1-2")
def test_one_a_provider_in_the_order_of_sections_and_lists(make: Make) -> None:
    """Two of each section; the CR names the sections backwards, and each list's ids against the alphabet."""
    wish = {
        section: [
            {"providerId": f"{letter}-{section.lower()}", "image": f"{section.lower()}:{letter}"}
            for letter in "ba"
        ]
        for section in reversed(SECTIONS)
    }

    made = pod(make(externalProviders=wish))["initContainers"]

    expected = [f"{letter}-{section.lower()}" for section in SECTIONS for letter in "ba"]
    assert len(expected) == 26
    assert names(made) == [
        *(f"external-provider-{provider_id}" for provider_id in expected),
        "extract-distribution-config",
        "merge-config",
    ]
    assert [item["image"] for item in made[:2]] == ["inference:b", "inference:a"]


@pytest.mark.accept("FR-011")
@pytest.mark.parametrize("policy", ["Always", "Never", "IfNotPresent"])
def test_image_and_pull_policy_are_the_provider_s(make: Make, policy: str) -> None:
    first, *_ = pod(make(externalProviders={"inference": [{**ECHO, "imagePullPolicy": policy}]}))[
        "initContainers"
    ]

    assert (first["image"], first["imagePullPolicy"]) == ("example.com/echo:1", policy)


@pytest.mark.accept("FR-011", "FR-013")
def test_all_share_the_tree_and_only_installs_write_it(make: Make) -> None:
    made = pod(make(externalProviders={"inference": [ECHO], "safety": [{**ECHO, "providerId": "guard"}]}))

    *installs, extract, merge = made["initContainers"]
    [server] = made["containers"]
    shared = [mounts(item)[layout.EXTERNAL_PROVIDERS] for item in (*installs, merge, server)]
    assert {item["name"] for item in shared} == {"external-providers"}
    assert [item.get("readOnly", False) for item in shared] == [False, False, True, True]
    assert layout.EXTERNAL_PROVIDERS not in mounts(extract)


@pytest.mark.accept("FR-012", "FR-017", "US2-2")
@pytest.mark.parametrize("key", ["config.yaml", "run.yaml"])
def test_a_user_s_configuration_takes_the_place_of_the_distribution_s(make: Make, key: str) -> None:
    cr = make(externalProviders={"inference": [ECHO]}, userConfig={"configMapName": "mine"})

    made = pod(cr, replace(FOUND, user_config=UserConfig(key, "digest")))

    assert names(made["initContainers"]) == ["external-provider-echo", "merge-config"]
    base = mounts(made["initContainers"][-1])[f"{layout.BASE_CONFIG}/run.yaml"]
    [volume] = [item for item in made["volumes"] if item["name"] == base["name"]]
    assert (base["subPath"], volume["configMap"]["name"]) == (key, "mine")
