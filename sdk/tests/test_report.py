"""The status from the results of a reconcile, and the Events about its changes."""

from __future__ import annotations

from typing import Any

import pytest

from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._provider.contract import Capabilities, Endpoint, Observation, Provider, Replicas
from kubefoundry_sdk._provider.reconcile.report import UNREAD, Report, Stop, transitions
from kubefoundry_sdk._provider.upstream_kind import UpstreamKind


def never(*arguments: object) -> Any:
    raise AssertionError("a report asks the provider for nothing")


PROVIDER = Provider(
    name="example",
    title="Example",
    version="0.1.0",
    documentation="",
    capabilities=Capabilities(("vllm",), ("aggregated",), False, True),
    upstream=UpstreamKind("example.com", "engines", "Engine"),
    probe=never,
    supports=never,
    render=never,
    observe=never,
)
LIVE: Object = {"apiVersion": "example.com/v1", "metadata": {"name": "m"}}

REFUSED = Stop("ResourceCreated", "ApplyRejected", "Engine 'm' was refused: no", failed=True)
UNSUPPORTED = Stop("ProviderCompatible", "Unsupported", "Example does not support sglang engine", failed=True)
WAITING = Stop("ResourceCreated", "WaitingForCleanup", "Waiting for provider other", failed=False)
RECREATING = Stop("ResourceCreated", "Recreating", "Engine 'm' is deleted and recreated", failed=False)
INVALID = Stop("Validated", "ValidationFailed", "model.id is required", failed=False)


def seen(phase: str) -> Observation:
    reason = {"Running": "DeploymentReady", "Failed": "Failed"}.get(phase, "Progressing")
    return Observation(phase, reason, f"it is {phase}", Replicas(2, 1, 1), Endpoint("m", 80))  # type: ignore[arg-type]


def report(stop: Stop | None, phase: str | None) -> Report:
    result = Report(generation=3, stop=stop)
    if phase:
        result.observation, result.live = seen(phase), LIVE
    return result


@pytest.mark.parametrize(
    ("stop", "observed", "phase", "reason", "message"),
    [
        (None, None, "Pending", "Progressing", "Waiting for the upstream object"),
        (None, "Pending", "Pending", "Progressing", "it is Pending"),
        (None, "Deploying", "Deploying", "Progressing", "it is Deploying"),
        (None, "Running", "Running", "DeploymentReady", "it is Running"),
        (None, "Failed", "Failed", "Failed", "it is Failed"),
        (REFUSED, None, "Failed", "Failed", REFUSED.message),
        (UNSUPPORTED, None, "Failed", "Failed", UNSUPPORTED.message),
        (WAITING, None, "Pending", "Progressing", WAITING.message),
        (REFUSED, "Running", "Running", "DeploymentReady", f"{REFUSED.message}; the model keeps serving"),
        (INVALID, "Running", "Running", "DeploymentReady", f"{INVALID.message}; the model keeps serving"),
        (RECREATING, "Running", "Running", "DeploymentReady", RECREATING.message),
        (REFUSED, "Failed", "Failed", "Failed", f"it is Failed; {REFUSED.message}"),
        (WAITING, "Failed", "Failed", "Failed", f"it is Failed; {WAITING.message}"),
        (INVALID, "Failed", "Failed", "Failed", f"it is Failed; {INVALID.message}"),
    ],
)  # fmt: skip
def test_status_reports_stop_or_observation(
    stop: Stop | None, observed: str | None, phase: str, reason: str, message: str
) -> None:
    status = report(stop, observed).status(PROVIDER)

    [ready] = [item for item in status["conditions"] if item["type"] == "Ready"]
    assert (status["phase"], ready["reason"], status["message"]) == (phase, reason, message)
    assert ready["status"] == ("True" if phase == "Running" else "False")
    assert ready["message"] == message
    assert status["observedGeneration"] == ready["observedGeneration"] == 3


def test_mixed_stop_does_not_name_a_good_version() -> None:
    part = Stop("ResourceCreated", "ApplyRejected", "a part is taken back", failed=True)
    result = report(part, "Running")
    result.seen_generation, result.is_mixed = 2, True

    status = result.status(PROVIDER)

    assert status["message"] == "a part is taken back; the model keeps serving"
    assert status["observedGeneration"] == 2


def test_ready_names_what_admission_changed_before_additions() -> None:
    result = report(None, "Running")
    result.altered, result.additions = "admission changed a", "others added b"

    status = result.status(PROVIDER)

    [ready] = [item for item in status["conditions"] if item["type"] == "Ready"]
    assert status["message"] == ready["message"] == "it is Running; admission changed a; others added b"


@pytest.mark.parametrize(
    ("serving", "words"),
    [
        pytest.param(2, "the last good version keeps serving", id="an earlier generation"),
        pytest.param(3, "the model keeps serving", id="the newest generation"),
        pytest.param(None, "the model keeps serving", id="the newest generation, nothing held back"),
        pytest.param(0, "the model serves, but it is not known which version", id="unknown"),
    ],
)
def test_message_claims_the_version_that_is_known_to_serve(serving: int | None, words: str) -> None:
    subject = report(REFUSED, "Running")
    subject.seen_generation = serving

    assert subject.status(PROVIDER)["message"] == f"{REFUSED.message}; {words}"


def test_repeated_report_names_the_last_good_version() -> None:
    subject = report(REFUSED, "Running")
    subject.generation = 2

    assert subject.status(PROVIDER)["message"].endswith("; the last good version keeps serving")


