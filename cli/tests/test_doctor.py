"""What the doctor says of what it is shown."""

from __future__ import annotations

import base64
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pytest

from kubefoundry_cli import advice, cluster
from kubefoundry_cli.checks import one_model, webhooks
from kubefoundry_cli.checks.examination import examine, examine_model, providers
from kubefoundry_cli.checks.finding import Finding, Unlisted
from kubefoundry_cli.checks.models import changed_by_others, refused_writes
from kubefoundry_cli.commands.doctor import exit_code
from kubefoundry_cli.failure import Exit
from kubefoundry_sdk._api.reasons import REASONS, REGISTRATION_APPLIED, STALE_STATUS
from support.deployments import GPU, model_deployment
from support.fake_server import Answers, serving
from support.proxy import certificate

HOUR = 3600.0
FINE = {
    ("Validated", "ValidationPassed"),
    ("ProviderSelected", "AutoSelected"),
    ("ProviderSelected", "ExplicitlySelected"),
    ("ProviderCompatible", "CompatibilityVerified"),
    ("ResourceCreated", "ResourceCreated"),
    ("Ready", "DeploymentReady"),
    ("ProviderHealthy", "HeartbeatSeen"),
}
"""Reasons with which nothing is wrong."""


def configuration(bundle: str | None) -> dict[str, Any]:
    client = {"caBundle": bundle} if bundle is not None else {}
    return {
        "kind": "ValidatingWebhookConfiguration",
        "webhooks": [{"name": "v.kubefoundry.ai", "clientConfig": client}],
    }


@pytest.fixture(scope="module")
def authorities(tmp_path_factory: pytest.TempPathFactory) -> str:
    """An authority that is valid for an hour."""
    authority, _ = certificate(tmp_path_factory.mktemp("authority"))
    return base64.b64encode(authority.read_bytes()).decode()


@pytest.mark.parametrize(
    ("later", "state", "said"),
    [
        pytest.param(-400 * 24 * HOUR, "good", "valid for 400 days", id="long"),
        pytest.param(-2 * 24 * HOUR, "wrong", "expires in 2 days and was not replaced", id="soon"),
        pytest.param(2 * HOUR, "wrong", "has expired", id="over"),
    ],
)
def test_authority_of_the_webhooks_has_to_last(authorities: str, later: float, state: str, said: str) -> None:
    [found] = webhooks.judged(configuration(authorities), time.time() + later)

    assert (found.state, said in found.text) == (state, True), found


@pytest.mark.parametrize("broken", [None, "", "Zm9v", "%%%", "aMOk", 7])
def test_invalid_ca_bundle_is_wrong(broken: Any) -> None:
    [found] = webhooks.judged(configuration(broken), 0.0)

    assert (found.state, "no usable certificate authority" in found.text) == ("wrong", True)


def test_newest_event_about_each_changed_object_is_shown() -> None:
    def event(name: str, note: str, age: float) -> dict[str, Any]:
        moment = (datetime.now(UTC) - timedelta(seconds=age)).isoformat()
        return {"involvedObject": {"namespace": "a", "name": name}, "message": note, "eventTime": moment}

    found = list(
        changed_by_others(
            [event("m", "left alone", 1), event("m", "put back", 60), event("old", "put back", 9 * HOUR)]
        )
    )

    assert [one.text.split(";")[0] for one in found] == ["model a/m: left alone"]


def refusal(component: str, uid: str, age: float) -> dict[str, Any]:
    stamp = (datetime.now(UTC) - timedelta(seconds=age)).isoformat()
    about = {"namespace": "a", "name": "m", "uid": uid}
    return {
        "involvedObject": about,
        "message": f"A write of {component} was changed",
        "reportingComponent": component,
        "eventTime": stamp,
    }


@pytest.mark.parametrize(
    ("refused", "shown"),
    [
        pytest.param([("core", "1", 120)], ["core was changed (seen 2m ago)"], id="current"),
        pytest.param([("core", "1", 700)], [], id="over"),
        pytest.param([("core", "0", 120)], [], id="of an earlier model"),
        pytest.param(
            [("core", "1", 300), ("core", "1", 120), ("selector", "1", 180)],
            ["core was changed (seen 2m ago)", "selector was changed (seen 3m ago)"],
            id="newest of each component",
        ),
    ],
)
def test_refused_write_of_a_serving_model_is_wrong(
    refused: list[tuple[str, str, float]], shown: list[str]
) -> None:
    # The messages have ages, so the Events are made when the test runs.
    events = [refusal(*one) for one in refused]
    model = {"metadata": {"namespace": "a", "name": "m", "uid": "1"}}

    findings = list(refused_writes(events, [model]))

    assert findings == [
        Finding("wrong", f"model a/m: A write of {text}; that takes an administrator") for text in shown
    ]


