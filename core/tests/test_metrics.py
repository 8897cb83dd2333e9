"""Gauges over ModelDeployments: counted at the scrape, one by one only where that is asked for."""

from __future__ import annotations

from typing import Any

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from kubefoundry_core.metrics import Deployments, ProviderGauges, selection
from kubefoundry_core.provider_health import Providers

RUNNING = {
    "phase": "Running",
    "provider": {"name": "acme"},
    "replicas": {"desired": 2, "ready": 1, "available": 1},
}


def deployment(name: str, namespace: str, status: dict[str, Any] | None) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": namespace}, **({"status": status} if status else {})}


def scraped(registry: CollectorRegistry) -> list[str]:
    return [line for line in generate_latest(registry).decode().splitlines() if not line.startswith("#")]


@pytest.mark.parametrize("per_object", [False, True])
def test_phases_are_counted_at_every_scrape(per_object: bool) -> None:
    live = [deployment("a", "n", RUNNING), deployment("b", "n", RUNNING), deployment("c", "o", None)]
    registry = CollectorRegistry(auto_describe=True)
    registry.register(Deployments(lambda: live, lambda: {"acme"}, per_object=per_object))
    assert scraped(registry)[:6] == [
        'kubefoundry_modeldeployments{namespace="n",phase="Running"} 2.0',
        'kubefoundry_modeldeployments{namespace="o",phase="Pending"} 1.0',
        'kubefoundry_modeldeployment_total{namespace="n",phase="Running"} 2.0',
        'kubefoundry_modeldeployment_total{namespace="o",phase="Pending"} 1.0',
        'kubefoundry_provider_modeldeployments{phase="Pending",provider=""} 1.0',
        'kubefoundry_provider_modeldeployments{phase="Running",provider="acme"} 2.0',
    ]

    del live[1:]

    assert scraped(registry) == [
        'kubefoundry_modeldeployments{namespace="n",phase="Running"} 1.0',
        'kubefoundry_modeldeployment_total{namespace="n",phase="Running"} 1.0',
        'kubefoundry_provider_modeldeployments{phase="Running",provider="acme"} 1.0',
        *(
            [
                'kubefoundry_deployment_replicas{name="a",namespace="n",state="desired"} 2.0',
                'kubefoundry_deployment_replicas{name="a",namespace="n",state="ready"} 1.0',
                'kubefoundry_deployment_replicas{name="a",namespace="n",state="available"} 1.0',
                'kubefoundry_deployment_phase{name="a",namespace="n",phase="Running"} 1.0',
            ]
            if per_object
            else []
        ),
    ]


@pytest.mark.parametrize("status", [RUNNING, None])
def test_deleted_model_counts_as_terminating(status: dict[str, Any] | None) -> None:
    deleted = deployment("a", "n", status)
    deleted["metadata"]["deletionTimestamp"] = "2026-03-01T00:00:00Z"
    registry = CollectorRegistry(auto_describe=True)
    registry.register(Deployments(lambda: [deleted], dict, per_object=False))

    assert scraped(registry) == [
        'kubefoundry_modeldeployments{namespace="n",phase="Terminating"} 1.0',
        'kubefoundry_modeldeployment_total{namespace="n",phase="Terminating"} 1.0',
        'kubefoundry_provider_modeldeployments{phase="Terminating",provider=""} 1.0',
    ]


def test_provider_names_of_tenants_add_no_series() -> None:
    named = [
        deployment(f"m{number}", "n", {"phase": "Pending", "provider": {"name": f"invented-{number}"}})
        for number in range(500)
    ]
    registry = CollectorRegistry(auto_describe=True)
    registry.register(Deployments(lambda: named, lambda: {"acme"}, per_object=False))

    assert scraped(registry) == [
        'kubefoundry_modeldeployments{namespace="n",phase="Pending"} 500.0',
        'kubefoundry_modeldeployment_total{namespace="n",phase="Pending"} 500.0',
        'kubefoundry_provider_modeldeployments{phase="Pending",provider=""} 500.0',
    ]


def registration(heartbeat: str, **conditions: str) -> dict[str, Any]:
    reported = [{"type": type_, "status": status} for type_, status in conditions.items()]
    return {
        "metadata": {"name": "acme"},
        "status": {"lastHeartbeat": heartbeat, "conditions": reported},
    }


@pytest.mark.parametrize(("age", "up"), [(179, 1), (180, 0)])
def test_registered_provider_has_heartbeat_and_conditions(age: int, up: int) -> None:
    now = [100.0]
    providers = Providers(lambda: now[0], 180.0)
    config = registration("10:05", UpstreamReady="True", UpstreamOperatorUp="False", RulesValid="Unknown")
    providers.see("acme", registration("10:00"))
    providers.see("acme", config)
    providers.expect("invented")
    registry = CollectorRegistry(auto_describe=True)
    registry.register(ProviderGauges(lambda: {"acme": config}, providers))

    now[0] += age

    assert scraped(registry) == [
        f'kubefoundry_provider_up{{provider="acme"}} {up}.0',
        f'kubefoundry_provider_heartbeat_age_seconds{{provider="acme"}} {age}.0',
        'kubefoundry_provider_condition{condition="UpstreamReady",provider="acme"} 1.0',
        'kubefoundry_provider_condition{condition="UpstreamOperatorUp",provider="acme"} 0.0',
    ]


def selected(provider: str, status: str, reason: str) -> dict[str, Any]:
    condition = {"type": "ProviderSelected", "status": status, "reason": reason}
    return {"provider": {"name": provider}, "conditions": [condition]}


EXPLICIT = selected("acme", "True", "ExplicitlySelected")


@pytest.mark.parametrize(
    ("before", "decided", "labels"),
    [
        pytest.param({}, EXPLICIT, ("acme", "ExplicitlySelected"), id="new"),
        pytest.param(EXPLICIT, EXPLICIT, None, id="the same"),
        pytest.param(
            selected("beta", "True", "ExplicitlySelected"),
            EXPLICIT,
            ("acme", "ExplicitlySelected"),
            id="another provider",
        ),
        pytest.param(
            EXPLICIT,
            selected("acme", "False", "ProviderNotRegistered"),
            ("", "ProviderNotRegistered"),
            id="not registered",
        ),
        pytest.param(EXPLICIT, {"conditions": []}, None, id="left to the selector"),
    ],
)
def test_selection_is_counted_when_it_changes(
    before: dict[str, Any], decided: dict[str, Any], labels: tuple[str, str] | None
) -> None:
    assert selection(before, decided) == labels
