"""Who may use which provider in which namespace: named, and selected for the recorded creator (docs/policy.md)."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pytest

from kubefoundry_local.control_plane import ROOT
from kubefoundry_local.suite import PROBE, Suite
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS, Object
from kubefoundry_sdk._cluster import credentials
from kubefoundry_sdk._cluster.client import Client
from support.audit import AuditLog
from support.command_line import CommandLine
from support.deployments import GPU, model_deployment
from support.registrations import register
from support.users import changed_refusal, new_user, refusal, until_permitted, until_refused, user_name
from support.waiting import SECONDS, message, reason, until_deployment

pytestmark = [
    pytest.mark.integration,
    pytest.mark.needs_kubernetes("1.36", "MutatingAdmissionPolicy"),
]

CREATOR = "kubefoundry.ai/creator"
GROUPS = "kubefoundry.ai/creator-groups"
USERS = {"alice": "staff", "bob": "staff", "carol": "guests", "dave": "staff", "erin": "staff"}
"""Namespace of each user's account (users.yaml)."""

MISSING = "the permission 'use' on inferenceproviderconfigs.kubefoundry.ai '{}' is missing"
LISTED = "annotation kubefoundry.ai/allowed-providers is 'b, c'"


class Cell(NamedTuple):
    """A user in a namespace: the refusal of each provider, empty if it is permitted, and the selected provider."""

    user: str
    namespace: str
    verdicts: dict[str, str]
    selected: str | None


MATRIX = [
    Cell("alice", "open", {"a": "", "b": MISSING}, "a"),
    Cell("alice", "listed", {"a": MISSING, "b": MISSING}, None),
    Cell("bob", "open", {"a": "", "b": ""}, "a"),
    Cell("bob", "listed", {"a": LISTED, "b": ""}, "b"),
    Cell("carol", "open", {"a": MISSING, "b": MISSING}, None),
    Cell("carol", "listed", {"a": MISSING, "b": ""}, "b"),
    Cell("dave", "open", {"a": MISSING, "b": MISSING}, None),
    Cell("dave", "listed", {"a": MISSING, "b": MISSING}, None),
]
cells = pytest.mark.parametrize("cell", MATRIX, ids=lambda cell: f"{cell.user}-{cell.namespace}")


