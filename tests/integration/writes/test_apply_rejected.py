"""A refusal by the API server reaches the user in its own words, and ends when its cause ends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from kubefoundry_local.suite import PROBE, Suite
from kubefoundry_sdk._api.kinds import Kind, Object
from kubefoundry_sdk._cluster.client import Client
from kubefoundry_sdk._cluster.errors import ApiError
from support.deployments import GPU
from support.edits import create_model
from support.foreign import foreign
from support.kinds import QUOTAS, UPSTREAM
from support.refusing_webhook import refusing
from support.waiting import SECONDS, message, phase, reason, until_deployment
from support.wishes import change_spec

pytestmark = [pytest.mark.integration, pytest.mark.parametrize("provider", UPSTREAM)]

POLICIES = Kind(
    "admissionregistration.k8s.io",
    "v1",
    "validatingadmissionpolicies",
    "ValidatingAdmissionPolicy",
    namespaced=False,
)
BINDINGS = Kind(
    POLICIES.group,
    POLICIES.version,
    "validatingadmissionpolicybindings",
    "ValidatingAdmissionPolicyBinding",
    namespaced=False,
)
BAD, GOOD = "example.com/bad:1.0.0", "example.com/good:1.0.0"
DENIAL = "not in this namespace"


async def test_raised_quota_lets_the_model_run(
    suite: Suite, api: Client, namespace: str, provider: str
) -> None:
    kind = UPSTREAM[provider]
    counted = f"count/{kind.crd}"
    await api.apply(QUOTAS, quota(namespace, spec={"hard": {counted: "0"}}), manager="admin")
    used = {"hard": {counted: "0"}, "used": {counted: "0"}}
    # No quota controller runs here: it is simulated.
    await api.apply_status(QUOTAS, quota(namespace, status=used), manager="admin")
    await in_force(api, provider, namespace, "exceeded quota")

    await create_model(api, namespace, GPU, provider)

    refused = await until_rejected(api, namespace)
    assert phase(refused) == "Failed"
    reported = message(refused, "ResourceCreated")
    assert reported.startswith(f"{kind.kind} 'm' was refused: ")
    assert "exceeded quota: none-of-these" in reported
    assert reported.endswith("; request less or have the quota raised")
    assert refused["status"]["message"] == reported
    await api.apply(QUOTAS, quota(namespace, spec={"hard": {counted: "1"}}), manager="admin")
    await api.apply_status(
        QUOTAS, quota(namespace, status={"hard": {counted: "1"}, "used": {counted: "0"}}), manager="admin"
    )
    await in_force(api, provider, namespace, None)
    await change_spec(api, namespace, "/spec/engine/contextLength", 4096)
    await until_deployment(api, "m", namespace, lambda obj: phase(obj) == "Running")


@pytest.mark.needs_kubernetes("1.30", "ValidatingAdmissionPolicy")
@pytest.mark.parametrize("why", [pytest.param("Invalid", id="422"), pytest.param("Forbidden", id="403")])
async def test_deleted_policy_lets_the_model_run(
    suite: Suite, api: Client, namespace: str, provider: str, why: str
) -> None:
    kind = UPSTREAM[provider]

    async with policy(api, provider, namespace, why):
        await create_model(api, namespace, GPU, provider)

        refused = await until_rejected(api, namespace)
        reported = message(refused, "ResourceCreated")
        assert reported.startswith(f"{kind.kind} 'm' was refused: ")
        assert f"denied request: {DENIAL}" in reported
        assert reported.endswith("; change the ModelDeployment or contact the owner of that policy")
    # Touched, though the manifest stays what it is.
    await change_spec(api, namespace, "/spec/provider/overrides", {"nobodyReadsThis": True})

    await until_deployment(api, "m", namespace, lambda obj: phase(obj) == "Running")


async def test_edit_that_satisfies_a_webhook_lets_the_model_run(
    suite: Suite, api: Client, namespace: str, provider: str
) -> None:
    kind = UPSTREAM[provider]
    words = "no image of that repository"

    async with refusing(
        api,
        kind,
        namespace,
        marker=BAD,
        code=400,
        words=words,
        example=foreign(provider, "example", namespace),
    ):
        await create_model(api, namespace, {**GPU, "image": BAD}, provider)

        refused = await until_rejected(api, namespace)
        assert message(refused, "ResourceCreated") == (
            f"{kind.kind} 'm' was refused: admission webhook \"test.{kind.crd}\" denied the request: {words}; "
            "change the ModelDeployment accordingly"
        )
        await change_spec(api, namespace, "/spec/image", GOOD)
        await until_deployment(api, "m", namespace, lambda obj: phase(obj) == "Running")


async def test_model_keeps_serving_while_its_edit_is_refused(
    suite: Suite, api: Client, namespace: str, provider: str
) -> None:
    kind = UPSTREAM[provider]
    await create_model(api, namespace, {**GPU, "image": GOOD}, provider)
    await until_deployment(api, "m", namespace, lambda obj: phase(obj) == "Running")
    serving = await api.get(kind, "m", namespace)

    async with refusing(
        api,
        kind,
        namespace,
        marker=BAD,
        code=403,
        words="no",
        example=foreign(provider, "example", namespace),
    ):
        await change_spec(api, namespace, "/spec/image", BAD)

        refused = await until_rejected(api, namespace)
        assert phase(refused) == "Running"
        assert reason(refused, "Ready") == "DeploymentReady"
        assert refused["status"]["endpoint"]["port"] > 0
        assert refused["status"]["message"].endswith("; the last good version keeps serving")
        still = await api.get(kind, "m", namespace)
        assert still["metadata"]["uid"] == serving["metadata"]["uid"]
        assert still["metadata"]["generation"] == serving["metadata"]["generation"]
        await change_spec(api, namespace, "/spec/image", GOOD)
        await until_deployment(
            api, "m", namespace, lambda obj: reason(obj, "ResourceCreated") == "ResourceCreated"
        )


async def until_rejected(api: Client, namespace: str) -> Object:
    return await until_deployment(
        api, "m", namespace, lambda obj: reason(obj, "ResourceCreated") == "ApplyRejected"
    )


def quota(namespace: str, **content: Any) -> Object:
    head = {"name": "none-of-these", "namespace": namespace}
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": head, **content}


@asynccontextmanager
async def policy(api: Client, provider: str, namespace: str, why: str) -> AsyncIterator[None]:
    """A policy against all that KubeFoundry makes of that kind, in force inside the block and no longer after it."""
    kind = UPSTREAM[provider]
    name = f"{namespace}-policy"
    matched = {
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
        "resourceRules": [
            {
                "apiGroups": [kind.group],
                "apiVersions": ["*"],
                "operations": ["CREATE", "UPDATE"],
                "resources": [kind.plural],
            }
        ],
    }
    rule = {
        "expression": "!('kubefoundry.ai/managed-by' in object.metadata.?labels.orValue({}))",
        "message": DENIAL,
        "reason": why,
    }
    made = await api.create(
        POLICIES,
        {
            "apiVersion": POLICIES.api_version,
            "kind": POLICIES.kind,
            "metadata": {"name": name},
            "spec": {"failurePolicy": "Fail", "matchConstraints": matched, "validations": [rule]},
        },
        manager="admin",
    )
    await api.create(
        BINDINGS,
        {
            "apiVersion": BINDINGS.api_version,
            "kind": BINDINGS.kind,
            "metadata": {"name": name},
            "spec": {"policyName": name, "validationActions": ["Deny"]},
        },
        manager="admin",
    )
    await in_force(api, provider, namespace, DENIAL)
    yield
    await api.delete(POLICIES, name, None, uid=made["metadata"]["uid"])
    await in_force(api, provider, namespace, None)


async def in_force(api: Client, provider: str, namespace: str, words: str | None) -> None:
    """Asks the API server, which learns of policies in its own time, until it refuses an example with these words,
    or takes it."""
    example = foreign(provider, "example", namespace)
    example["metadata"]["labels"] = {"kubefoundry.ai/managed-by": "kubefoundry"}
    async with asyncio.timeout(SECONDS):
        while True:
            try:
                await api.create(UPSTREAM[provider], example, manager="test", dry_run=True)
                met = words is None
            except ApiError as error:
                met = words is not None and words in error.message
            if met:
                return
            await asyncio.sleep(PROBE)
