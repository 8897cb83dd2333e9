"""Compares the operator's children of the recorded CRs with those of the existing operator.

The reasons of the differences: llamastack/differences.md.
"""

from __future__ import annotations

import re
from typing import Final

import pytest
import yaml

from kubefoundry_llamastack.names import (
    AUTOSCALERS,
    CLAIMS,
    DEPLOYMENTS,
    DISRUPTION_BUDGETS,
    INGRESSES,
    NETWORK_POLICIES,
    OPERATOR_CONFIG,
    ROLE_BINDINGS,
    SERVICE_ACCOUNTS,
    SERVICES,
)
from kubefoundry_local.suite import NAMESPACE, Suite
from kubefoundry_sdk._api.kinds import CONFIG_MAPS, Kind, Object
from kubefoundry_sdk._cluster.client import Client
from support import llamastack_recordings as recordings
from support.llamastack import until_object
from support.llamastack_recordings import Case

pytestmark = [pytest.mark.integration, pytest.mark.upstream, recordings.needed]

KINDS: Final[dict[str, Kind]] = {
    kind.kind: kind
    for kind in (
        *(DEPLOYMENTS, SERVICES, SERVICE_ACCOUNTS, CLAIMS, ROLE_BINDINGS, NETWORK_POLICIES, INGRESSES),
        *(AUTOSCALERS, DISRUPTION_BUDGETS, CONFIG_MAPS),
    )
}

DIFFERENCES: Final = (
    ("Deployment", r"spec\.template\.metadata\.annotations\.configmap\.hash/(user-config|ca-bundle)"),
    ("Deployment", r"spec\.template\.spec\.containers\[llama-stack\]\.command\[?.*"),
    ("Deployment", r"spec\.template\.spec\.containers\[[a-z-]+\]\.(readiness|liveness)Probe"),
    ("PodDisruptionBudget|HorizontalPodAutoscaler", r"metadata\.labels\.app\.kubernetes\.io/instance"),
    ("NetworkPolicy", r"spec\.ingress\[0\]\.from\[1\]\..*kubernetes\.io/metadata\.name"),
)
"""Kind and path of what may differ."""

OPT_IN: Final = "RoleBinding"
"""Made where an administrator asks for it (test_anyuid.py); the existing operator made it of each CR."""


def unasked(case: Case) -> list[Object]:
    """Return the recorded children that every such CR has."""
    return [child for child in case.children if child["kind"] != OPT_IN]


@pytest.fixture(scope="module")
def recorded(stack: Suite) -> dict[str, Case]:
    """Apply the recorded CRs with all objects that they name."""
    cases_by_name = {case.name: case for case in recordings.cases()}
    ground: list[Object] = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": case.namespace}}
        for case in cases_by_name.values()
    ]
    for obj in recordings.inputs():
        if obj["metadata"]["name"] == OPERATOR_CONFIG:
            obj["metadata"]["namespace"] = NAMESPACE
            obj["data"]["featureFlags"] = "enableNetworkPolicy: {enabled: true}"
        ground.append(obj)
    stack.plane.kubectl("apply", "-f", "-", input=yaml.safe_dump_all(ground))
    wishes = [recordings.wish(case) for case in cases_by_name.values()]
    stack.plane.kubectl("apply", "-f", "-", input=yaml.safe_dump_all(wishes))
    return cases_by_name


@pytest.mark.parametrize("name", recordings.names())
async def test_children_match_recording(api: Client, recorded: dict[str, Case], name: str) -> None:
    case = recorded[name]
    unlike = []

    for child in unasked(case):
        kind = KINDS[child["kind"]]
        live = await until_object(api, kind, child["metadata"]["name"], case.namespace)
        if child["kind"] == "Deployment" and name.endswith("autoscaling"):
            # recorded after the autoscaler had set it
            live["spec"]["replicas"] = child["spec"]["replicas"]
        unlike += [
            f"{child['kind']} {path}"
            for path in recordings.differences(recordings.content(child), recordings.content(live))
            if not any(re.fullmatch(k, child["kind"]) and re.fullmatch(p, path) for k, p in DIFFERENCES)
        ]

    assert unlike == []


@pytest.mark.parametrize("name", recordings.names())
async def test_children_are_only_recorded_ones(api: Client, recorded: dict[str, Case], name: str) -> None:
    case = recorded[name]
    for child in unasked(case):
        await until_object(api, KINDS[child["kind"]], child["metadata"]["name"], case.namespace)

    child_names = set()
    for kind in KINDS.values():
        items, _ = await api.list(kind, case.namespace)
        child_names |= {
            (kind.kind, item["metadata"]["name"]) for item in items if item["metadata"].get("ownerReferences")
        }

    # The policies were recorded for one case only, and are switched on for all here.
    expected = {(child["kind"], child["metadata"]["name"]) for child in unasked(case)}
    # The record of what was applied is ours alone.
    name = case.cr["metadata"]["name"]
    apart = {("NetworkPolicy", f"{name}-network-policy"), ("ConfigMap", f"{name}-applied")}
    assert child_names - apart == expected - apart
