"""Settings in `podTemplate` beside those of the provider and its overrides."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import Any

import pytest

from kubefoundry_direct.provider import build, provider
from kubefoundry_direct.settings import Settings, add_arguments
from kubefoundry_sdk._provider.reconcile.compatibility import check
from kubefoundry_sdk._provider.upstream_kind import Schema
from kubefoundry_sdk.testing.generated import deployment

DIRECT = provider(Settings())
SCHEMA = Schema("apps/v1")
CLAIM = {"name": "weights", "persistentVolumeClaim": {"claimName": "weights"}}


def spec(template: dict[str, Any], **overrides: Any) -> Any:
    return deployment(
        {
            "model": {"id": "org/model"},
            "engine": {"type": "llamacpp"},
            "podTemplate": template,
            "provider": {"name": "direct", "overrides": overrides},
        }
    )


@pytest.mark.parametrize(
    ("template", "overrides", "problem"),
    [
        pytest.param(
            {"spec": {"imagePullSecrets": [{"name": "a"}]}},
            {"imagePullSecrets": ["b"]},
            "provider.overrides.imagePullSecrets and podTemplate.spec.imagePullSecrets set the same: "
            "remove the override",
            id="pull secrets",
        ),
        pytest.param(
            {"spec": {"runtimeClassName": "a"}},
            {"runtimeClassName": "b"},
            "provider.overrides.runtimeClassName and podTemplate.spec.runtimeClassName set the same: "
            "remove the override",
            id="runtime class",
        ),
        pytest.param(
            {"spec": {"securityContext": {"runAsUser": 1}}},
            {"runAsUser": 1000},
            "provider.overrides.runAsUser and podTemplate.spec.securityContext.runAsUser set the same: "
            "remove the override",
            id="user",
        ),
        pytest.param(
            {"spec": {"volumes": [{"name": "cache", "emptyDir": {}}]}},
            {},
            "Provider direct has its own volume cache: choose another name in podTemplate.spec.volumes",
            id="volume of the cache",
        ),
        pytest.param(
            {"spec": {"terminationGracePeriodSeconds": 30}},
            {},
            "podTemplate.spec.terminationGracePeriodSeconds 30 ends a pod while it drains for 30 s: "
            "raise it, or lower provider.overrides.drainSeconds",
            id="grace period",
        ),
    ],
)
def test_contradiction_is_refused(template: dict[str, Any], overrides: dict[str, Any], problem: str) -> None:
    assert check(DIRECT, spec(template, **overrides), SCHEMA).problems == (problem,)


@pytest.mark.parametrize(
    ("by_flag", "overrides", "user"),
    [
        ("1000", {}, 1000),
        ("2000", {}, 2000),
        ("cluster", {}, None),
        ("cluster", {"runAsUser": 3000}, 3000),
        ("1000", {"runAsUser": "cluster"}, None),
    ],
)
def test_user_and_groups_are_left_to_cluster_on_request(
    by_flag: str, overrides: dict[str, Any], user: int | None
) -> None:
    arguments = ArgumentParser()
    add_arguments(arguments)
    flags = arguments.parse_args([f"--run-as-user={by_flag}"], Namespace(default_images=()))

    rendered = build(flags).render(spec({}, **overrides), SCHEMA)

    context = rendered.main["spec"]["template"]["spec"]["securityContext"]
    assert {context.get(name) for name in ("runAsUser", "runAsGroup", "fsGroup")} == {user}
    assert context["runAsNonRoot"] is True


@pytest.mark.parametrize("text", ["nobody", "-1", "1.5", "", "2147483648", "\u0661"])
def test_unusable_user_is_refused_by_flag(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ArgumentParser()
    add_arguments(arguments)

    with pytest.raises(SystemExit):
        arguments.parse_args([f"--run-as-user={text}"])

    assert f"{text!r} is neither cluster nor an id from 0 to 2147483647" in capsys.readouterr().err


def test_claim_of_override_and_storage_is_refused() -> None:
    stored = {"volumes": [{"name": "weights", "claimName": "c", "purpose": "modelCache"}]}
    stated = {
        "model": {"id": "org/model", "storage": stored},
        "engine": {"type": "llamacpp"},
        "provider": {"name": "direct", "overrides": {"cacheClaim": "c"}},
    }

    problems = check(DIRECT, deployment(stated), SCHEMA).problems

    assert problems == (
        "provider.overrides.cacheClaim and model.storage.volumes have the same claim c, so pods may never start: "
        "remove the override",
    )


def test_stated_user_is_default_group_and_keeps_other_hardening() -> None:
    rendered = DIRECT.render(
        spec(
            {
                "spec": {"securityContext": {"runAsUser": 2000, "fsGroup": 7}},
                "container": {"securityContext": {"readOnlyRootFilesystem": True}},
            }
        ),
        SCHEMA,
    )

    pod = rendered.main["spec"]["template"]["spec"]
    assert pod["securityContext"] == {
        "runAsNonRoot": True,
        "runAsUser": 2000,
        "runAsGroup": 2000,
        "fsGroup": 7,
        "fsGroupChangePolicy": "OnRootMismatch",
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    assert pod["containers"][0]["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": True,
    }
    assert pod["automountServiceAccountToken"] is False


def test_claim_makes_an_update_replace_pods() -> None:
    rendered = DIRECT.render(spec({"spec": {"volumes": [CLAIM]}}), SCHEMA)

    assert rendered.main["spec"]["strategy"]["rollingUpdate"] == {"maxSurge": 0, "maxUnavailable": 1}


def test_settings_are_read_back() -> None:
    model = spec(
        {
            "spec": {"volumes": [CLAIM], "serviceAccountName": "engine", "securityContext": {"fsGroup": 7}},
            "container": {"volumeMounts": [{"name": "weights", "mountPath": "/weights"}]},
        }
    )
    rendered = DIRECT.render(model, SCHEMA)
    assert DIRECT.read_back is not None

    [read_spec, *_] = DIRECT.read_back(rendered.main, rendered.helpers)

    template = read_spec["podTemplate"]
    assert template["spec"]["volumes"] == [CLAIM]
    assert template["spec"]["serviceAccountName"] == "engine"
    assert template["spec"]["securityContext"] == {"fsGroup": 7}
    assert template["container"]["volumeMounts"] == [{"name": "weights", "mountPath": "/weights"}]
