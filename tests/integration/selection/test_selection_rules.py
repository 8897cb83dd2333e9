"""A selection rule that the selector cannot use is reported at once on the registration."""

from __future__ import annotations

import json

import pytest

from kubefoundry_local.suite import Suite
from kubefoundry_sdk._cluster.client import Client
from support.events import until_event
from support.registrations import register, until_judged

pytestmark = pytest.mark.integration

BAD = "spec.engine.typo == 'vllm'"
NO_FIELD = "selectionRules[0].condition, column 13: no field 'typo' in spec.engine"


async def test_invalid_rule_is_reported_at_once(fresh: Suite, api: Client) -> None:
    fresh.start("core", "selector")

    config = await register(api, "acme", (BAD, 0), ("true", 0))

    verdict = await until_judged(api, config)
    note = await until_event(api, "default", "InvalidRule")
    assert verdict["status"] == "False"
    assert verdict["message"].startswith(NO_FIELD)
    assert note == verdict["message"]
    assert rules_column(fresh) == "False"

    corrected = await register(api, "acme", ("true", 0))

    assert (await until_judged(api, corrected))["status"] == "True"
    assert rules_column(fresh) == "True"


async def test_rule_of_a_wrong_type_is_refused(fresh: Suite) -> None:
    body = {
        "apiVersion": "kubefoundry.ai/v1alpha1",
        "kind": "InferenceProviderConfig",
        "metadata": {"name": "acme"},
        "spec": {"selectionRules": [{"condition": 5}]},
    }

    done = fresh.plane.kubectl("apply", "-f", "-", input=json.dumps(body), check=False)

    assert done.returncode != 0
    assert "spec.selectionRules[0].condition" in done.stderr


def rules_column(suite: Suite) -> str:
    """Return the column RULES of `kubectl get ipc`."""
    head, row = suite.plane.kubectl("get", "ipc", "acme").stdout.splitlines()
    begin = head.index("RULES")
    return row[begin:].split()[0]
