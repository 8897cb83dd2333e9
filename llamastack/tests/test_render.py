"""Tests single fields of a pod template. Whole children are compared with recorded ones elsewhere."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from typing import Any

import pytest

from kubefoundry_llamastack.render import children, server, tool
from kubefoundry_llamastack.render.deployment import deployment, environment, resources
from kubefoundry_llamastack.render.request import Distribution, PodInputs, Settings

Make = Callable[..., Distribution]

FOUND = PodInputs(image="example.com/stack:1", tool="chat-provider-tool-0")
ECHO = {"providerId": "echo", "image": "example.com/echo:1"}


@pytest.mark.accept("FR-012")
def test_providers_follow_section_and_list_order(make: Make) -> None:
    ids = ("b", "a", "d", "c")
    first, second, third, fourth = ({"providerId": item, "image": "i"} for item in ids)
    cr = make(externalProviders={"postTraining": [fourth], "safety": [second, third], "inference": [first]})

    assert [item.provider_id for _, item in cr.spec.providers()] == ["b", "a", "d", "c"]
    assert [section for section, _ in cr.spec.providers()] == [
        "inference",
        "safety",
        "safety",
        "postTraining",
    ]


@pytest.mark.parametrize(
    ("server_spec", "expected"),
    [
        ({}, {"requests": {"cpu": "1", "memory": "1Gi"}}),
        (
            {"workers": 4},
            {"requests": {"cpu": "4", "memory": "1Gi"}, "limits": {"cpu": "4", "memory": "1Gi"}},
        ),
        (
            {"containerSpec": {"resources": {"limits": {"memory": "4Gi"}, "requests": {"cpu": "250m"}}}},
            {"limits": {"memory": "4Gi"}, "requests": {"cpu": "250m", "memory": "1Gi"}},
        ),
        (
            {"containerSpec": {"resources": {"limits": {"memory": "512Mi", "cpu": "500m"}}}},
            {"limits": {"memory": "512Mi", "cpu": "500m"}, "requests": {"cpu": "500m", "memory": "512Mi"}},
        ),
    ],
    ids=["nothing", "workers", "some", "limits below the defaults"],
)
def test_resources_have_defaults_within_limits(
    make: Make, server_spec: dict[str, Any], expected: dict[str, Any]
) -> None:
    assert resources(make(**server_spec)) == expected


def test_user_variable_replaces_operator_variable(make: Make) -> None:
    own = [{"name": "HF_HOME", "value": "/a"}, {"name": "X", "value": "1"}, {"name": "X", "value": "2"}]

    variables = environment(make(containerSpec={"env": own}), FOUND)

    assert [item["name"] for item in variables] == [
        "HF_HOME",
        "LLS_WORKERS",
        "LLS_PORT",
        "LLAMA_STACK_CONFIG",
        "X",
    ]
    assert (variables[0]["value"], variables[-1]["value"]) == ("/a", "2")


@pytest.mark.accept("FR-016")
@pytest.mark.parametrize(("before", "after"), [(None, ""), ("", ""), ("/mine", ":/mine")])
def test_start_script_keeps_python_path(before: str | None, after: str) -> None:
    own = server.WITH_PROVIDERS.partition("shift\n")[2]
    script = own + 'printf %s "$PYTHONPATH"\n'
    variables = {"PATH": "/usr/bin:/bin", **({} if before is None else {"PYTHONPATH": before})}

    done = subprocess.run(["sh", "-c", script], env=variables, capture_output=True, text=True, check=True)

    assert done.stdout == tool.PACKAGES + after


@pytest.mark.parametrize(
    ("server_spec", "last"),
    [
        ({}, server.OWN_COMMAND),
        ({"workers": 1}, server.OWN_COMMAND),
        ({"workers": 2}, server.UVICORN_COMMAND),
        ({"containerSpec": {"command": ["/run"], "args": ["-x"]}}, server.CR_COMMAND),
        ({"containerSpec": {"args": ["-x"]}}, server.OWN_COMMAND),
    ],
    ids=["default", "one worker", "two workers", "command", "arguments alone"],
)
def test_start_script_ends_with_command_of_cr(make: Make, server_spec: dict[str, Any], last: str) -> None:
    cr = make(externalProviders={"inference": [ECHO]}, **server_spec)

    started = server.start(cr, "example.com/stack:1")

    own = cr.spec.server.container_spec
    assert started["command"][:2] == ["/bin/sh", "-c"]
    assert started["command"][2] == server.WITH_PROVIDERS + last
    assert started["args"][1:] == [*(own.command or ()), *(own.args or ())]


@pytest.mark.parametrize("number", [1, 10])
def test_startup_probe_covers_preflight_and_five_minutes(make: Make, number: int) -> None:
    providers = [{"providerId": f"p{index}", "image": "i"} for index in range(number)]

    probe = server.probes(make(externalProviders={"inference": providers}))["startupProbe"]

    assert probe["failureThreshold"] * probe["periodSeconds"] >= 300 + server.PREFLIGHT_SECONDS


def test_user_text_is_never_in_script_or_value(make: Make) -> None:
    hard = "'; $(HOME) $$ ${env.X}\n\""
    config = {"inference": [{**ECHO, "config": {"key": hard}}]}
    cr = make(externalProviders=config, modelDeployments=[{"name": "md", "config": {"key": hard}}])

    template = deployment(cr, FOUND, Settings())["spec"]["template"]

    assert "$(HOME)" not in str(template)
    assert "${env.X}" not in str(template)


def test_operator_settings_reach_volume_and_containers(make: Make) -> None:
    settings = Settings("5Gi", {"limits": {"memory": "1Gi"}})
    cr = make(externalProviders={"inference": [ECHO]})

    pod = deployment(cr, FOUND, settings)["spec"]["template"]["spec"]

    assert [item["resources"] for item in pod["initContainers"]] == [{"limits": {"memory": "1Gi"}}] * 3
    [volume] = [item for item in pod["volumes"] if item["name"] == "external-providers"]
    assert volume["emptyDir"]["sizeLimit"] == "5Gi"


def test_ingress_is_rendered_only_with_service(make: Make) -> None:
    exposed = {"network": {"exposeRoute": True}}

    assert children.service(make(exposed)) is None
    assert children.ingress(make(exposed)) is None
    assert children.ingress(make(exposed, containerSpec={"port": 8321})) is not None
    assert children.service(make(externalProviders={"inference": [ECHO]})) is not None


OWN_ACCOUNT = {"podOverrides": {"serviceAccountName": "mine"}}
PROVIDER = {"externalProviders": {"inference": [ECHO]}}


@pytest.mark.parametrize(
    ("server_spec", "has_token", "shows_log"),
    [
        (PROVIDER, False, True),
        ({"modelDeployments": [{"name": "llama"}]}, False, True),
        ({**PROVIDER, **OWN_ACCOUNT}, True, False),
        ({}, True, False),
        (OWN_ACCOUNT, True, False),
    ],
    ids=["provider", "model", "provider with own account", "bare", "bare with own account"],
)
def test_pods_with_providers_have_token_only_on_request(
    make: Make, server_spec: dict[str, Any], has_token: bool, shows_log: bool
) -> None:
    pod = deployment(make(**server_spec), FOUND, Settings())["spec"]["template"]["spec"]

    assert pod.get("automountServiceAccountToken", True) is has_token
    assert ("terminationMessagePolicy" in pod["containers"][0]) is shows_log
