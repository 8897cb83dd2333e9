"""Advice on conditions: it adds to the message, which says what to do where the components know it."""

from __future__ import annotations

from typing import Any, Final

import pytest

from kubefoundry_cli import advice
from kubefoundry_cli.health import health_of
from kubefoundry_sdk._api.reasons import (
    OVERRIDES_VALID,
    PROVIDER_COMPATIBLE,
    PROVIDER_HEALTHY,
    PROVIDER_SELECTED,
    READY,
    RESOURCE_CREATED,
    STALE_STATUS,
    VALIDATED,
)
from support.message_commands import IMPERATIVE, sources, texts

SOURCES: Final = (
    (VALIDATED, "ValidationFailed", "core/decision", "{}: {}"),
    (VALIDATED, "ProviderTooOld", "core/decision", "provider {} {}"),
    (PROVIDER_SELECTED, "ProviderNotRegistered", "core/decision", "Provider '{}' is not registered"),
    (PROVIDER_SELECTED, "NoSelector", "core/decision", "No provider specified"),
    (PROVIDER_SELECTED, "NoHealthyProviders", "selector/wording", "{} but {}, which is of last resort"),
    (PROVIDER_SELECTED, "NoHealthyProviders", "selector/wording", "{}: none is registered. Ask"),
    (PROVIDER_SELECTED, "NoHealthyProviders", "selector/wording", "Ask an administrator to check"),
    (PROVIDER_SELECTED, "NoMatchingProvider", "selector/wording", "No provider matches"),
    (PROVIDER_SELECTED, "NoMatchingProvider", "selector/wording", "The selector chose no provider"),
    (PROVIDER_COMPATIBLE, "Unsupported", "sdk/_provider/reconcile/compatibility", "{} requires GPU"),
    (PROVIDER_COMPATIBLE, "Unsupported", "kaito/supports", "KAITO does not allow a dot in a name"),
    (PROVIDER_COMPATIBLE, "InvalidOverrides", "sdk/_provider/reconcile/overrides", "{}: {}"),
    (RESOURCE_CREATED, "DryRun", "sdk/_provider/reconcile/dry_run", "Dry run: "),
    (RESOURCE_CREATED, "CRDNotInstalled", "sdk/_provider/reconcile/preconditions", "Provider '{}' CRD not"),
    (RESOURCE_CREATED, "UnsupportedSchema", "sdk/_provider/reconcile/preconditions", "CRD {} lacks"),
    (RESOURCE_CREATED, "ApplyRejected", "sdk/_runtime/refusals", "change the {} accordingly"),
    (RESOURCE_CREATED, "ApplyRejected", "sdk/_runtime/refusals", "request less or have the quota raised"),
    (RESOURCE_CREATED, "ApplyFailed", "sdk/_provider/reconcile/failures", "A write failed"),
    (RESOURCE_CREATED, "ProviderError", "sdk/_provider/reconcile/failures", "Provider {} has an error"),
    (
        RESOURCE_CREATED,
        "ProviderError",
        "sdk/_provider/reconcile/failures",
        "Provider {} failed with an internal",
    ),
    (
        RESOURCE_CREATED,
        "NameConflict",
        "sdk/_provider/reconcile/preconditions",
        "{} exists and was not created",
    ),
    (RESOURCE_CREATED, "NameConflict", "sdk/_provider/reconcile/preconditions", "{} exists, and its owner"),
    (
        RESOURCE_CREATED,
        "NameConflict",
        "sdk/_provider/reconcile/preconditions",
        "{} exists and was created for an",
    ),
    (VALIDATED, "ClaimNotReady", "core/claim_decision", "exists and was not created for this volume"),
    (VALIDATED, "ClaimNotReady", "core/claim_decision", "is being deleted. It is created again"),
    (VALIDATED, "ImageVolumesUnsupported", "core/image_volumes", "volume {} is an image"),
    (RESOURCE_CREATED, "Recreating", "sdk/_provider/reconcile/recreate", "{} is deleted and recreated"),
    (RESOURCE_CREATED, "WaitingForCleanup", "sdk/_provider/reconcile/handover", "Waiting for provider"),
    (RESOURCE_CREATED, "Terminating", "sdk/_provider/reconcile/deletion", "{} is being removed for provider"),
    (READY, "Progressing", "sdk/_provider/health/pod_causes", "pod {} cannot be scheduled"),
    (READY, "Failed", "sdk/_provider/health/pod_causes", "image {} of {} cannot be pulled"),
    (READY, "ScaledToZero", "direct/observe", "Scaled to zero"),
    (READY, "Unknown", "dynamo/observe", "unknown state {} of the"),
    (
        READY,
        "EndpointUnverified",
        "sdk/_provider/health/verification",
        "{}; look at its Service, the pods behind it",
    ),
    (READY, "EndpointUnverified", "sdk/_provider/health/verification", "its endpoint {} lists"),
    (PROVIDER_HEALTHY, "HeartbeatLost", "core/provider_health", "Provider {} is not registered"),
    (PROVIDER_HEALTHY, "HeartbeatLost", "core/provider_health", "Provider {} {}has sent no heartbeat"),
    # quoted in core's message
    (PROVIDER_HEALTHY, "UpstreamOperatorDown", "sdk/_provider/registration", "{}; check why its pods"),
    (STALE_STATUS, "NoUpstreamProgress", "sdk/_provider/health/staleness", "{} '{}' {} for more than"),
    (STALE_STATUS, "ProviderError", "sdk/_provider/reconcile/failures", "Provider {} has an error"),
    (OVERRIDES_VALID, "UnknownKeys", "sdk/_provider/reconcile/compatibility", "Ignored unknown"),
)
"""Condition, reason, and the module with the beginning of a message of that reason."""


