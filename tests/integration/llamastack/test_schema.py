"""Tests the schema at the API server: how it stores, defaults, prunes and refuses externalProviders."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import yaml

from kubefoundry_llamastack.api.spec import ExternalProviders
from kubefoundry_llamastack.names import LLSD
from kubefoundry_local.suite import Suite
from kubefoundry_sdk._cluster.client import Client
from kubefoundry_sdk._cluster.errors import ApiError
from support.llamastack import ECHO, llsd

pytestmark = pytest.mark.integration

Object = dict[str, Any]

SECTIONS = [str(field.alias) for field in ExternalProviders.model_fields.values()]
FREE = {"list": [1, "1", None, {"a": [True]}], "large": 2**53 + 1, "text": "yes", "number": 1.5, "": {}}
"""A configuration of every kind of value."""


async def stored(api: Client, name: str, namespace: str, **server: Any) -> Object:
    created = await api.create(LLSD, llsd(name, namespace, **server), manager="user")
    stored_server: Object = created["spec"]["server"]
    return stored_server


@pytest.mark.accept("FR-006", "FR-007", "FR-008")
async def test_schema_stores_provider_in_each_section(api: Client, stack: Suite, namespace: str) -> None:
    wish: dict[str, list[Object]] = {
        section: [
            {"providerId": f"p-{number}", "image": "i:1", "imagePullPolicy": "Never", "config": FREE},
            {"providerId": f"{number:a>45}", "image": "i:2"},
        ]
        for number, section in enumerate(SECTIONS)
    }

    server = await stored(api, "whole", namespace, externalProviders=copy.deepcopy(wish))

    for section in wish.values():
        section[1]["imagePullPolicy"] = "IfNotPresent"
    assert len(wish) == 13
    assert server["externalProviders"] == wish


@pytest.mark.accept("FR-010")
async def test_schema_prunes_type_and_unknown_fields(api: Client, stack: Suite, namespace: str) -> None:
    more = {**ECHO, "providerType": "remote::echo", "module": "acme_echo"}
    cr = llsd("pruned", namespace, externalProviders={"inference": [more], "telemetry": [ECHO]})

    stack.plane.kubectl("create", "--validate=ignore", "-f", "-", input=yaml.safe_dump(cr))

    server = (await api.get(LLSD, "pruned", namespace))["spec"]["server"]
    assert server["externalProviders"] == {"inference": [{**ECHO, "imagePullPolicy": "IfNotPresent"}]}


@pytest.mark.accept("FR-008")
@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"providerId": "Echo"}, "providerId"),
        ({"providerId": "echo_1"}, "providerId"),
        ({"providerId": "-echo"}, "providerId"),
        ({"providerId": "echo\n"}, "providerId"),
        ({"providerId": ""}, "providerId"),
        ({"providerId": "a" * 46}, "providerId"),
        ({"providerId": None}, "providerId"),
        ({"image": ""}, "image"),
        ({"image": None}, "image"),
        ({"imagePullPolicy": "Sometimes"}, "imagePullPolicy"),
        ({"config": [1]}, "config"),
        ({"config": "text"}, "config"),
    ],
    ids=str,
)
async def test_schema_refuses_invalid_provider(
    api: Client, stack: Suite, namespace: str, wrong: Object, field: str
) -> None:
    item = {key: value for key, value in {**ECHO, **wrong}.items() if value is not None}

    with pytest.raises(ApiError, match="422") as refused:
        await stored(api, "bad", namespace, externalProviders={"inference": [item]})

    assert f"externalProviders.inference[0].{field}" in str(refused.value)


@pytest.mark.accept("FR-009")
async def test_schema_stores_duplicate_id(api: Client, stack: Suite, namespace: str) -> None:
    """The operator refuses it with both images, which no rule of a schema could name."""
    server = await stored(
        api, "twins", namespace, externalProviders={"inference": [ECHO, ECHO], "safety": [ECHO]}
    )

    assert [len(section) for section in server["externalProviders"].values()] == [2, 1]
