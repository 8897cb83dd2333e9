"""Tests the status of services of providers: rows, ProviderDegraded, and ExternalProvidersReady."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kubefoundry_llamastack import installed_schema, report
from kubefoundry_llamastack.api.crd import definition
from kubefoundry_llamastack.degradation import STEADY_SECONDS
from kubefoundry_llamastack.reconcile import seconds_to_change
from kubefoundry_llamastack.render.request import Distribution
from kubefoundry_llamastack.snapshot import Obstacle, Snapshot
from support.llamastack import condition_of, container, crd_without_services, reason

Make = Callable[..., Distribution]
Object = dict[str, Any]

DEGRADED = "ProviderDegraded"
READY: Object = {"running": {}}
INSTALLED: Object = {"terminated": {"exitCode": 0, "message": '{"providerType": "remote::guard"}'}}
GUARD: Object = {"providerId": "guard", "image": "example.com/guard:1"}
SECRET = "hunter2-hunter2"
CRASH: Object = {"exitCode": 3, "reason": "Error", "message": f"the key is {SECRET}"}


def at(second: int) -> str:
    return f"2026-01-01T00:{second // 60:02}:{second % 60:02}Z"


def cr_of(make: Make, *, required: bool = True, **service: Any) -> Distribution:
    inline = {"providerId": "echo", "image": "example.com/echo:1"}
    return make(
        externalProviders={
            "inference": [inline],
            "safety": [{**GUARD, "service": {"required": required, **service}}],
        }
    )


def pod(service: Object, *, server: bool = True, name: str = "chat-1") -> Object:
    """Return a pod whose service's container has this status."""
    parts = [container(f"external-provider-{item}", **INSTALLED) for item in ("echo", "guard")]
    state = container("llama-stack", **(READY if server else {"waiting": {"reason": "PodInitializing"}}))
    return {
        "metadata": {"name": name, "namespace": "team"},
        "status": {
            "initContainerStatuses": [*parts, service],
            "containerStatuses": [{**state, "started": server}],
        },
    }


def service(restarts: int = 0, **state: Any) -> Object:
    return {**container("provider-guard", **state), "restartCount": restarts}


def status_of(cr: Distribution, *pods: Object, before: Object | None = None, second: int = 0) -> Object:
    return report.status(Snapshot(cr, pods=list(pods)), before or {}, at(second))


def row(status: Object, provider_id: str = "guard") -> Object:
    [found] = [item for item in status["externalProviderStatus"] if item["providerId"] == provider_id]
    return dict(found)


def test_rows_show_mode_container_and_restarts(make: Make) -> None:
    status = status_of(cr_of(make), pod(service(2, **READY)), pod(service(1, **READY), name="chat-2"))

    guard, echo = row(status), row(status, "echo")
    assert (guard["mode"], guard["container"], guard["ready"]) == ("Sidecar", "provider-guard", True)
    assert (guard["restarts"], guard["type"]) == (3, "remote::guard")
    assert (echo["mode"], echo["ready"]) == ("Inline", True)
    assert {"container", "restarts"} & {*echo} == set()
    assert status["providersReady"] == "2/2"
    assert reason(status, "ExternalProvidersReady") == "ProvidersReady"
    assert condition_of(status, DEGRADED) == {}


FAILURES = [
    ("crash", {"waiting": {"reason": "CrashLoopBackOff"}, "last": CRASH}, "ServiceCrashLoop", "exit code 3"),
    ("between runs", {"terminated": CRASH}, "ServiceCrashLoop", "--previous"),
    (
        "exit 0",
        {"terminated": {"exitCode": 0, "reason": "Completed"}},
        "ServiceCrashLoop",
        "must run until it is stopped",
    ),
    (
        "killed",
        {"terminated": {"exitCode": 137, "reason": "Error"}},
        "ServiceCrashLoop",
        "60 s after its start (service.health.startSeconds)",
    ),
    (
        "memory",
        {"terminated": {"exitCode": 137, "reason": "OOMKilled"}},
        "ServiceOutOfMemory",
        "service.resources.limits.memory",
    ),
    (
        "image",
        {"waiting": {"reason": "ImagePullBackOff", "message": "denied"}},
        "ServiceImagePullFailed",
        "ImagePullBackOff: denied",
    ),
    (
        "configuration",
        {"waiting": {"reason": "CreateContainerConfigError", "message": 'secret "s" not found'}},
        "ServiceConfigInvalid",
        'secret "s" not found',
    ),
    (
        "command",
        {"terminated": {"exitCode": 128, "reason": "StartError", "message": "exec: no such file"}},
        "ServiceConfigInvalid",
        "service.command",
    ),
    (
        "processor",
        {"terminated": {"exitCode": 128, "reason": "StartError", "message": "exec format error"}},
        "ServiceConfigInvalid",
        "processor architecture",
    ),
]