def test_unread_status_is_no_evidence_of_serving() -> None:
    subject = report(REFUSED, "Running")
    subject.stale, subject.stale_reason = "cannot be read", UNREAD

    assert subject.status(PROVIDER)["message"] == f"{REFUSED.message}; it is Running"


def test_endpoint_is_published_only_while_it_serves() -> None:
    assert "endpoint" not in report(None, "Deploying").status(PROVIDER)
    assert report(REFUSED, "Running").status(PROVIDER)["endpoint"] == {"service": "m", "port": 80}


def test_endpoint_of_a_leaving_object_is_published() -> None:
    subject = report(RECREATING, "Deploying")
    subject.endpoint = {"service": "old", "port": 8000}

    assert subject.status(PROVIDER)["endpoint"] == {"service": "old", "port": 8000}


def test_without_an_upstream_object_nothing_of_it_is_reported() -> None:
    status = report(REFUSED, None).status(PROVIDER)

    assert {"provider", "replicas", "endpoint"}.isdisjoint(status)


def test_status_names_upstream_object_and_replicas() -> None:
    status = report(None, "Deploying").status(PROVIDER)

    assert status["provider"] == {
        "resourceName": "m",
        "resourceKind": "Engine",
        "resourceAPIVersion": "example.com/v1",
    }
    assert status["replicas"] == {"desired": 2, "ready": 1, "available": 1}


def test_each_finding_has_its_condition() -> None:
    subject = report(None, "Running")
    subject.compatible, subject.created, subject.notes = (
        "Configuration compatible",
        "Created Engine 'm'",
        ["So you know."],
    )
    subject.override_warning = "Ignored unknown provider.overrides: x"

    status = subject.status(PROVIDER)

    reported = {
        item["type"]: (item["status"], item["reason"], item["message"]) for item in status["conditions"]
    }
    assert reported == {
        "ProviderCompatible": ("True", "CompatibilityVerified", "Configuration compatible. So you know."),
        "ResourceCreated": ("True", "ResourceCreated", "Created Engine 'm'"),
        "OverridesValid": ("False", "UnknownKeys", "Ignored unknown provider.overrides: x"),
        "Ready": ("True", "DeploymentReady", "it is Running"),
    }


def status_of(stop: Stop | None, phase: str | None, created: str | None = None) -> dict[str, Any]:
    subject = report(stop, phase)
    subject.created = created
    return subject.status(PROVIDER)


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param({}, status_of(REFUSED, None), [("Warning", "ApplyRejected")], id="refused"),
        pytest.param(
            {}, status_of(None, "Deploying", "Created"), [("Normal", "ResourceCreated")], id="created"
        ),
        pytest.param({}, status_of(WAITING, None), [("Normal", "WaitingForCleanup")], id="waiting"),
        pytest.param(
            status_of(None, "Running", "Created"),
            status_of(RECREATING, "Running"),
            [("Normal", "Recreating")],
            id="recreated",
        ),
        pytest.param(
            status_of(None, "Deploying", "Created"),
            status_of(None, "Running", "Created"),
            [("Normal", "DeploymentReady")],
            id="ready",
        ),
        pytest.param(
            status_of(None, "Running", "Created"),
            status_of(None, "Failed", "Created"),
            [("Warning", "ProviderError")],
            id="broken",
        ),
        pytest.param(
            status_of(REFUSED, "Running"),
            status_of(REFUSED, "Failed"),
            [("Warning", "ProviderError")],
            id="broken behind a refused edit",
        ),
        pytest.param(
            status_of(None, "Failed", "Created"), status_of(None, "Failed", "Created"), [], id="still broken"
        ),
        pytest.param(
            status_of(None, "Running", "Created"),
            status_of(None, "Running", "Created again"),
            [],
            id="another text of the same state",
        ),
    ],
)
def test_event_is_reported_for_each_transition_only(
    before: dict[str, Any], after: dict[str, Any], expected: list[tuple[str, str]]
) -> None:
    assert [(type_, reason) for type_, reason, _ in transitions(before, after)] == expected


def test_event_of_readiness_says_that_the_model_serves() -> None:
    """A restored status names no generation, so an earlier spec may serve when Ready becomes True."""
    restored = report(None, "Running")
    restored.seen_generation, restored.held_back = 0, "waiting for the status of Example to settle"

    [(type_, reason, note)] = transitions({}, restored.status(PROVIDER))

    assert (type_, reason) == ("Normal", "DeploymentReady")
    assert note == (
        "The spec that serves may not be the newest: waiting for the status of Example to settle; "
        "it is Running"
    )


def test_event_of_failure_has_the_words_of_the_design() -> None:
    [(_, _, note)] = transitions({}, status_of(None, "Failed"))

    assert note == "Provider resource in error state: it is Failed"


@pytest.mark.parametrize(("stop", "phase"), [(None, "Running"), (None, "Failed"), (REFUSED, "Running")])
def test_additions_of_others_end_the_message(stop: Stop | None, phase: str) -> None:
    subject = report(stop, phase)
    subject.additions = "Engine 'm' has fields that others added: spec.x (editor); they are left as they are"

    status = subject.status(PROVIDER)

    ready = next(item for item in status["conditions"] if item["type"] == "Ready")
    assert status["message"].endswith(f"; {subject.additions}")
    assert ready["message"] == status["message"]