TROUBLE = [
    (kind, reason)
    for kind, reasons in REASONS.items()
    for reason in sorted(reasons)
    if (kind, reason) not in FINE
]


def judged(**status: Any) -> list[Finding]:
    meta = {"name": "m", "namespace": "models", "generation": 2, **status.pop("metadata", {})}
    return list(one_model.judged({"metadata": meta, "status": status}))


OLD = {"metadata": {"creationTimestamp": "2020-01-01T00:00:00Z"}}


@pytest.mark.parametrize(("kind", "reason"), TROUBLE)
def test_each_trouble_has_advice(kind: str, reason: str) -> None:
    status = "True" if kind == STALE_STATUS else "False"
    condition = {"type": kind, "reason": reason, "status": status, "message": "why", "observedGeneration": 2}

    text = " ".join(found.text for found in judged(conditions=[condition]))

    said = advice.advice(condition, {"metadata": {"name": "m", "namespace": "models"}})
    assert "why" in text and said in text
    assert said != advice.UNREPORTED
    assert not {"NAME", "{", "}"} & set(said.replace("{", " { ").split())


@pytest.mark.parametrize(
    ("status", "said"),
    [
        pytest.param(
            OLD,
            "core has not reconciled it; ask an administrator: kubefoundry controller status",
            id="nothing yet",
        ),
        pytest.param(
            {**OLD, "conditions": "x"}, "core has not reconciled it", id="conditions of another type"
        ),
        pytest.param(
            {**OLD, "conditions": [7, None]}, "core has not reconciled it", id="no conditions at all"
        ),
        pytest.param(
            {"metadata": {"annotations": {"kubefoundry.ai/reconcile-paused": "true"}}},
            "m is paused: no change is applied or reported; kubefoundry resume m",
            id="paused",
        ),
        pytest.param(
            {"metadata": {"deletionTimestamp": "now", "finalizers": ["kubefoundry.ai/kaito-provider"]}},
            "held by kubefoundry.ai/kaito-provider",
            id="being deleted",
        ),
    ],
)
def test_doctor_reports_the_obstacle_of_a_model(status: dict[str, Any], said: str) -> None:
    assert any(said in found.text and found.state == "wrong" for found in judged(**status))


def test_doctor_approves_a_model_that_serves_its_spec() -> None:
    ready = {"type": "Ready", "reason": "DeploymentReady", "status": "True", "observedGeneration": 2}

    [found] = judged(conditions=[ready], endpoint={"service": "m", "port": 80})

    assert (found.state, found.text) == ("good", "m serves generation 2 at m:80")


def test_pods_that_are_not_ready_say_why() -> None:
    waiting = {"state": {"waiting": {"reason": "ImagePullBackOff", "message": "no such tag"}}}
    unplaced = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no GPU"}
    pods = [
        {"metadata": {"name": name, "namespace": "models"}, "status": status}
        for name, status in (
            ("a", {"containerStatuses": [waiting]}),
            ("b", {"conditions": [unplaced]}),
            ("c", {"containerStatuses": [{"ready": True, "state": {"running": {}}}]}),
            ("d", None),
        )
    ]

    found = [one.text for one in one_model.of_pods(pods)]

    assert found == [
        "pod a: ImagePullBackOff: no such tag; kubectl -n models describe pod a",
        "pod b: Unschedulable: no GPU; kubectl -n models describe pod b",
    ]


async def examined(folder: Path, answers: Answers, model: str | None = None) -> list[Finding]:
    with serving(answers, folder) as kubeconfig:
        async with cluster.session(cluster.Target(str(kubeconfig), None, None)) as session:
            return await (
                examine_model(session, await session.model(model)) if model else examine(session, "models")
            )


def now_text() -> str:
    return datetime.now(UTC).isoformat()


ENV: Final = [
    {"name": "A", "valueFrom": {"secretKeyRef": {"name": "there", "key": "a"}}},
    {"name": "B", "valueFrom": {"secretKeyRef": {"name": "gone", "key": "b"}}},
    {"name": "C", "valueFrom": {"secretKeyRef": {"name": "gone-too", "key": "c", "optional": True}}},
    {"name": "D", "valueFrom": {"configMapKeyRef": {"name": "gone", "key": "d"}}},
    {"name": "E", "value": "gone"},
]