@pytest.fixture(scope="module")
def users(suite: Suite, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Kubeconfig of each user, once all permissions are in force."""
    plane, folder = suite.plane, tmp_path_factory.mktemp("users")
    plane.kubectl("apply", "-k", str(ROOT / "manifests" / "creator-policy"))
    plane.kubectl("apply", "-f", str(Path(__file__).with_name("users.yaml")))
    kubeconfigs = {name: new_user(plane, namespace, name, folder) for name, namespace in USERS.items()}
    for cell in MATRIX:
        name = user_name(USERS[cell.user], cell.user)
        until_permitted(plane, name, "create", MODEL_DEPLOYMENTS.crd, cell.namespace)
        for provider, verdict in cell.verdicts.items():
            resource = f"inferenceproviderconfigs.kubefoundry.ai/{provider}"
            until_permitted(plane, name, "use", resource, cell.namespace, permitted=verdict != MISSING)
    until_permitted(
        plane, user_name("staff", "erin"), "use", "inferenceproviderconfigs.kubefoundry.ai", "open"
    )
    return kubeconfigs


@pytest.fixture
async def providers(suite: Suite, api: Client, users: dict[str, Path]) -> None:
    """Providers a and b, of which rules prefer a, and policies that are in force."""
    for name, priority in (("a", 9), ("b", 1)):
        await register(api, name, ("true", priority))
    await until_refused(users["dave"], MODEL_DEPLOYMENTS, named("a", "open"))
    probe = model_deployment("probe", "open", GPU)
    async with asyncio.timeout(SECONDS):
        while True:
            stored = await api.create(MODEL_DEPLOYMENTS, probe, manager="test", dry_run=True)
            if CREATOR in stored["metadata"].get("annotations", {}):
                break
            # A policy is in force a moment after it is stored, and nothing of its status reports when.
            await asyncio.sleep(PROBE)


def edit_in(suite: Suite, namespace: str, user: str) -> None:
    """Create a namespace that the user may edit."""
    suite.plane.kubectl("create", "namespace", namespace)
    account = f"--serviceaccount={USERS[user]}:{user}"
    suite.plane.kubectl("create", "rolebinding", "edit", "--clusterrole=edit", account, "-n", namespace)
    name = user_name(USERS[user], user)
    until_permitted(suite.plane, name, "create", MODEL_DEPLOYMENTS.crd, namespace)


def named(provider: str, namespace: str) -> Object:
    return model_deployment("named", namespace, GPU, provider=provider)


async def created(kubeconfig: Path, body: Object) -> Object:
    """Create the model as that user."""
    async with Client(credentials.from_kubeconfig(str(kubeconfig)), user_agent="user") as client:
        return await client.create(MODEL_DEPLOYMENTS, body, manager="user")


@cells
async def test_named_provider_is_allowed_or_refused(
    providers: None, users: dict[str, Path], cell: Cell
) -> None:
    for provider, verdict in cell.verdicts.items():
        words = await refusal(users[cell.user], MODEL_DEPLOYMENTS, named(provider, cell.namespace))

        if not verdict:
            assert words == ""
            continue
        who = f"user '{user_name(USERS[cell.user], cell.user)}' may not use provider '{provider}'"
        assert f"{who} in namespace '{cell.namespace}': " in words
        assert verdict.format(provider) in words
        assert "Ask an administrator" in words


@cells
async def test_provider_is_selected_for_the_creator(
    api: Client, providers: None, users: dict[str, Path], cell: Cell
) -> None:
    user, namespace, verdicts, selected = cell
    await created(users[user], model_deployment(user, namespace, GPU))

    deployment = await until_deployment(
        api, user, namespace, lambda obj: reason(obj, "ProviderSelected") is not None
    )

    status = deployment["status"]
    assert status.get("provider", {}).get("name") == selected
    denied = [name for name, verdict in verdicts.items() if verdict]
    assert [item["name"] for item in status["selection"].get("denied", [])] == denied
    if selected is None:
        words = message(deployment, "ProviderSelected")
        assert f"a may not be used by user '{user_name(USERS[user], user)}' in namespace" in words
        assert words.endswith("or name one that you may use in spec.provider.name")


async def test_explain_names_the_missing_permission(
    suite: Suite, api: Client, providers: None, users: dict[str, Path]
) -> None:
    await created(users["bob"], model_deployment("explained", "listed", GPU))
    await until_deployment(
        api, "explained", "listed", lambda obj: reason(obj, "ProviderSelected") == "AutoSelected"
    )

    done = await CommandLine(users["bob"], "listed")("explain", "explained")

    bob = user_name("staff", "bob")
    assert f"matched, but a may not be used by user '{bob}' in namespace 'listed'" in done.out
    assert done.out.startswith("b is selected: ")


async def test_answers_about_a_creator_are_asked_for_once(
    suite: Suite, api: Client, providers: None, users: dict[str, Path]
) -> None:
    edit_in(suite, "quiet", "bob")
    log = AuditLog(suite)

    for name in ("first", "second"):
        await created(users["bob"], model_deployment(name, "quiet", GPU))
        await until_deployment(
            api, name, "quiet", lambda obj: reason(obj, "ProviderSelected") == "AutoSelected"
        )

    asked = Counter(
        entry["objectRef"]["resource"]
        for component, entry in log.all()
        if component == "selector"
        and entry["objectRef"].get("resource") in ("subjectaccessreviews", "namespaces")
    )
    assert asked == {"subjectaccessreviews": 2, "namespaces": 1}


async def test_creator_is_recorded_and_cannot_be_forged(
    api: Client, providers: None, users: dict[str, Path]
) -> None:
    forged = model_deployment("forged", "open", GPU, annotations={CREATOR: user_name("staff", "bob")})
    stored = await created(users["dave"], model_deployment("mine", "open", GPU))
    path = f"/metadata/annotations/{CREATOR.replace('/', '~1')}"
    change = {"op": "replace", "path": path, "value": user_name("staff", "bob")}
    removal = {"op": "remove", "path": path}

    refused = await refusal(users["dave"], MODEL_DEPLOYMENTS, forged)
    refused_change = await changed_refusal(users["dave"], MODEL_DEPLOYMENTS, stored, change)
    ignored_removal = await changed_refusal(users["dave"], MODEL_DEPLOYMENTS, stored, removal)

    dave = user_name("staff", "dave")
    assert f"user '{dave}' may not set the creator of ModelDeployment 'open/forged'" in refused
    assert "Leave them out, or ask an administrator" in refused
    assert f"user '{dave}' may not change the creator of ModelDeployment 'open/mine'" in refused_change
    assert "Leave them as they are, or ask an administrator" in refused_change
    assert ignored_removal == ""
    annotations = (await api.get(MODEL_DEPLOYMENTS, "mine", "open"))["metadata"]["annotations"]
    assert annotations[CREATOR] == dave
    assert "system:serviceaccounts:staff" in annotations[GROUPS].split("\n")


async def test_unchanged_name_needs_no_permission(
    api: Client, providers: None, users: dict[str, Path]
) -> None:
    stored = await created(users["bob"], model_deployment("shared", "open", GPU, provider="b"))

    scaled = await changed_refusal(
        users["dave"],
        MODEL_DEPLOYMENTS,
        stored,
        {"op": "add", "path": "/spec/scaling", "value": {"replicas": 2}},
    )
    renamed = await changed_refusal(
        users["dave"],
        MODEL_DEPLOYMENTS,
        stored,
        {"op": "replace", "path": "/spec/provider/name", "value": "a"},
    )

    assert scaled == ""
    assert MISSING.format("a") in renamed


RESELECT = {"op": "add", "path": "/metadata/annotations/kubefoundry.ai~1reselect", "value": "1"}
IMAGE = {"op": "add", "path": "/spec/image", "value": "example.com/engine:1"}
LABEL = {"op": "add", "path": "/metadata/labels", "value": {"team": "a"}}
NAMED = {"op": "add", "path": "/spec/provider", "value": {"name": "a"}}
EDITS = [
    # user, JSON patch, is refused
    ("alice", [RESELECT], True),
    ("alice", [IMAGE], True),
    ("alice", [LABEL], False),
    ("alice", [IMAGE, NAMED], False),
    ("bob", [IMAGE, RESELECT], False),
    ("erin", [IMAGE, RESELECT], False),
]


@pytest.mark.parametrize(
    ("user", "operations", "is_refused"),
    EDITS,
    ids=["reselect", "image", "label", "named", "creator", "user of all providers"],
)
async def test_selected_provider_is_changed_only_by_the_creator(
    providers: None, users: dict[str, Path], user: str, operations: list[Object], is_refused: bool
) -> None:
    body = model_deployment("", "open", GPU)
    body["metadata"] = {"generateName": "selected-", "namespace": "open"}
    stored = await created(users["bob"], body)

    words = await changed_refusal(users[user], MODEL_DEPLOYMENTS, stored, *operations)

    if is_refused:
        who = f"user '{user_name('staff', user)}' may not change ModelDeployment 'open/{stored['metadata']['name']}'"
        assert f"{who}: its provider is selected for its creator '{user_name('staff', 'bob')}'" in words
        assert words.endswith("name a provider that you may use in spec.provider.name")
    else:
        assert words == ""


async def test_name_of_another_creators_model_is_not_removed(providers: None, users: dict[str, Path]) -> None:
    stored = await created(users["bob"], model_deployment("unnamed", "open", GPU, provider="b"))

    words = await changed_refusal(
        users["alice"], MODEL_DEPLOYMENTS, stored, {"op": "remove", "path": "/spec/provider"}
    )

    assert "may not change ModelDeployment 'open/unnamed'" in words


async def test_model_of_another_creator_is_scaled(
    suite: Suite, providers: None, users: dict[str, Path]
) -> None:
    await created(users["bob"], model_deployment("scaled", "open", GPU))

    scaled = suite.plane.kubectl(
        *("scale", "modeldeployments/scaled", "-n", "open", "--replicas=2"),
        *("--kubeconfig", str(users["alice"])),
        check=False,
    )

    assert scaled.returncode == 0, scaled.stderr


async def test_granted_permission_lets_a_waiting_model_be_selected(
    suite: Suite, api: Client, providers: None, users: dict[str, Path]
) -> None:
    edit_in(suite, "later", "dave")
    dave = user_name("staff", "dave")
    await created(users["dave"], model_deployment("m", "later", GPU))
    await until_deployment(
        api, "m", "later", lambda obj: reason(obj, "ProviderSelected") == "NoMatchingProvider"
    )

    suite.plane.kubectl(
        "create", "rolebinding", "b", "--clusterrole=use-b", "--serviceaccount=staff:dave", "-n", "later"
    )
    until_permitted(suite.plane, dave, "use", "inferenceproviderconfigs.kubefoundry.ai/b", "later")
    # Otherwise, the selector checks again after a minute.
    suite.components["selector"].kill()
    suite.start("selector")

    deployment = await until_deployment(
        api, "m", "later", lambda obj: reason(obj, "ProviderSelected") == "AutoSelected"
    )
    assert deployment["status"]["provider"]["name"] == "b"
    assert [item["name"] for item in deployment["status"]["selection"]["denied"]] == ["a"]
