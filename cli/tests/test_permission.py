"""Remedies for missing permissions."""

from __future__ import annotations

import click
import pytest

from kubefoundry_cli.failure import Exit, of
from kubefoundry_cli.main import GROUPS, kubefoundry
from kubefoundry_cli.permission import ADMINISTRATOR, ask_for_edit, remedy
from kubefoundry_sdk._api.names import SYSTEM_NAMESPACE
from kubefoundry_sdk._cluster.errors import ApiError

MODELS = ("modeldeployments", "kubefoundry.ai")


def refusal(
    verb: str, resource: str, group: str, namespace: str | None = "team a", user: str = "vera"
) -> str:
    where = f'in the namespace "{namespace}"' if namespace else "at the cluster scope"
    what = f'User "{user}" cannot {verb} resource "{resource}" in API group "{group}" {where}'
    return f'{resource}.{group} "m" is forbidden: {what}'


@pytest.mark.parametrize(
    ("message", "said"),
    [
        (
            refusal("list", *MODELS, "t"),
            "kubectl -n t create rolebinding vera-view --clusterrole=view --user=vera",
        ),
        (
            refusal("patch", *MODELS, "t"),
            "kubectl -n t create rolebinding vera-edit --clusterrole=edit --user=vera",
        ),
        (refusal("get", "services/proxy", "", "t"), "--clusterrole=edit --user=vera"),
        (refusal("get", "secrets", "", "t"), "--clusterrole=edit --user=vera"),
        (refusal("get", "pods/log", "", "t"), "--clusterrole=view --user=vera"),
        (refusal("patch", "rayservices", "ray.io", "t"), "--clusterrole=edit --user=vera"),
        (
            refusal("get", *MODELS, "t", "system:serviceaccount:t:bot"),
            "create rolebinding system-serviceaccount-t-bot-view --clusterrole=view --serviceaccount=t:bot",
        ),
        (refusal("get", *MODELS, "t", "a b"), "create rolebinding a-b-view --clusterrole=view --user='a b'"),
        (
            refusal("list", *MODELS, None),
            "name one namespace with -n, or ask an administrator: kubectl create cluster",
        ),
        (
            refusal("list", "inferenceproviderconfigs", "kubefoundry.ai", None),
            "--clusterrole=kubefoundry-providers-view",
        ),
    ],
)
def test_missing_permission_names_the_command_that_grants_it(message: str, said: str) -> None:
    with click.Context(click.Command("status")) as context:
        context.params["everywhere"] = True
        failure = of(ApiError(403, "Forbidden", message), "do it")

    assert said in failure.message
    assert failure.exit_code == Exit.FORBIDDEN


@pytest.mark.parametrize(
    ("message", "said"),
    [
        (
            refusal("list", *MODELS, "t"),
            "kubectl -n t create rolebinding vera-view --clusterrole=view --user=vera",
        ),
        (
            refusal("list", *MODELS, None),
            "kubectl create clusterrolebinding vera-kubefoundry-view --clusterrole=kubefoundry-view --user=vera",
        ),
    ],
)
@pytest.mark.parametrize("option", ["kubeconfig", "context"])
def test_remedy_names_no_kubeconfig_of_the_caller(message: str, said: str, option: str) -> None:
    """The caller's kubeconfig and context select the very user who lacks the permission."""
    with click.Context(click.Command("status")) as context:
        context.params[option] = "mine"

        assert remedy(message) == f"ask an administrator: {said}"


def test_request_for_edit_names_no_kubeconfig_of_the_caller() -> None:
    with click.Context(click.Command("adopt")) as context:
        context.params["kubeconfig"] = "mine"

        assert ask_for_edit("vera", "t") == (
            "ask an administrator: kubectl -n t create rolebinding vera-edit --clusterrole=edit --user=vera"
        )


@pytest.mark.parametrize(
    "message",
    [
        "admission webhook denied the request",
        refusal("get", "widgets", "example.com", "t"),
        refusal("patch", "customresourcedefinitions", "apiextensions.k8s.io", None),
        refusal("list", "modeldeployments", "kubefoundry.ai", "t", "system:anonymous"),
    ],
)
def test_refusal_that_no_role_of_ours_lifts_gets_no_command(message: str) -> None:
    assert remedy(message) == ""


@pytest.mark.parametrize(
    "message",
    [
        refusal("list", "leases", "coordination.k8s.io", SYSTEM_NAMESPACE),
        refusal("list", "deployments", "apps", SYSTEM_NAMESPACE),
        refusal("get", "mutatingwebhookconfigurations", "admissionregistration.k8s.io", None),
    ],
)
def test_read_without_a_role_needs_an_administrator(message: str) -> None:
    """A role of the namespace may grant it, as `view` the Deployments of kubefoundry-system."""
    assert "no role" not in remedy(message)
    assert remedy(message) == ADMINISTRATOR


def test_list_of_all_models_needs_a_cluster_role() -> None:
    """On the page, which has no option -n."""
    said = remedy(refusal("list", *MODELS, None))

    assert said == (
        "ask an administrator: "
        "kubectl create clusterrolebinding vera-kubefoundry-view --clusterrole=kubefoundry-view --user=vera"
    )


@pytest.mark.parametrize(
    ("command", "params", "role"),
    [
        ("status", {}, "view"),
        ("plan", {"server": False}, "view"),
        ("plan", {"server": True}, "edit"),
        *((command, {}, "edit") for command in ("scale", "pause", "eject", "import", "deploy", "chat")),
    ],
)
def test_remedy_of_a_read_grants_what_the_command_needs(
    command: str, params: dict[str, bool], role: str
) -> None:
    with click.Context(click.Command(command), info_name=command) as context:
        context.params.update(params)

        assert f"--clusterrole={role} " in remedy(refusal("get", *MODELS, "t"))


@pytest.mark.parametrize("group", GROUPS)
def test_commands_that_write_the_cluster_need_an_administrator(group: str) -> None:
    parent = kubefoundry.get_command(click.Context(kubefoundry), group)
    assert isinstance(parent, click.Group)
    writing = [
        name
        for name, command in parent.commands.items()
        if any("--yes" in option.opts or option.name == "dry_run" for option in command.params)
    ]

    for name in writing:
        with (
            click.Context(parent, info_name=group) as above,
            click.Context(parent.commands[name], above, name),
        ):
            said = remedy(refusal("patch", "customresourcedefinitions", "apiextensions.k8s.io", None))
        assert said == "ask an administrator of the cluster to run this command", name
    assert len(writing) >= 3
