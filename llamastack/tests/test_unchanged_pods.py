"""Tests that pods of CRs without a provider service stay as earlier releases have rendered them.

A different template or digest would replace every running pod during an upgrade of the operator.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any, Final

import pytest

from kubefoundry_llamastack import template_inputs, workload
from kubefoundry_llamastack.reconcile import read
from kubefoundry_llamastack.render.children import autoscaler
from kubefoundry_llamastack.render.request import PodInputs, Settings, UserConfig
from support import llamastack_recordings as recordings
from support.llamastack import ECHO, GUARD, llsd

Object = dict[str, Any]

DIGESTS: Final = Path(__file__).with_name("unchanged_pods.json")
"""Digest of Deployment, inputs, record and autoscaler of each case, computed before `service` existed. After a
deliberate change of the rendered pods, the failed assertion shows the new value."""

PROVIDERS: Final[Object] = {"externalProviders": {"inference": [ECHO], "safety": [GUARD]}}
ACCOUNT: Final[Object] = {"podOverrides": {"serviceAccountName": "mine"}}
CASES: Final[dict[str, Object]] = {
    "bare": {},
    "providers": PROVIDERS,
    "models": {"modelDeployments": [{"name": "llama"}]},
    "user configuration": {**PROVIDERS, "userConfig": {"configMapName": "mine"}},
    "own account": {**PROVIDERS, **ACCOUNT},
    "workers and storage": {**PROVIDERS, "workers": 2, "storage": {"size": "1Gi"}},
    "autoscaling": {**PROVIDERS, "autoscaling": {"maxReplicas": 3, "targetCPUUtilizationPercentage": 50}},
}


@pytest.mark.accept("L2-01")
@pytest.mark.parametrize("restricted", [False, True], ids=["plain", "restricted"])
@pytest.mark.parametrize("name", CASES)
def test_cr_without_service_is_rendered_as_before(name: str, restricted: bool) -> None:
    cr = llsd("chat", "team", **CASES[name])

    rendered = digest(cr, restricted=restricted)

    assert rendered == json.loads(DIGESTS.read_text())[f"{name}{', restricted' if restricted else ''}"]


@pytest.mark.accept("L2-01")
@pytest.mark.upstream
@recordings.needed
@pytest.mark.parametrize("name", recordings.names())
def test_recorded_cr_is_rendered_as_before(name: str) -> None:
    [case] = [case for case in recordings.cases() if case.name == name]

    assert digest(recordings.wish(case)) == json.loads(DIGESTS.read_text())[name]


def digest(live: Object, *, restricted: bool = False) -> str:
    live["metadata"] |= {"uid": "uid-1", "generation": 1}
    cr = read(live)
    server = cr.spec.server
    inputs = PodInputs(
        image="example.com/stack:1",
        user_config=UserConfig("run.yaml", "0123") if server.user_config else None,
        ca_digest="4567" if server.tls_config else None,
        endpoints={item.id: "http://llama" for item in server.model_deployments},
        tool="chat-provider-tool-0",
        restricted=restricted,
    )
    inputs_digest = template_inputs.digest_inputs(cr, inputs, "", live["spec"])
    decision = workload.decide(cr, inputs, Settings(), inputs_digest, None, None)
    record = workload.record_config_map(cr, decision.record)
    text = json.dumps([decision.body, inputs_digest, record, autoscaler(cr)], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:32]
