"""Bad ModelDeployments are refused in the design's words, by the CRD and the webhook together and by each alone."""

from __future__ import annotations

import json
import re
import time
from typing import Any

import pytest

from kubefoundry_local.suite import Suite
from kubefoundry_sdk._api import validation
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS, PROVIDER_CONFIGS, Object
from kubefoundry_sdk._api.names import NEWEST_API_VERSION
from kubefoundry_sdk._cluster.client import Client
from support.admission import BY_WEBHOOK, install_crd_without, refusal, until_refused_by_webhook
from support.deployments import CPU, DISAGGREGATED, GPU, model_deployment
from support.refused_specs import AGGREGATED, REFUSED, Refused, changed
from support.restarts import stopped
from support.waiting import SECONDS

pytestmark = pytest.mark.integration

BY_CRD = re.compile(r'ModelDeployment\.kubefoundry\.ai "m" is invalid: spec\S*: Invalid value: ("object": )?')
"""How the API server begins a refusal by a rule of the CRD; older servers name the type of the value too."""

WEBHOOK_ONLY = (
    Refused(
        "another length",
        changed(AGGREGATED, engine__contextLength=8192, engine__args={"max-model-len": "4096"}),
        "engine.args[max-model-len]",
        'is "4096" but engine.contextLength is "8192": set only engine.contextLength',
    ),
    Refused(
        "another model",
        changed(AGGREGATED, engine__args={"model": "another/model"}),
        "engine.args[model]",
        f'is "another/model" but model.id is "{AGGREGATED["model"]["id"]}": set only model.id',
    ),
    Refused(
        "another trust",
        changed(AGGREGATED, engine__args={"trust-remote-code": ""}),
        "engine.args[trust-remote-code]",
        'is "" but engine.trustRemoteCode is "false": set only engine.trustRemoteCode',
    ),
)
"""What CEL cannot say readably."""


def warnings(suite: Suite, body: Object) -> list[str]:
    """The warnings that kubectl prints for the creation of an object, which has to be taken."""
    newest = {**body, "apiVersion": NEWEST_API_VERSION}
    answer = suite.plane.kubectl("create", "--dry-run=server", "-f", "-", input=json.dumps(newest))
    return [line.removeprefix("Warning: ") for line in answer.stderr.splitlines()]


def until_warned(suite: Suite, body: Object, reported: list[str]) -> None:
    """Creates it again and again until the warnings are these: core learns in its own time who is registered."""
    until = time.monotonic() + SECONDS
    while (found := warnings(suite, body)) != reported:
        assert time.monotonic() < until, found


async def test_invalid_specs_are_refused_while_the_suite_runs(
    suite: Suite, api: Client, namespace: str
) -> None:
    for case in REFUSED:
        reported = await refusal(api, namespace, case.spec)
        assert BY_CRD.sub("", reported) == case.message, case.name
    for case in WEBHOOK_ONLY:
        reported = await refusal(api, namespace, case.spec)
        assert reported == by_webhook(case), case.name


async def test_several_problems_are_reported_at_once(suite: Suite, api: Client, namespace: str) -> None:
    first, second = WEBHOOK_ONLY[0], WEBHOOK_ONLY[1]
    both = changed(first.spec, engine__args={**first.spec["engine"]["args"], **second.spec["engine"]["args"]})

    reported = await refusal(api, namespace, both)

    assert reported.startswith(f'{BY_WEBHOOK}ModelDeployment "m" is invalid: [')
    for case in (first, second):
        assert f"spec.{case.field}: {case.message}" in reported


async def test_crd_alone_refuses_in_the_same_words(suite: Suite, api: Client, namespace: str) -> None:
    with stopped(suite.components["core"]):
        for case in REFUSED:
            reported = await refusal(api, namespace, case.spec)
            assert BY_CRD.sub("", reported) == case.message, case.name
        for case in WEBHOOK_ONLY:
            assert await refusal(api, namespace, case.spec) == "", case.name


