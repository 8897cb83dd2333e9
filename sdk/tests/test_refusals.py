"""What a user reads of a manifest that the API server refused."""

from __future__ import annotations

import pytest

from kubefoundry_sdk._api.kinds import Kind
from kubefoundry_sdk._cluster.errors import ApiError, Cause, Details
from kubefoundry_sdk._provider.write.apply import ORIGIN
from kubefoundry_sdk._runtime import backoff
from kubefoundry_sdk._runtime.refusals import (
    GRADUAL,
    PASSING,
    PERMISSION,
    QUOTA,
    RETRY,
    Obstacle,
    PendingRefusal,
    Refusal,
    Refused,
    refused,
)

MODELS = Kind("acme.io", "v1", "models", "Model")
FORBIDDEN = 'models.acme.io "m" is forbidden: '


@pytest.mark.parametrize(
    ("code", "words", "remedy"),
    [
        pytest.param(
            400, "name: too long", "change the ModelDeployment accordingly", id="webhook that answers 400"
        ),
        pytest.param(
            422,
            f"{FORBIDDEN}ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no",
            "change the ModelDeployment or contact the owner of that policy",
            id="policy that answers 422, as by default",
        ),
        pytest.param(
            422,
            'Model "m" is invalid: spec.x: is required',
            "change the ModelDeployment accordingly",
            id="CRD",
        ),
        pytest.param(
            403,
            f"{FORBIDDEN}ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no",
            "change the ModelDeployment or contact the owner of that policy",
            id="policy that answers 403",
        ),
        pytest.param(
            403,
            'admission webhook "w.example.com" denied the request: you cannot have this',
            "change the ModelDeployment or contact the owner of that policy",
            id="webhook that answers 403",
        ),
        pytest.param(
            403,
            f"{FORBIDDEN}exceeded quota: q, requested: count/models.acme.io=1, used: ..., limited: ...=0",
            "request less or have the quota raised",
            id="quota",
        ),
        pytest.param(
            403,
            f'{FORBIDDEN}User "system:serviceaccount:s:a" cannot create resource "models" in API group "acme.io"',
            "ask an administrator to grant the provider's ServiceAccount that permission",
            id="RBAC",
        ),
        pytest.param(
            403,
            f"{FORBIDDEN}cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set "
            "finalizers on: no",
            "ask an administrator to grant the provider's ServiceAccount that permission",
            id="owner references",
        ),
        pytest.param(
            403,
            f"{FORBIDDEN}create not allowed while custom resource definition is terminating",
            "change the ModelDeployment or contact the cluster's administrator",
            id="anything else",
        ),
    ],
)
def test_refusal_quotes_the_server_and_names_the_remedy(code: int, words: str, remedy: str) -> None:
    reported = refused(MODELS, "m", ApiError(code, "Whatever", words), ORIGIN)

    assert str(reported) == f"Model 'm' was refused: {words}; {remedy}"
    sooner = {"ask": PERMISSION, "request": QUOTA}
    assert reported.retry == sooner.get(remedy.split()[0], RETRY)
    assert not reported.may_pass


def test_quota_that_is_not_counted_yet_is_tried_again_soon() -> None:
    words = f"{FORBIDDEN}status unknown for quota: q, resources: count/models.acme.io"

    reported = refused(MODELS, "m", ApiError(403, "Forbidden", words), ORIGIN)

    assert reported.may_pass
    assert reported.retry == QUOTA
    assert "has not counted what that quota limits yet, so the write is tried again" in str(reported)


def test_terminating_namespace_is_recognized_by_its_cause() -> None:
    details = Details("models", "m", (Cause("NamespaceTerminating", "namespace n is being terminated"),))

    reported = refused(MODELS, "m", ApiError(403, "Forbidden", f"{FORBIDDEN}no", details=details), ORIGIN)

    assert str(reported).endswith("is forbidden: no; the namespace is being deleted")
    assert reported.obstacle is Obstacle.NAMESPACE


def test_policy_that_mentions_other_causes_is_a_policy() -> None:
    words = 'admission webhook "w" denied the request: exceeded quota of the team: you cannot have it'

    reported = refused(MODELS, "m", ApiError(403, "Forbidden", words), ORIGIN)

    assert reported.obstacle is Obstacle.POLICY
    assert reported.lacking == ""


def test_missing_permission_is_retried_sooner_than_refusals() -> None:
    missing, invalid = Refusal(), Refusal()
    missing.remember("d", 100.0, Refused("no permission", PERMISSION))
    invalid.remember("d", 100.0, Refused("invalid"))

    assert missing.pending("d", 104.0) == PendingRefusal("no permission", 1.0, False)
    assert missing.pending("d", 105.0) is None
    assert invalid.pending("d", 105.0) == PendingRefusal("invalid", RETRY - 5, False)
    assert invalid.pending("another", 105.0) is None


@pytest.mark.parametrize(
    "words",
    [
        # KAITO 0.12, a second after its start, and a moment after the ConfigMap was created.
        "validation failed: Failed to list nodes with labelSelector: the cache is not started, can not read objects",
        "validation failed: Failed to get ConfigMap m-config-1",
        "validation failed: ConfigMap 'm-config-1' specified in 'config' not found in namespace n",
        'Get "https://10.0.0.1/api": dial tcp 10.0.0.1:443: connect: connection refused',
    ],
)
@pytest.mark.parametrize("code", [400, 403, 422])
def test_refusal_may_pass_when_webhook_cannot_read(code: int, words: str) -> None:
    denial = f'admission webhook "w.kaito.sh" denied the request: {words}'

    reported = refused(MODELS, "m", ApiError(code, "Whatever", denial), ORIGIN)

    assert reported.may_pass
    assert denial in str(reported)
    assert "change the ModelDeployment" not in str(reported)


def test_passing_refusal_is_retried_soon_and_then_every_minute() -> None:
    refusal, now, tries = Refusal(), 100.0, 0
    denial = 'admission webhook "w.kaito.sh" denied the request: the cache is not started'
    reported = refused(MODELS, "m", ApiError(400, "BadRequest", denial), ORIGIN)

    while (pending := refusal.remember("d", now, reported)).is_transient:
        assert refusal.pending("d", now + pending.left / 2) is not None
        now += pending.left
        assert refusal.pending("d", now) is None
        tries += 1

    assert PASSING <= now - 100.0 < 2 * PASSING
    assert 5 <= tries <= 12
    assert pending.left == backoff.FAULT_DELAY
    assert refusal.remember("changed", now, reported).is_transient


def test_gradual_refusal_is_retried_with_backoff() -> None:
    refusal, taken = Refusal(), Refused("m lacks a value", gradual=GRADUAL)
    now, delays = 0.0, []

    for _ in range(8):
        pending = refusal.remember("a", now, taken)
        delays.append(pending.left)
        assert refusal.pending("a", now) == PendingRefusal("m lacks a value", pending.left, False)
        now += pending.left

    assert delays == [5.0, 10.0, 20.0, 40.0, 80.0, 160.0, RETRY, RETRY]
