"""Tests the status of services with pods of their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pytest

from kubefoundry_llamastack import installed_schema, report
from kubefoundry_llamastack.api.crd import at, definition
from kubefoundry_llamastack.observe.own_pods import OwnPods
from kubefoundry_llamastack.render.request import Distribution
from kubefoundry_llamastack.snapshot import Obstacle, Snapshot
from support.llamastack import condition_of, container, reason

Make = Callable[..., Distribution]
Object = dict[str, Any]

NOW: Final = "2026-01-01T00:00:00Z"
SECRET: Final = "hunter2-hunter2"
INSTALLED: Final[Object] = {"terminated": {"exitCode": 0}}
READY: Final[Object] = {**container("provider-guard", running={}), "started": True}
CRASH: Final[Object] = {"exitCode": 3, "reason": "Error", "message": SECRET}
WAITING: Final = Obstacle("DeploymentReady", "WaitingForProviders", "Waiting for guard")


def cr_of(make: Make, **service: Any) -> Distribution:
    provider = {"providerId": "guard", "image": "example.com/guard:1"}
    return make(externalProviders={"safety": [{**provider, "service": {"mode": "Deployment", **service}}]})


def live(name: str, *, desired: int = 1, available: int = 1) -> Object:
    numbers = {"replicas": desired, "updatedReplicas": desired, "availableReplicas": available}
    conditions = [{"type": "Available", "status": "True" if available >= desired else "False"}]
    return {
        "metadata": {"name": name, "namespace": "team", "generation": 1},
        "spec": {"replicas": desired},
        "status": {**numbers, "observedGeneration": 1, "conditions": conditions},
    }


def pod(status: Object, **more: Any) -> Object:
    return {
        "metadata": {"name": "chat-guard-provider-1", "namespace": "team"},
        "status": {"containerStatuses": [status], **more},
    }


def own(*pods: Object, newest: Object | None = None, **numbers: int) -> OwnPods:
    return OwnPods(live("chat-guard-provider", **numbers), newest, [*pods])


def status_of(cr: Distribution, found: OwnPods, *obstacles: Obstacle, server: bool = True) -> Object:
    snapshot = Snapshot(cr, obstacles=tuple(obstacles), own_pods={"guard": found})
    if server:
        statuses = [container("external-provider-guard", **INSTALLED), container("llama-stack", running={})]
        server_pod = {"metadata": {"name": "chat-1"}, "status": {"containerStatuses": statuses}}
        snapshot = Snapshot(cr, live("chat"), None, [server_pod], tuple(obstacles), own_pods={"guard": found})
    return report.status(snapshot, {}, NOW)


def test_available_service_is_ready_with_its_endpoint(make: Make) -> None:
    status = status_of(
        cr_of(make), own(pod(READY), pod({**READY, "ready": False, "restartCount": 2}), desired=2)
    )

    [row] = status["externalProviderStatus"]
    assert (row["mode"], row["container"]) == ("Deployment", "chat-guard-provider")
    assert row["endpoint"] == "http://chat-guard-provider.team.svc"
    assert (row["ready"], row["restarts"]) == (True, 2)
    assert status["providersReady"] == "1/1"
    assert reason(status, "ExternalProvidersReady") == "ProvidersReady"


@pytest.mark.parametrize(
    ("unready_since", "degraded"),
    [("00:00:01", ""), ("00:00:02", ""), ("00:00:32", "ServiceNotReady")],
    ids=["before its start", "in the same second", "later"],
)
def test_pod_before_its_first_readiness_check_is_no_failure(
    make: Make, unready_since: str, degraded: str
) -> None:
    running = container("provider-guard", running={"startedAt": "2026-01-01T00:00:02Z"})
    condition = {"type": "Ready", "status": "False", "lastTransitionTime": f"2026-01-01T{unready_since}Z"}
    starting = pod({**running, "started": True, "ready": False}, conditions=[condition])

    status = status_of(cr_of(make), own(pod(READY), starting, desired=2))

    assert reason(status, "ProviderDegraded") == degraded


@pytest.mark.accept("L2-26")
@pytest.mark.parametrize(
    ("found", "expected", "phrases"),
    [
        (own(available=0, desired=0), "ServiceNotReady", ("scaled to 0", "service.replicas")),
        (
            own(pod(container("provider-guard", waiting={}, last=CRASH)), available=0),
            "ServiceCrashLoop",
            ("exit code 3", "kubectl logs -n team chat-guard-provider-1 -c provider-guard --previous"),
        ),
        (own(pod({**READY, "ready": False}), available=0), "ServiceNotReady", ("health check fails",)),
        (
            own(pod(container("provider-guard", waiting={"reason": "ErrImagePull"})), available=0),
            "ServiceImagePullFailed",
            ("service.image",),
        ),
        (
            own(
                pod(
                    {},
                    conditions=[
                        {
                            "type": "PodScheduled",
                            "status": "False",
                            "reason": "Unschedulable",
                            "message": "no room",
                        }
                    ],
                ),
                available=0,
            ),
            "ServiceUnschedulable",
            ("no room", "service.resources", "Deployment: chat-guard-provider"),
        ),
        (
            own(
                newest={
                    "spec": {"replicas": 1},
                    "status": {
                        "conditions": [
                            {"type": "ReplicaFailure", "status": "True", "message": "exceeded quota: q"}
                        ]
                    },
                },
                available=0,
            ),
            "ServiceNotReady",
            ("exceeded quota", "service.resources"),
        ),
        (
            own(
                newest={
                    "spec": {"replicas": 1},
                    "status": {
                        "conditions": [
                            {
                                "type": "ReplicaFailure",
                                "status": "True",
                                "message": 'serviceaccount "reader" not found',
                            }
                        ]
                    },
                },
                available=0,
            ),
            "ServiceNotReady",
            ('serviceaccount "reader"', "service.serviceAccountName"),
        ),
    ],
    ids=["scaled to 0", "crash", "unhealthy", "image", "no node", "quota", "no account"],
)
def test_failed_service_is_named_while_server_serves(
    make: Make, found: OwnPods, expected: str, phrases: tuple[str, ...]
) -> None:
    status = status_of(cr_of(make), found)

    degraded = condition_of(status, "ProviderDegraded")
    assert degraded["reason"] == expected
    assert [phrase for phrase in phrases if phrase not in degraded["message"]] == []
    assert "Mode: Deployment" in degraded["message"]
    assert "Resolution: " in degraded["message"]
    assert reason(status, "ExternalProvidersReady") == "ServiceNotReady"
    assert status["phase"] == "Ready"
    assert SECRET not in str(status)


def test_autoscaled_service_without_pods_has_an_accepted_remedy(make: Make) -> None:
    """The spec may not have a number beside an autoscaler, and an autoscaler leaves 0 as it is."""
    cr = cr_of(make, autoscaling={"maxReplicas": 3})

    status = status_of(cr, own(available=0, desired=0))

    message = condition_of(status, "ProviderDegraded")["message"]
    assert "kubectl scale -n team deployment chat-guard-provider --replicas=1" in message
    assert "service.replicas" not in message


def test_recovered_service_is_not_degraded_without_server_pods(make: Make) -> None:
    """Its provider is installed only in a pod of the server, which may fail for another reason."""
    cr = cr_of(make)
    before = status_of(cr, own(available=0, desired=0), server=False)

    recovering, recovered = (
        report.status(Snapshot(cr, own_pods={"guard": own(pod(READY))}), earlier, now)
        for earlier, now in ((before, NOW), (before, "2026-01-01T00:01:00Z"))
    )
    steady = report.status(
        Snapshot(cr, own_pods={"guard": own(pod(READY))}), recovered, "2026-01-01T00:02:00Z"
    )

    assert condition_of(recovering, "ProviderDegraded")["reason"] == "ServiceNotReady"
    assert condition_of(recovered, "ProviderDegraded")["reason"] == "ServiceNotReady"
    assert not condition_of(steady, "ProviderDegraded")
    assert steady["providersReady"] == "0/1"


def test_one_failed_pod_beside_available_one_degrades_only(make: Make) -> None:
    crashed = pod(container("provider-guard", waiting={}, last=CRASH))

    status = status_of(cr_of(make), own(pod(READY), crashed, desired=2))

    assert reason(status, "ProviderDegraded") == "ServiceCrashLoop"
    assert reason(status, "ExternalProvidersReady") == "ProvidersReady"


def test_optional_service_that_fails_is_a_warning(make: Make) -> None:
    status = status_of(cr_of(make, required=False), own(available=0, desired=0))

    providers = condition_of(status, "ExternalProvidersReady")
    assert providers["reason"] == "ProvidersReady"
    assert "so the server serves without it" in providers["message"]
    assert "gets no requests" not in str(status)


def test_server_that_waits_is_pending_and_row_names_the_failure(make: Make) -> None:
    found = own(pod(container("provider-guard", waiting={}, last=CRASH)), available=0)

    status = status_of(cr_of(make), found, WAITING, server=False)

    [row] = status["externalProviderStatus"]
    assert status["phase"] == "Pending"
    assert reason(status, "DeploymentReady") == "WaitingForProviders"
    assert "exit code 3" in row["message"]


def test_mode_that_installed_crd_refuses_is_left_out(make: Make) -> None:
    crd = definition()
    schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    mode = at(schema, "status.externalProviderStatus[]")["properties"]["mode"]
    mode["enum"].remove("Deployment")
    status = status_of(cr_of(make), own(pod(READY)))

    [row] = installed_schema.fitting(status, crd)["externalProviderStatus"]

    assert "mode" not in row
    assert row["providerId"] == "guard"