async def test_webhook_alone_refuses_and_defaults_alike(fresh: Suite, api: Client, namespace: str) -> None:
    fresh.start("core")
    await install_crd_without(fresh.plane, api, "default")
    await until_refused_by_webhook(api, namespace, REFUSED[0].spec)

    for case in (*REFUSED, *WEBHOOK_ONLY):
        assert await refusal(api, namespace, case.spec) == by_webhook(case), case.name
    for spec in (GPU, CPU, DISAGGREGATED):
        body = model_deployment("m", namespace, spec)
        stored = await api.create(MODEL_DEPLOYMENTS, body, manager="test", dry_run=True)
        assert stored["spec"] == validation.default(spec) != spec


async def test_bad_change_is_refused_and_the_object_stays(suite: Suite, api: Client, namespace: str) -> None:
    made = await api.create(MODEL_DEPLOYMENTS, model_deployment("m", namespace, CPU), manager="test")
    change = {"spec": {"engine": {"args": {"ctx-size": "1", "c": "2"}, "contextLength": 3}}}

    answer = suite.plane.kubectl(
        *("patch", "md", "m", "-n", namespace, "--type=merge", "-p", json.dumps(change)), check=False
    )

    assert 'spec.engine.args[ctx-size]: is "1" but engine.contextLength is "3"' in answer.stderr
    stored = await api.get(MODEL_DEPLOYMENTS, "m", namespace)
    assert stored["spec"] == made["spec"]


@pytest.mark.parametrize(
    ("spec", "provider", "reported"),
    [
        pytest.param(GPU, "kaito", [], id="nothing to warn of"),
        pytest.param(
            {**CPU, "model": {"source": "custom", "servedName": "mine"}},
            None,
            ["servedName is ignored for custom source"],
            id="servedName in vain",
        ),
        pytest.param(
            {**GPU, "scaling": DISAGGREGATED["scaling"]},
            None,
            ["scaling.prefill and scaling.decode are ignored in aggregated mode"],
            id="components in vain",
        ),
        pytest.param(
            {**CPU, "model": {"source": "custom", "servedName": "mine"}},
            "nobody",
            [
                "servedName is ignored for custom source",
                (
                    "Provider 'nobody' is not registered (registered: direct, dynamo, kaito, kuberay): "
                    "name one of these, or ask an administrator to install it; kubefoundry provider list shows all"
                ),
            ],
            id="not registered",
        ),
    ],
)
def test_unused_override_is_warned_about(
    suite: Suite, namespace: str, spec: dict[str, Any], provider: str | None, reported: list[str]
) -> None:
    until_warned(suite, model_deployment("m", namespace, spec, provider=provider), reported)


def test_provider_without_its_crd_is_warned_about(fresh: Suite, namespace: str) -> None:
    fresh.start("core", "kaito")

    body = model_deployment("m", namespace, GPU, provider="kaito")
    until_warned(fresh, body, ["Provider 'kaito' CRD not installed in cluster"])


def test_registration_is_warned_about_and_never_refused(suite: Suite) -> None:
    registration = {
        "apiVersion": PROVIDER_CONFIGS.api_version,
        "kind": PROVIDER_CONFIGS.kind,
        "metadata": {"name": "third"},
        "spec": {
            "capabilities": {"engines": ["vllm"], "servingModes": []},
            "selectionRules": [{"condition": "spec.engine.kind == 'vllm'"}, {"condition": "true"}],
        },
    }

    assert warnings(suite, registration) == [
        "spec.capabilities.servingModes: with no serving mode this provider is never selected automatically",
        "spec.capabilities.cpuSupport: with neither CPU nor GPU this provider is never selected automatically",
        "spec.selectionRules[0].condition, column 13: no field 'kind' in spec.engine. The selector skips a rule "
        "that it cannot compile: correct it",
    ]


def by_webhook(case: Refused) -> str:
    return f'{BY_WEBHOOK}ModelDeployment "m" is invalid: spec.{case.field}: {case.message}'