TREES: Final = dict(sources())


def message_of(module: str, beginning: str) -> str:
    """The message in the sources, with `{}` for each computed part."""
    return next(text for _, text in texts(TREES[module]) if text.startswith(beginning))


def model(type_: str, reason: str, message: str, **status: Any) -> dict[str, Any]:
    """A ModelDeployment with one condition that is trouble."""
    condition = {
        "type": type_,
        "reason": reason,
        "message": message,
        "status": "True" if type_ == STALE_STATUS else "False",
        "observedGeneration": 1,
    }
    return {
        "metadata": {"name": "m", "namespace": "models", "generation": 1},
        "spec": {"provider": {"name": "kaito"}},
        "status": {"conditions": [condition], **status},
    }


def advice_on(obj: dict[str, Any]) -> str:
    return advice.advice(obj["status"]["conditions"][0], obj)


@pytest.mark.parametrize(("type_", "reason", "module", "beginning"), SOURCES)
def test_advice_does_not_repeat_the_remedy_of_the_message(
    type_: str, reason: str, module: str, beginning: str
) -> None:
    message = message_of(module, beginning)

    added = advice_on(model(type_, reason, message))

    assert not (IMPERATIVE.search(message) and IMPERATIVE.search(added)), (message, added)


def test_every_reason_with_advice_is_compared_with_its_messages() -> None:
    compared = {(type_, reason) for type_, reason, _, _ in SOURCES}

    assert compared == {(type_, reason) for type_, reasons in advice.ADVICE.items() for reason in reasons}


@pytest.mark.parametrize(
    ("provider", "expected"),
    [
        pytest.param({"name": "kuberay"}, "kubefoundry import rayservice/m", id="before the object exists"),
        pytest.param({"name": "direct"}, "kubefoundry import deployment/m", id="a built-in kind"),
        pytest.param({"name": "kuberay", "resourceName": "m"}, "", id="a helper of the model's object"),
        pytest.param({"name": "other"}, "", id="a provider whose package is not installed"),
        pytest.param(7, "", id="a corrupt status"),
    ],
)
def test_name_conflict_offers_import_of_upstream_kind(provider: Any, expected: str) -> None:
    message = "Anything 'm' exists: delete it or choose another name"

    added = advice_on(model(RESOURCE_CREATED, "NameConflict", message, provider=provider))

    assert added.endswith(expected)
    assert bool(added) == bool(expected)


def test_trouble_without_advice_ends_with_its_message() -> None:
    obj = model(RESOURCE_CREATED, "NameConflict", "Service 'm' exists: delete it or choose another name")

    assert health_of(obj).text.endswith("choose another name")
