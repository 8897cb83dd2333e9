"""The creator recorded by core's webhook, for Kubernetes before 1.36 (docs/policy.md)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from kubefoundry_local.control_plane import ROOT
from kubefoundry_local.suite import Suite
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS, Object
from kubefoundry_sdk._cluster.client import Client
from support.deployments import GPU, model_deployment
from support.registrations import register
from support.suites import running_suite
from support.users import new_user, refusal, until_permitted, until_refused, user_name
from support.waiting import message, reason, until_deployment

pytestmark = [
    pytest.mark.integration,
    pytest.mark.needs_kubernetes("1.30", "ValidatingAdmissionPolicy v1"),
]

CREATOR, GROUPS = "kubefoundry.ai/creator", "kubefoundry.ai/creator-groups"
TEAM = "team"
ALICE, BOB = user_name(TEAM, "alice"), user_name(TEAM, "bob")
ROLES = """
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: use-a}
rules: [{apiGroups: [kubefoundry.ai], resources: [inferenceproviderconfigs], resourceNames: [a], verbs: [use]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: alice-a}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: use-a}
subjects: [{kind: ServiceAccount, name: alice, namespace: team}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: editors}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: edit}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: "system:serviceaccounts:team"}]
"""


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Suite]:
    with running_suite(tmp_path_factory.mktemp("creator")) as made:
        made.install("core", environment={"KUBEFOUNDRY_RECORD_CREATOR": "true"})
        made.install("selector", environment={"KUBEFOUNDRY_CHECK_PROVIDER_USE": "true"})
        made.plane.kubectl("apply", "-k", str(ROOT / "manifests" / "provider-policy"))
        made.start("core", "selector")
        yield made


@pytest.fixture(scope="module")
def users(suite: Suite, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Kubeconfig of each user, once all permissions are in force. Only alice may use provider a."""
    plane, folder = suite.plane, tmp_path_factory.mktemp("users")
    plane.kubectl("create", "namespace", TEAM)
    plane.kubectl("apply", "-n", TEAM, "-f", "-", input=ROLES)
    kubeconfigs = {name: new_user(plane, TEAM, name, folder) for name in ("alice", "bob")}
    for name in (ALICE, BOB):
        until_permitted(plane, name, "update", MODEL_DEPLOYMENTS.crd, TEAM)
    until_permitted(plane, ALICE, "use", "inferenceproviderconfigs.kubefoundry.ai/a", TEAM)
    return kubeconfigs


@pytest.fixture
async def provider(api: Client, users: dict[str, Path]) -> None:
    """Provider a, of which a rule is true, and a policy that is in force."""
    await register(api, "a", ("true", 1))
    await until_refused(users["bob"], MODEL_DEPLOYMENTS, model_deployment("named", TEAM, GPU, provider="a"))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (["create"], ["replace"]),
        (["apply"], ["apply"]),
        (["apply", "--server-side"], ["apply", "--server-side"]),
    ],
    ids=lambda arguments: " ".join(arguments),
)
async def test_creator_stays_when_another_user_writes(
    suite: Suite, api: Client, provider: None, users: dict[str, Path], first: list[str], second: list[str]
) -> None:
    obj = model_deployment("written", TEAM, GPU)
    labelled = model_deployment("written", TEAM, GPU, labels={"team": "b"})

    async def recorded(user: str, arguments: list[str], body: Object) -> tuple[str, str]:
        as_user = ("--kubeconfig", str(users[user]), "-f", "-")
        suite.plane.kubectl(*arguments, *as_user, input=yaml.safe_dump(body))
        annotations = (await api.get(MODEL_DEPLOYMENTS, "written", TEAM))["metadata"]["annotations"]
        return annotations[CREATOR], annotations[GROUPS]

    created = await recorded("alice", first, obj)
    # `kubectl replace` sends the version that it has read, and conflicts with a write of the selector.
    await until_deployment(api, "written", TEAM, lambda obj: reason(obj, "ProviderSelected") is not None)
    edited = await recorded("bob", second, labelled)

    assert created[0] == ALICE
    assert f"system:serviceaccounts:{TEAM}" in created[1].split("\n")
    assert edited == created
    assert (await api.get(MODEL_DEPLOYMENTS, "written", TEAM))["metadata"]["labels"]["team"] == "b"


async def test_forged_creator_is_refused(provider: None, users: dict[str, Path]) -> None:
    forged = model_deployment("forged", TEAM, GPU, annotations={CREATOR: ALICE})

    refused = await refusal(users["bob"], MODEL_DEPLOYMENTS, forged)

    assert f"user '{BOB}' may not set the creator of ModelDeployment 'team/forged'" in refused


async def test_provider_is_selected_for_the_recorded_creator(
    suite: Suite, api: Client, provider: None, users: dict[str, Path]
) -> None:
    for user in ("alice", "bob"):
        as_user = ("--kubeconfig", str(users[user]), "-f", "-")
        suite.plane.kubectl("create", *as_user, input=yaml.safe_dump(model_deployment(user, TEAM, GPU)))

    permitted, denied = [
        await until_deployment(api, user, TEAM, lambda obj: reason(obj, "ProviderSelected") is not None)
        for user in ("alice", "bob")
    ]

    assert permitted["status"]["provider"]["name"] == "a"
    assert reason(denied, "ProviderSelected") == "NoMatchingProvider"
    assert f"a may not be used by user '{BOB}' in namespace 'team'" in message(denied, "ProviderSelected")


async def test_forged_finalizer_does_not_permit_a_provider(
    suite: Suite, api: Client, provider: None, users: dict[str, Path]
) -> None:
    """Under the provider's field manager, the finalizer looks like the provider's own."""
    body = model_deployment("held", TEAM, GPU)
    body["metadata"]["finalizers"] = ["kubefoundry.ai/a-provider"]
    as_bob = ("--kubeconfig", str(users["bob"]), "--field-manager=a-provider", "-f", "-")

    suite.plane.kubectl("create", *as_bob, input=yaml.safe_dump(body))

    denied = await until_deployment(
        api, "held", TEAM, lambda obj: reason(obj, "ProviderSelected") is not None
    )
    assert reason(denied, "ProviderSelected") == "NoMatchingProvider"
    assert "provider" not in denied["status"]
