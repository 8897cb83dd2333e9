"""The version that serves while an edit is refused: the last good one, unless a part of the edit is in force."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import pytest

from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._provider.contract import Endpoint, Observation, Replicas
from kubefoundry_sdk._provider.reconcile import observation, retained
from kubefoundry_sdk._provider.reconcile.report import Report
from kubefoundry_sdk._provider.watch.upstream import Upstream
from kubefoundry_sdk._provider.write import manifest
from support.contexts import UNUSED, context
from support.plans import deployment, planned, provider

SERVES = Observation(
    "Running", "DeploymentReady", "1 of 1 replicas serve", Replicas(1, 1, 1), Endpoint("m", 80)
)
REFUSED = "Engine 'm' was accepted, but the change of spec.serve was not stored"


def refused_model() -> Object:
    """Return a model of which generation 1 serves, and an edit was refused by an earlier process."""
    conditions = [
        {"type": "ResourceCreated", "status": "False", "reason": "ApplyRejected", "message": REFUSED},
        {"type": "Ready", "status": "True", "reason": "DeploymentReady", "message": REFUSED},
    ]
    keys: Object = {f'k:{{"type":"{item["type"]}"}}': {".": {}, "f:message": {}} for item in conditions}
    entry = {
        "manager": "example-provider",
        "operation": "Apply",
        "subresource": "status",
        "fieldsV1": {"f:status": {"f:phase": {}, "f:conditions": keys}},
    }
    meta = {"name": "m", "namespace": "n", "uid": "uid", "generation": 2, "managedFields": [entry]}
    status = {
        "phase": "Running",
        "observedGeneration": 1,
        "conditions": conditions,
        "provider": {"name": "example"},
    }
    return {"metadata": meta, "spec": deployment().raw_spec, "status": status}


@pytest.mark.parametrize(
    ("change", "clause"),
    [
        pytest.param({}, "the last good version keeps serving", id="nothing is in force"),
        pytest.param({"context": 4096}, "the model keeps serving", id="a part is in force"),
        pytest.param({"more": 1}, "the last good version keeps serving", id="a value of the operator"),
    ],
)
async def test_repeated_refusal_names_the_version_that_serves(change: dict[str, Any], clause: str) -> None:
    applied = planned(deployment()).main
    meta = {**applied["metadata"], "uid": "u", "resourceVersion": "8", "generation": 1}
    live = {**copy.deepcopy(applied), "metadata": meta, "status": {"observedGeneration": 1}}
    live["spec"] |= change
    upstream = Upstream(UNUSED, provider(), "example", lambda: None)
    upstream.objects.put(live)
    held = context(provider=replace(provider(), observe=lambda *_: SERVES), upstream=upstream)
    model, report = refused_model(), Report(2)
    assert manifest.applied(live) is not None

    retained.repeat_report(model, report, "example-provider")
    await observation.observe(held, model, report)

    status = report.status(held.provider)
    assert status["message"] == f"{REFUSED}; {clause}"
    assert status["observedGeneration"] == 1