@pytest.mark.parametrize(
    ("state", "cause", "phrase"), [case[1:] for case in FAILURES], ids=[case[0] for case in FAILURES]
)
def test_failure_of_service_names_facts_and_remedy(
    make: Make, state: Object, cause: str, phrase: str
) -> None:
    status = status_of(cr_of(make), pod(service(1, **state), server=False))

    condition = condition_of(status, DEGRADED)
    first, *facts = condition["message"].splitlines()
    assert (condition["status"], condition["reason"]) == ("True", cause)
    assert "'guard'" in first
    assert facts[:5] == [
        *("Provider: guard", "Mode: Sidecar", "Image: example.com/guard:1", "Pod: chat-1"),
        "Container: provider-guard",
    ]
    assert facts[5].startswith("Resolution: ")
    assert phrase in condition["message"]
    assert (row(status)["ready"], row(status)["message"]) == (False, first)
    assert reason(status, "ExternalProvidersReady") == "ServiceNotReady"
    assert condition_of(status, "DeploymentReady")["message"] == condition["message"]


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        ("container has runAsNonRoot and image will run as root", "use one with a numeric USER"),
        ("runAsNonRoot and image has non-numeric user (app)", "use one with a numeric USER"),
        ("no command specified", "set service.command"),
        ('exec: "serve": executable file not found in $PATH', "correct service.command"),
        ('secret "s" not found', "Create the Secret"),
        ("couldn't find key k in Secret team/s", "Add the key"),
        ("something that nobody has seen", "the provider's service"),
    ],
)
def test_remedy_names_what_a_service_can_set(make: Make, text: str, remedy: str) -> None:
    waiting = {"reason": "CreateContainerConfigError", "message": text}

    status = status_of(cr_of(make), pod(service(waiting=waiting), server=False))

    resolution = condition_of(status, DEGRADED)["message"].partition("Resolution: ")[2]
    assert remedy in resolution
    assert not {"containerSpec", "podOverrides"} & {*resolution.replace(".", " ").split()}


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        ('Usage of EmptyDir volume "tmp-guard" exceeds the limit "64Mi". ', "service.scratch"),
        ('Usage of EmptyDir volume "svc-guard" exceeds the limit "1Mi". ', "/tmp"),
        (
            'Container provider-guard exceeded its local ephemeral storage limit "1Gi". ',
            "service.resources.limits",
        ),
        ('Usage of EmptyDir volume "tmp-guard-2" exceeds the limit "64Mi". ', "--provider-size-limit"),
        ("Container provider-guard-2 exceeded its local ephemeral storage limit", "--provider-size-limit"),
        (
            "The node was low on resource: ephemeral-storage. Container provider-guard was using 5Gi, request is 0. ",
            "another node",
        ),
    ],
)
def test_eviction_by_service_names_its_field(make: Make, text: str, remedy: str) -> None:
    evicted = pod(service(**READY))
    evicted["status"] |= {"phase": "Failed", "reason": "Evicted", "message": text}

    status = status_of(cr_of(make, scratch="64Mi"), evicted)

    message = condition_of(status, "DeploymentReady")["message"]
    assert reason(status, "DeploymentReady") == "Evicted"
    assert remedy in message.partition("Resolution: ")[2]


@pytest.mark.accept("L2-23")
def test_status_never_quotes_a_service(make: Make) -> None:
    status = status_of(cr_of(make), pod(service(1, terminated=CRASH)))

    events = report.announcements({}, status)

    assert SECRET not in f"{status} {events}"