@pytest.mark.parametrize("name", [None, "m"])
async def test_doctor_names_missing_objects_of_variables(tmp_path: Path, name: str | None) -> None:
    answers = Answers()
    model = {**model_deployment("m", "models", {**GPU, "env": ENV})}
    answers.objects = {
        "modeldeployments": [model],
        "secrets": [{"metadata": {"name": "there"}}],
        **{
            plural: []
            for plural in ("configmaps", "deployments", "leases", "events", "inferenceproviderconfigs")
        },
    }

    found = await examined(tmp_path, answers, name)

    assert [one.text for one in found if "does not exist" in one.text] == [
        "ConfigMap models/gone does not exist, and m needs it; kubectl -n models create configmap gone "
        "--from-literal=d=…",
        "Secret models/gone does not exist, and m needs it; kubectl -n models create secret generic gone "
        "--from-literal=b=…",
    ]


class WithoutSecrets(Answers):
    """Of a user who may not read Secrets."""

    def to(self, path: str) -> tuple[int, Any]:
        if "/secrets/" in path:
            return 403, {
                "kind": "Status",
                "code": 403,
                "reason": "Forbidden",
                "message": "no Secrets for you",
            }
        return super().to(path)


async def test_doctor_names_secrets_that_cannot_be_seen(tmp_path: Path) -> None:
    answers = WithoutSecrets()
    answers.objects = {
        "modeldeployments": [model_deployment("m", "models", {**GPU, "env": ENV[:3]})],
        **{plural: [] for plural in ("events", "inferenceproviderconfigs")},
    }

    found = await examined(tmp_path, answers, "m")

    assert (
        Finding(
            "unknown",
            "cannot see whether Secret models/gone, models/there exists: no Secrets for you",
        )
        in found
    )


class Forbidden(Answers):
    """Of a user who may read the version alone."""

    def to(self, path: str) -> tuple[int, Any]:
        if path == "/version":
            return super().to(path)
        return 403, {"kind": "Status", "code": 403, "reason": "Forbidden", "message": f"cannot read {path}"}


async def test_doctor_says_nothing_good_without_any_right(tmp_path: Path) -> None:
    found = await examined(tmp_path, Forbidden())

    assert {one.state for one in found[1:]} == {"unknown"}
    assert exit_code(found, of_model=False) == Exit.FORBIDDEN


class WithoutModels(Answers):
    """Of a user who may read the registered providers, as everybody may, and no model."""

    def to(self, path: str) -> tuple[int, Any]:
        return super().to(path) if "modeldeployments" not in path else Forbidden().to(path)


async def test_doctor_without_right_to_models_is_forbidden(tmp_path: Path) -> None:
    answers = WithoutModels()
    config = {"metadata": {"name": "direct"}, "status": {"ready": True, "lastHeartbeat": now_text()}}
    answers.objects = {"inferenceproviderconfigs": [config], "events": [], "leases": []}

    found = await examined(tmp_path, answers)
    found = [one for one in found if one.state != "wrong"]

    assert "good" in {one.state for one in found[1:]}
    assert exit_code(found, of_model=False) == Exit.FORBIDDEN


def test_doctor_exit_code_depends_on_no_text() -> None:
    seen = [Finding("good", "Kubernetes"), Finding("good", "a provider")]

    unlisted = [*seen, Unlisted("unknown", "no models for you")]

    assert exit_code(unlisted, of_model=False) == Exit.FORBIDDEN
    assert exit_code([*seen, Finding("unknown", "cannot list ModelDeployments")], of_model=False) == Exit.YES


@pytest.mark.parametrize(
    ("states", "of_model", "code"),
    [
        (["good", "unknown"], True, Exit.YES),
        (["pending", "unknown"], True, Exit.YES),
        (["good", "unknown"], False, Exit.FORBIDDEN),
        (["good", "unknown", "good"], False, Exit.YES),
        (["good", "unknown", "wrong"], True, Exit.NO),
        (["unknown"], True, Exit.FORBIDDEN),
        (["good"], False, Exit.YES),
    ],
)
def test_doctor_exit_code_of_findings(states: list[Any], of_model: bool, code: Exit) -> None:
    assert exit_code([Finding(state, "") for state in states], of_model=of_model) == code


def test_changed_registration_is_wrong() -> None:
    text = "InferenceProviderConfig 'kaito' was accepted, but spec.capabilities was not stored as sent"
    status = {
        "ready": True,
        "lastHeartbeat": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "conditions": [
            {
                "type": REGISTRATION_APPLIED,
                "status": "False",
                "reason": "ChangedByAdmission",
                "message": text,
            }
        ],
    }

    findings = list(providers([{"metadata": {"name": "kaito"}, "status": status}]))

    assert findings == [Finding("wrong", f"provider kaito: {text}")]
