"""Overrides (contract §2), and what the router and the workers get."""

from __future__ import annotations

from typing import Any

import pytest

from kubefoundry_dynamo.overrides import Overrides
from kubefoundry_dynamo.render import render
from kubefoundry_dynamo.settings import Settings
from kubefoundry_sdk._provider.contract import Rendered
from kubefoundry_sdk._provider.reconcile.overrides import unknown_keys, wrong_types
from kubefoundry_sdk._provider.upstream_kind import Schema
from kubefoundry_sdk.testing.generated import deployment

V1_0 = Schema("nvidia.com/v1alpha1", frozenset({"globalDynamoNamespace", "observedGeneration"}))


def rendered(overrides: dict[str, Any] | None, env: list[dict[str, Any]] | None = None) -> Rendered:
    spec = {
        "model": {"id": "org/m"},
        "engine": {"type": "vllm"},
        "serving": {"mode": "disaggregated"},
        "scaling": {"prefill": {"gpu": {"count": 1}}, "decode": {"gpu": {"count": 1}}},
        "provider": {"name": "dynamo", "overrides": overrides},
        "env": env or [],
    }
    return render(deployment(spec), V1_0, Settings())


def reported(rendered: Rendered) -> tuple[list[dict[str, Any]], list[str]]:
    """The frontend's variables, and the services that publish cache events."""
    services = rendered.main["spec"]["services"]
    publishing = [
        name
        for name, service in services.items()
        if "--kv-events-config" in service["extraPodSpec"]["mainContainer"].get("args", ())
    ]
    return services["Frontend"].get("envs", []), publishing


@pytest.mark.parametrize(
    ("overrides", "mode", "publishing"),
    [
        (None, "round-robin", []),
        ({}, "round-robin", []),
        ({"routerMode": "round-robin"}, "round-robin", []),
        ({"routerMode": "kv"}, "kv", ["VllmPrefillWorker"]),
    ],
)
def test_router_modes(overrides: dict[str, Any] | None, mode: str, publishing: list[str]) -> None:
    render = rendered(overrides)

    assert reported(render) == ([{"name": "DYN_ROUTER_MODE", "value": mode}], publishing)
    assert render.notes == ()


def test_none_is_left_to_dynamo_and_said() -> None:
    render = rendered({"routerMode": "none"})

    assert reported(render) == ([], [])
    assert render.notes == ('Dynamo has no router mode "none": its own default applies',)


@pytest.mark.parametrize(("value", "publishing"), [("kv", ["VllmPrefillWorker"]), ("random", [])])
def test_users_own_variable_holds(value: str, publishing: list[str]) -> None:
    own = {"name": "DYN_ROUTER_MODE", "value": value}

    assert reported(rendered(None, [own, {"name": "A", "value": "b"}])) == (
        [own, {"name": "A", "value": "b"}],
        publishing,
    )


def test_variable_from_elsewhere_is_passed_on() -> None:
    own = {"name": "DYN_ROUTER_MODE", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "mode"}}}

    assert reported(rendered(None, [own])) == ([own], [])


@pytest.mark.parametrize(
    ("overrides", "field"),
    [
        ({"routerMode": "random"}, "overrides.routerMode"),
        ({"routerMode": 1}, "overrides.routerMode"),
        ({"frontend": {"replicas": "2"}}, "overrides.frontend.replicas"),
        ({"frontend": {"replicas": 0}}, "overrides.frontend.replicas"),
        ({"frontend": {"replicas": True}}, "overrides.frontend.replicas"),
        ({"frontend": {"resources": {"cpu": "two"}}}, "overrides.frontend.resources.cpu"),
        ({"frontend": {"resources": {"memory": 1.5}}}, "overrides.frontend.resources.memory"),
        ({"frontend": []}, "overrides.frontend"),
    ],
)
def test_wrong_types_are_named(overrides: dict[str, Any], field: str) -> None:
    messages = wrong_types(Overrides, overrides)

    assert messages
    assert all(text.startswith(field) for text in messages)


def test_unknown_keys_are_named_at_every_depth() -> None:
    stated = {"routermode": "kv", "frontend": {"replicsa": 2, "resources": {"gpu": 1}}}

    assert wrong_types(Overrides, stated) == []
    assert unknown_keys(Overrides, stated) == [
        "routermode",
        "frontend.replicsa",
        "frontend.resources.gpu",
    ]