def test_service_that_starts_is_waited_for(make: Make) -> None:
    starting = {**service(**READY), "ready": False}

    status = status_of(cr_of(make), pod(starting, server=False))

    condition = condition_of(status, "ExternalProvidersReady")
    assert (condition["reason"], condition["message"]) == (
        "ProvidersPending",
        "Waiting for the services of guard",
    )
    assert condition_of(status, DEGRADED) == {}
    assert status["providersReady"] == "0/2"


def test_unhealthy_service_beside_serving_server_is_degraded(make: Make) -> None:
    unhealthy = {**service(**READY), "ready": False}

    status = status_of(cr_of(make), pod(unhealthy))

    assert reason(status, DEGRADED) == "ServiceNotReady"
    assert "kubectl logs -n team chat-1 -c provider-guard" in condition_of(status, DEGRADED)["message"]


@pytest.mark.parametrize("server", [True, False], ids=["server started", "server starts"])
def test_started_service_is_not_reported_by_its_last_end(make: Make, server: bool) -> None:
    started = {**service(1, **READY, last=CRASH), "ready": False, "started": True}

    status = status_of(cr_of(make), pod(started, server=server))

    assert reason(status, DEGRADED) == "ServiceNotReady"
    assert "--previous" not in condition_of(status, DEGRADED)["message"]


@pytest.mark.parametrize("started", [False, None])
def test_service_that_starts_again_is_reported_by_its_last_end(make: Make, started: bool | None) -> None:
    starting = {**service(1, **READY, last=CRASH), "ready": False, "started": started}

    status = status_of(cr_of(make), pod(starting))

    assert reason(status, DEGRADED) == "ServiceCrashLoop"


@pytest.mark.accept("L2-12")
def test_optional_service_is_only_a_warning(make: Make) -> None:
    status = status_of(cr_of(make, required=False), pod(service(1, terminated=CRASH)))

    condition = condition_of(status, "ExternalProvidersReady")
    assert (condition["status"], reason(status, DEGRADED)) == ("True", "ServiceCrashLoop")
    [warning] = [line for line in condition["message"].splitlines() if line.startswith("WARNING: ")]
    assert "'guard'" in warning
    assert "its pod gets no requests until its container runs" in warning


