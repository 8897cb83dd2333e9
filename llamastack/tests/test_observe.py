"""Tests which pods count, and the report of a pod that does not start."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kubefoundry_llamastack.observe import containers, deployments, pods
from kubefoundry_llamastack.render.request import Distribution

Make = Callable[..., Distribution]
Object = dict[str, Any]

ECHO = {"providerId": "echo", "image": "example.com/echo:1"}
INSTALL = "external-provider-echo"


def owned(name: str, uid: str, owner: str, **more: Any) -> Object:
    return {"metadata": {"name": name, "uid": uid, "ownerReferences": [{"uid": owner}], **more}}


def pod(name: str, status: Object, **more: Any) -> Object:
    return {**owned(name, name, "set", **more), "status": status}


def state(**given: Any) -> Object:
    return {"initContainerStatuses": [{"name": INSTALL, "state": given}]}


def test_newest_replica_set_has_highest_revision() -> None:
    sets = [
        owned(name, name, owner, annotations={pods.REVISION: revision})
        for name, owner, revision in (("a", "d", "9"), ("b", "d", "10"), ("c", "other", "11"))
    ]

    newest = pods.newest(sets, "d")

    assert newest is not None
    assert newest["metadata"]["name"] == "b"
    assert pods.newest([], "d") is None


@pytest.mark.parametrize("revision", ["²", "٣", "9" * 5000, "-1", " 2", "1_0", "x", ""])
def test_newest_replica_set_ignores_invalid_revision(revision: str) -> None:
    sets = [
        owned(name, name, "d", annotations={pods.REVISION: text})
        for name, text in (("a", "1"), ("b", revision))
    ]

    newest = pods.newest(sets, "d")

    assert newest is not None
    assert newest["metadata"]["name"] == "a"


def test_live_pods_exclude_terminating_pods() -> None:
    live = pods.live_pods(
        [
            pod("going", {}, deletionTimestamp="now"),
            pod("evicted", {"phase": "Failed"}),
            pod("there", {"phase": "Pending"}),
        ],
        {"metadata": {"uid": "set"}},
    )

    assert [item["metadata"]["name"] for item in live] == ["there"]


@pytest.mark.accept("FR-028")
@pytest.mark.parametrize(
    ("states", "phase"),
    [
        ([], "Pending"),
        ([{}], "Pending"),
        ([state(waiting={"reason": "PodInitializing"})], "Pending"),
        ([state(running={})], "Installing"),
        ([state(terminated={"exitCode": 0})], "Ready"),
        ([state(terminated={"exitCode": 1})], "Failed"),
        ([state(waiting={"reason": "ErrImagePull"})], "Failed"),
        ([state(waiting={"reason": "InvalidImageName"})], "Failed"),
        ([state(terminated={"exitCode": 0}), state(running={})], "Installing"),
        ([state(terminated={"exitCode": 0}), state(terminated={"exitCode": 1})], "Failed"),
        ([{"phase": "Failed", "reason": "Evicted", "message": "disk"}], "Failed"),
    ],
)
def test_provider_row_is_worst_of_its_pods(make: Make, states: list[Object], phase: str) -> None:
    cr = make(externalProviders={"inference": [ECHO]})

    [row] = pods.rows(cr, [pod(str(index), item) for index, item in enumerate(states)])

    assert row["phase"] == phase


@pytest.mark.parametrize(
    ("status", "reason", "phrase"),
    [
        ({"phase": "Failed", "reason": "Evicted", "message": "no disk"}, "Evicted", "no disk"),
        (
            {"conditions": [{"type": "PodScheduled", "status": "False", "message": "0/3 nodes"}]},
            "Unschedulable",
            "0/3 nodes",
        ),
        (
            {
                "containerStatuses": [
                    {"name": "llama-stack", "state": {"waiting": {"reason": "ErrImagePull"}}}
                ]
            },
            "ImagePullFailed",
            "distribution image example.com/stack:1",
        ),
        (
            {
                "containerStatuses": [
                    {
                        "name": "llama-stack",
                        "state": {"waiting": {"reason": "CrashLoopBackOff"}},
                        "lastState": {"terminated": {"exitCode": 3, "message": "boom"}},
                    }
                ]
            },
            "CrashLoop",
            "exit code 3: boom",
        ),
        (
            {
                "containerStatuses": [
                    {
                        "name": "llama-stack",
                        "state": {"waiting": {"reason": "CrashLoopBackOff"}},
                        "lastState": {"terminated": {"exitCode": 0, "reason": "Completed"}},
                    }
                ]
            },
            "CrashLoop",
            "exit code 0.",
        ),
        (
            {
                "containerStatuses": [
                    {
                        "name": "llama-stack",
                        "state": {"terminated": {"exitCode": 137, "reason": "OOMKilled"}},
                    }
                ]
            },
            "OutOfMemory",
            "memory",
        ),
    ],
    ids=["evicted", "no node", "pull", "crash loop", "ended by itself", "memory"],
)
def test_pod_problem_has_cause_and_resolution(make: Make, status: Object, reason: str, phrase: str) -> None:
    item = pod("a", status)
    item["spec"] = {"containers": [{"name": "llama-stack", "image": "example.com/stack:1"}]}

    problem = pods.problem(make(), [item])

    assert problem is not None
    assert problem.reason == reason
    assert phrase in problem.message
    assert "Resolution: " in problem.message


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        ("pods is forbidden: exceeded quota: q", "quota"),
        ('violates PodSecurity "restricted:latest"', "pod-security.kubernetes.io/enforce"),
        ("maximum memory usage per Container is 1Gi", "LimitRange"),
        ('serviceaccount "x" not found', "podOverrides.serviceAccountName"),
        ("something else", "the cluster's administrator"),
    ],
)
def test_creation_refusal_has_cause_and_resolution(text: str, remedy: str) -> None:
    condition = {"type": "ReplicaFailure", "status": "True", "message": text}

    received = deployments.creation_refused({"status": {"conditions": [condition]}}, 0)

    assert text in received
    assert remedy in received.partition("Resolution: ")[2]
    assert deployments.creation_refused({"status": {}}, 0) == ""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('pods "a" is forbidden: violates PodSecurity "restricted:latest": runAsNonRoot != true', True),
        ('pods "a" is forbidden: violates PodSecurity "baseline:latest": hostPath volumes', False),
        ("pods is forbidden: exceeded quota: restricted:latest", False),
    ],
    ids=["restricted", "baseline", "quota"],
)
def test_level_restricted_is_in_refusal(text: str, expected: bool) -> None:
    condition = {"type": "ReplicaFailure", "status": "True", "message": text}

    assert deployments.is_refused_by_restricted({"status": {"conditions": [condition]}}) is expected


@pytest.mark.accept("HP-5")
@pytest.mark.parametrize(
    ("reason", "text", "remedy"),
    [
        ("CreateContainerError", "no command specified", "set containerSpec.command"),
        (
            "CreateContainerConfigError",
            "container has runAsNonRoot and image will run as root (pod: ...)",
            "numeric USER",
        ),
        (
            "CreateContainerConfigError",
            "container has runAsNonRoot and image has non-numeric user (app), cannot verify user is non-root",
            "numeric USER",
        ),
        ("CreateContainerConfigError", 'secret "acme" not found', "Create the Secret"),
        ("CreateContainerConfigError", "couldn't find key token in Secret team/acme", "Add the key"),
        (
            "RunContainerError",
            'exec: "/app/run": stat /app/run: no such file or directory',
            "correct containerSpec.command",
        ),
        (
            "RunContainerError",
            'exec: "run": executable file not found in $PATH',
            "correct containerSpec.command",
        ),
        ("CreateContainerError", "something that nobody has seen", "what the message names"),
    ],
)
def test_container_config_error_has_resolution(make: Make, reason: str, text: str, remedy: str) -> None:
    waiting = {"name": "llama-stack", "state": {"waiting": {"reason": reason, "message": text}}}

    problem = pods.problem(make(), [pod("a", {"containerStatuses": [waiting]})])

    assert problem is not None
    assert problem.reason == "ContainerConfigInvalid"
    assert text in problem.message
    assert remedy in problem.message.partition("Resolution: ")[2]


SECRET = {"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "acme", "key": "token"}}}
MOUNTED = {"volumes": [{"name": "keys", "secret": {"secretName": "acme"}}]}


@pytest.mark.accept("HP-6")
@pytest.mark.parametrize("reason", ["Error", "OOMKilled"])
@pytest.mark.parametrize(
    ("server", "shown"),
    [
        ({}, True),
        ({"containerSpec": {"env": [{"name": "KEY", "value": "plain"}]}}, True),
        ({"containerSpec": {"env": [SECRET]}}, False),
        ({"podOverrides": MOUNTED}, False),
        ({"externalProviders": {"inference": [{**ECHO, "service": {}}]}}, False),
    ],
    ids=["no secret", "a plain value", "a Secret's value", "a Secret's volume", "a service's token"],
)
def test_server_output_is_hidden_when_it_may_have_secrets(
    make: Make, server: Object, shown: bool, reason: str
) -> None:
    ended = {"terminated": {"exitCode": 1, "reason": reason, "message": "key is s3cr3t"}}

    problem = pods.problem(
        make(**server), [pod("a", {"containerStatuses": [{"name": "llama-stack", "state": ended}]})]
    )

    assert problem is not None
    assert ("s3cr3t" in problem.message) is shown


LOG = "See the container's log: kubectl logs -n team server-0 -c llama-stack --previous"


@pytest.mark.parametrize(
    ("server", "code", "phrases", "absent"),
    [
        ({}, 0, ("'echo'", LOG), "containerSpec"),
        ({}, 139, ("'echo'", LOG), "containerSpec"),
        ({"containerSpec": {"command": ["/run"]}}, 0, ("containerSpec.command", "'echo'", LOG), "\0"),
        ({"externalProviders": {}}, 0, (LOG,), "External providers"),
    ],
    ids=["ends by itself", "crash", "own command", "no providers"],
)
def test_late_death_names_suspects(
    make: Make, server: Object, code: int, phrases: tuple[str, ...], absent: str
) -> None:
    cr = make(**{"externalProviders": {"inference": [ECHO]}, **server})
    crashed = pod("server-0", crash_loop(code, count=1, ready=False), namespace="team")

    problem = pods.problem(cr, [crashed])

    assert problem is not None
    remedy = problem.message.partition("Resolution: ")[2]
    assert all(phrase in remedy for phrase in phrases)
    assert absent not in remedy


STARTED, NOW = "2026-01-02T00:00:00Z", "2026-01-02T01:00:00Z"


def crash_loop(
    code: int,
    *,
    count: int,
    seconds: int = 18,
    message: str = "",
    ready: bool = True,
    started: str = STARTED,
) -> Object:
    end = {
        "exitCode": code,
        "message": message,
        "startedAt": "2026-01-01T00:00:00Z",
        "finishedAt": f"2026-01-01T{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}Z",
    }
    states = {"state": {"running": {"startedAt": started}}, "lastState": {"terminated": end}}
    about = {"name": "llama-stack", "restartCount": count, "ready": ready}
    return {"containerStatuses": [{**about, **states}]}


@pytest.mark.parametrize(
    ("status", "is_reported"),
    [
        (crash_loop(0, count=3), True),
        (crash_loop(139, count=7), True),
        (crash_loop(0, count=2), False),
        (crash_loop(0, count=3, seconds=7200), False),
        (crash_loop(0, count=3, started="2026-01-01T23:59:59Z"), False),
        (crash_loop(1, count=9, message="ERROR: x\nCode: ImportFailed\nResolution: y"), False),
        (
            {"containerStatuses": [{"name": "llama-stack", "restartCount": 9, "state": {"running": {}}}]},
            False,
        ),
        ({}, False),
    ],
    ids=[
        "third end",
        "crashes",
        "second end",
        "long run",
        "runs for long",
        "preflight",
        "unknown times",
        "no status",
    ],
)
def test_server_that_ends_again_and_again_is_reported(make: Make, status: Object, is_reported: bool) -> None:
    """Its container serves at this moment, so nothing else lasts."""
    cr = make(externalProviders={"inference": [ECHO]})

    text = pods.describe_repeated_ends(cr, [pod("server-0", status, namespace="team")], NOW)

    assert bool(text) is is_reported
    assert not is_reported or ("'echo'" in text and LOG in text and "lasted 18 s" in text)


@pytest.mark.parametrize(
    ("provider_id", "image", "text", "expected"),
    [
        ("p", "a:1", "a provider: exec format error", ["Provider: p", "Image: a:1"]),
        ("echo", "example.com/acme-echo", "Failed to pull example.com/acme-echo", ["Provider: echo"]),
        ("p", "a:1", "Provider: p\nImage: a:1\nelse", []),
        ("p", "a" * 300, "ERROR: x\nProvider: p\nImage: aa…aa\nCode: C\n", []),
        ("p", "a:1", "ERROR: x\nImage: a:1\nCode: C\n", ["Provider: p"]),
    ],
    ids=["a letter", "part of the image", "whole lines", "shortened by the tool", "one missing"],
)
def test_failure_message_has_line_of_each_fact(
    provider_id: str, image: str, text: str, expected: list[str]
) -> None:
    lines = containers.complete(text, (("Provider", provider_id), ("Image", image))).splitlines()

    added = lines[: len(lines) - len(text.splitlines())]
    assert set(expected) <= set(added)
    assert len([line for line in lines if line.startswith("Provider: ")]) == 1
    assert len([line for line in lines if line.startswith("Image: ")]) == 1