@pytest.mark.parametrize("rollout", ["running", "complete"])
def test_unready_pod_of_optional_service_is_not_available(make: Make, rollout: str) -> None:
    """Kubernetes calls a pod ready only while all its containers run."""
    progress = {
        "type": "Progressing",
        "status": "True",
        "reason": "NewReplicaSetAvailable" if rollout == "complete" else "ReplicaSetUpdated",
    }
    live = {
        "metadata": {"generation": 1},
        "spec": {"replicas": 1},
        "status": {"observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "conditions": [progress]},
    }
    unready = pod(service(waiting={"reason": "ImagePullBackOff", "message": "denied"}))
    unready["status"]["conditions"] = [{"type": "Ready", "status": "False"}]

    status = report.status(Snapshot(cr_of(make, required=False), live, pods=[unready]), {}, at(0))

    message = condition_of(status, "DeploymentReady")["message"]
    assert "0 of 1" in message
    assert "service of provider 'guard' has no image: ImagePullBackOff: denied" in message
    assert "no requests" in message


def test_crash_loop_is_one_outage(make: Make) -> None:
    """The service ends every 20 seconds, and is ready for a moment after each start."""
    cr = cr_of(make)
    status: Object = {}
    transitions: list[str] = []
    for second in range(0, 100, 20):
        for offset, state in ((0, {"terminated": CRASH}), (5, READY)):
            after = status_of(cr, pod(service(second // 20, **state)), before=status, second=second + offset)
            transitions += [note[1] for note in report.announcements(status, after) if "Service" in note[1]]
            status = after
    steady = status_of(cr, pod(service(4, **READY)), before=status, second=85 + 59)
    recovered = status_of(cr, pod(service(4, **READY)), before=steady, second=85 + 60)

    assert transitions.count("ServiceCrashLoop") == 1
    assert reason(steady, DEGRADED) == "ServiceCrashLoop"
    assert condition_of(recovered, DEGRADED) == {}
    assert [note[:2] for note in report.announcements(steady, recovered) if "Recovered" in note[1]] == [
        (True, "ProviderRecovered")
    ]


@pytest.mark.parametrize("last", [0, 1, 30, 58, 59])
def test_degradation_ends_in_time_whenever_it_was_checked_last(make: Make, last: int) -> None:
    """The status is computed when the service is ready, once more for another reason, and when time is up."""
    cr, ready = cr_of(make), pod(service(1, **READY))
    failed = status_of(cr, pod(service(1, terminated=CRASH)))
    status = status_of(cr, ready, before=failed, second=10)
    status = status_of(cr, ready, before=status, second=10 + last)

    wait = seconds_to_change(status, at(10 + last))

    assert wait == STEADY_SECONDS - last
    ended = status_of(cr, ready, before=status, second=10 + last + int(wait))
    assert condition_of(ended, DEGRADED) == {}
    assert seconds_to_change(ended, at(10 + last + int(wait))) is None


def test_degradation_is_announced_as_warning(make: Make) -> None:
    status = status_of(cr_of(make), pod(service(1, terminated=CRASH)))

    events = [event for event in report.announcements({}, status) if event[1] == "ServiceCrashLoop"]

    assert [is_good for is_good, _, _ in events] == [False]


def test_removed_service_ends_degradation(make: Make) -> None:
    before = status_of(cr_of(make), pod(service(1, terminated=CRASH)))

    after = status_of(make(), before=before, second=1)

    assert condition_of(after, DEGRADED) == {}


REFUSED = Obstacle("DeploymentReady", "InvalidSpec", "wrong")


def test_degradation_ends_while_spec_is_refused(make: Make) -> None:
    """The pods of the earlier spec still run."""
    cr = cr_of(make)
    status = status_of(cr, pod(service(1, terminated=CRASH)))

    def refused(second: int, before: Object, cr: Distribution = cr) -> Object:
        snapshot = Snapshot(cr, pods=[pod(service(1, **READY))], obstacles=(REFUSED,))
        return report.status(snapshot, before, at(second))

    ready = refused(10, status)
    waiting, recovered = refused(69, ready), refused(70, ready)
    added = {"providerId": "new", "image": "example.com/new:1", "service": {}}
    wrong = make(externalProviders={"safety": [{**GUARD, "service": {}}, added]})

    assert reason(waiting, DEGRADED) == "ServiceCrashLoop"
    assert condition_of(recovered, DEGRADED) == {}
    assert recovered["providersReady"] == "2/2"
    assert condition_of(refused(70, ready, wrong), DEGRADED) == {}
    assert refused(70, ready, wrong)["providersReady"] == "1/1"


def test_evicted_pod_has_no_service(make: Make) -> None:
    evicted = pod(service(1, terminated=CRASH))
    evicted["status"]["phase"] = "Failed"

    status = status_of(cr_of(make), evicted)

    assert condition_of(status, DEGRADED) == {}
    assert row(status)["ready"] is False


def test_row_keeps_time_of_earlier_release(make: Make) -> None:
    """An earlier release has written no readiness: an upgrade alone changes no time."""
    cr = cr_of(make)
    before = status_of(cr, pod(service(**READY)))
    earlier = {key: value for key, value in row(before).items() if key not in ("ready", "restarts")}
    before["externalProviderStatus"] = [earlier]

    after = status_of(cr, pod(service(**READY)), before=before, second=30)

    assert row(after)["lastTransitionTime"] == at(0)


def test_status_fits_crd_of_earlier_release(make: Make) -> None:
    status = status_of(cr_of(make), pod(service(**READY)))

    fitting = installed_schema.fitting(status, crd_without_services())

    assert "providersReady" not in fitting
    assert {*row(fitting)} == {
        *("providerId", "image", "phase", "initContainerName", "message", "imageID", "lastTransitionTime")
    }
    assert fitting["conditions"] == status["conditions"]
    assert installed_schema.fitting(status, definition()) == status
    assert installed_schema.fitting(status, None) == status
