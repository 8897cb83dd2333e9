"""Installing, upgrading and removing by command line on a control plane with only Kubernetes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from kubefoundry_local.control_plane import ROOT, ControlPlane, control_plane
from kubefoundry_local.suite import Suite
from kubefoundry_sdk._api import selectable_fields
from kubefoundry_sdk._api.kinds import CRDS, DEPLOYMENTS, MODEL_DEPLOYMENTS, Kind
from kubefoundry_sdk._api.names import PAUSED_ANNOTATION
from kubefoundry_sdk._cluster import credentials
from kubefoundry_sdk._cluster.client import Client
from support.command_line import CommandLine
from support.deployments import GPU, model_deployment
from support.kubernetes_version import at_least
from support.registrations import register
from support.waiting import reason, until_deployment

pytestmark = [pytest.mark.integration, pytest.mark.apart]

SYSTEM = "kubefoundry-system"

RBAC = "rbac.authorization.k8s.io"
CLUSTER_ROLES = Kind(RBAC, "v1", "clusterroles", "ClusterRole", namespaced=False)
CLUSTER_ROLE_BINDINGS = Kind(RBAC, "v1", "clusterrolebindings", "ClusterRoleBinding", namespaced=False)
BINDING = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRoleBinding",
    "metadata": {"name": "installer"},
    "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "installer"},
    "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "installer"}],
}


@pytest.fixture
def plane(tmp_path: Path) -> Iterator[ControlPlane]:
    with control_plane(tmp_path / "plane") as made:
        yield made


async def test_from_nothing_and_back(plane: ControlPlane) -> None:
    kubefoundry = CommandLine(plane.kubeconfig, "default")
    async with Client(credentials.from_kubeconfig(str(plane.kubeconfig)), user_agent="test") as api:
        await question_writes_nothing(kubefoundry, api)
        await second_upgrade_writes_nothing(kubefoundry, api)
        await values_of_others_are_kept_unasked(kubefoundry, api)
        await question_knows_missing_rights(kubefoundry, api)
        await provider_is_installed(kubefoundry)
        await models_hold_the_uninstall(kubefoundry, api, plane)
        await provider_is_removed_once(kubefoundry)
        await silent_provider_holds_the_deletion(kubefoundry, api)
        await all_is_removed(kubefoundry, api)


async def question_writes_nothing(kubefoundry: CommandLine, api: Client) -> None:
    # asked first, and nothing is written by a question
    shown = await kubefoundry("controller install", "--dry-run")
    assert shown.code == 0, shown.err
    assert f"will create  Deployment {SYSTEM}/kubefoundry-core" in shown.out
    assert "rights:" in shown.out
    early = await kubefoundry("provider install", "kaito", "--dry-run")
    assert early.code == 1
    assert f"there is no namespace {SYSTEM}; kubefoundry controller install" in early.err
    refused = await kubefoundry("controller install")
    assert (refused.code, "add --yes" in refused.err) == (2, True)
    assert (await api.list(DEPLOYMENTS))[0] == []


async def second_upgrade_writes_nothing(kubefoundry: CommandLine, api: Client) -> None:
    made = await kubefoundry("controller install", "--yes", "--registry", "registry.example.com/kf")
    assert made.code == 0, made.err
    core = await api.get(DEPLOYMENTS, "kubefoundry-core", SYSTEM)
    assert core["spec"]["template"]["spec"]["containers"][0]["image"] == "registry.example.com/kf/core:0.2.0"
    again = await kubefoundry("controller upgrade", "--yes", "--registry", "registry.example.com/kf")
    assert (again.code, "nothing to do" in again.err) == (0, True)
    assert (await api.get(DEPLOYMENTS, "kubefoundry-core", SYSTEM))["metadata"]["resourceVersion"] == (
        core["metadata"]["resourceVersion"]
    )


async def values_of_others_are_kept_unasked(kubefoundry: CommandLine, api: Client) -> None:
    # what an administrator has set is not taken over unasked
    edit = {"op": "replace", "path": "/spec/replicas", "value": 3}
    await api.json_patch(DEPLOYMENTS, "kubefoundry-core", SYSTEM, [edit], manager="administrator")
    kept = await kubefoundry("controller upgrade", "--yes", "--registry", "registry.example.com/kf")
    assert (kept.code, "--force-conflicts takes them over" in kept.err) == (3, True), kept
    assert '"administrator"' in kept.err
    await api.json_patch(DEPLOYMENTS, "kubefoundry-selector", SYSTEM, [edit], manager="administrator")
    both = await kubefoundry("controller upgrade", "--dry-run")
    assert (both.code, "2 objects cannot be written:" in both.err) == (3, True), both
    for name in ("core", "selector"):
        assert f"Deployment {SYSTEM}/kubefoundry-{name} has values of another field manager" in both.err
    forced = await kubefoundry(
        "controller upgrade", "--yes", "--registry", "registry.example.com/kf", "--force-conflicts"
    )
    assert (forced.code, "2 objects written" in forced.err) == (0, True), forced
    assert "spec.replicas" in forced.out


async def question_knows_missing_rights(kubefoundry: CommandLine, api: Client) -> None:
    # A question has the answer that the installation would have: nobody may give rights that they lack.
    reader = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "installer"},
        "rules": [
            {"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list"]},
            {
                "apiGroups": ["rbac.authorization.k8s.io"],
                "resources": ["clusterroles", "clusterrolebindings", "roles", "rolebindings"],
                "verbs": ["create", "patch"],
            },
            {
                "apiGroups": ["", "apps", "networking.k8s.io", "policy"],
                "resources": ["*"],
                "verbs": ["create", "patch"],
            },
        ],
    }
    await api.create(CLUSTER_ROLES, reader, manager="test")
    await api.create(CLUSTER_ROLE_BINDINGS, BINDING, manager="test")
    may_not = await kubefoundry("provider install", "kaito", "--dry-run", "--as", "installer")
    assert may_not.code == 5, may_not
    assert "ClusterRole kubefoundry-provider-kaito" in may_not.err
    assert "attempting to grant RBAC permissions not currently held" in may_not.err


async def provider_is_installed(kubefoundry: CommandLine) -> None:
    installed = await kubefoundry("provider install", "kaito", "--yes")
    assert installed.code == 0, installed.err
    unknown = await kubefoundry("provider install", "kaitoo", "--yes")
    assert (unknown.code, "it has direct, dynamo, kaito, kuberay" in unknown.err) == (2, True)
    status = await kubefoundry("controller status")
    assert status.code == 1
    assert "kubefoundry-provider-kaito   0/1" in status.out


async def models_hold_the_uninstall(kubefoundry: CommandLine, api: Client, plane: ControlPlane) -> None:
    # no webhook answers here, so one that is stored already stands for all
    for name in ("mutatingwebhookconfigurations", "validatingwebhookconfigurations"):
        plane.kubectl("delete", name, "--all")
    body = model_deployment("m", "default", GPU, provider="nobody")
    await api.create(MODEL_DEPLOYMENTS, body, manager="test")
    serving = await kubefoundry("controller uninstall", "--yes")
    assert (serving.code, "1 ModelDeployment needs KubeFoundry: default/m" in serving.err) == (1, True)
    assert (await api.list(DEPLOYMENTS, SYSTEM))[0] != []


async def provider_is_removed_once(kubefoundry: CommandLine) -> None:
    removed = await kubefoundry("provider uninstall", "kaito", "--yes")
    assert (removed.code, "provider kaito is removed" in removed.err) == (0, True), removed
    nothing = await kubefoundry("provider uninstall", "kaito", "--yes")
    assert (nothing.code, "nothing to do" in nothing.err) == (0, True), nothing
    listed = await kubefoundry("provider list")
    assert (listed.code, "not registered: direct, dynamo, kaito, kuberay" in listed.err) == (0, True), listed


async def silent_provider_holds_the_deletion(kubefoundry: CommandLine, api: Client) -> None:
    # a provider that does not report cannot clean up, so that the deletion would wait for it
    await register(api, "nobody")
    hold = [{"op": "add", "path": "/metadata/finalizers", "value": ["kubefoundry.ai/nobody-provider"]}]
    await api.json_patch(MODEL_DEPLOYMENTS, "m", "default", hold, manager="nobody-provider")
    silent = await kubefoundry("controller uninstall", "--yes", "--delete-models")
    assert silent.code == 1, silent
    assert "provider nobody has not reported for " in silent.err
    assert "and it would have to clean up 1 models; start it, or keep them with --eject" in silent.err
    [kept_model], _ = await api.list(MODEL_DEPLOYMENTS)
    assert "deletionTimestamp" not in kept_model["metadata"]
    assert (await api.list(DEPLOYMENTS, SYSTEM))[0] != []
    release = [{"op": "remove", "path": "/metadata/finalizers"}]
    await api.json_patch(MODEL_DEPLOYMENTS, "m", "default", release, manager="nobody-provider")


async def all_is_removed(kubefoundry: CommandLine, api: Client) -> None:
    gone = await kubefoundry("controller uninstall", "--yes", "--delete-models")
    assert gone.code == 0, gone.err
    assert (await api.list(MODEL_DEPLOYMENTS))[0] == (await api.list(DEPLOYMENTS, SYSTEM))[0] == []
    assert len((await api.list(CRDS))[0]) >= 2


async def test_crds_that_it_creates_fit_the_server(plane: ControlPlane) -> None:
    """An older API server does not know selectable fields."""
    kubefoundry = CommandLine(plane.kubeconfig, "default")
    async with Client(credentials.from_kubeconfig(str(plane.kubeconfig)), user_agent="test") as api:
        added = await kubefoundry("controller install", "--yes")
        # kubectl applied these CRDs, so they stay as they are
        assert (added.code, await has_selectable_fields(api)) == (0, False), added.err
        gone = await kubefoundry("controller uninstall", "--yes", "--crds")
        assert gone.code == 0, gone.err
        plane.kubectl("wait", "--for=delete", f"namespace/{SYSTEM}", "--timeout=180s")

        again = await kubefoundry("controller install", "--yes")

        assert (again.code, await has_selectable_fields(api)) == (0, at_least("1.31")), again.err


@pytest.mark.needs_kubernetes("1.31", "selectable fields of CRDs")
async def test_fields_that_are_added_select_and_stay(plane: ControlPlane) -> None:
    kubefoundry = CommandLine(plane.kubeconfig, "default")
    async with Client(credentials.from_kubeconfig(str(plane.kubeconfig)), user_agent="test") as api:
        added = await kubefoundry("controller install", "--yes")
        assert (added.code, await has_selectable_fields(api)) == (0, False), added.err
        plane.kubectl("apply", "--server-side", "-k", str(ROOT / "manifests" / "selectable-fields"))
        kept = await kubefoundry("controller upgrade", "--yes")
        state = (kept.code, "nothing to do" in kept.err, await has_selectable_fields(api))
        assert state == (0, True, True), kept.err
        # no webhook answers here
        for name in ("mutatingwebhookconfigurations", "validatingwebhookconfigurations"):
            plane.kubectl("delete", name, "--all")
        body = model_deployment("m", "default", GPU, provider="nobody")
        await api.create(MODEL_DEPLOYMENTS, body, manager="test")
        for provider, found in (("nobody", "modeldeployment.kubefoundry.ai/m\n"), ("kaito", "")):
            chosen = ("--field-selector", f"spec.provider.name={provider},status.phase!=Running")
            assert plane.kubectl("get", "md", *chosen, "-o", "name").stdout == found


async def has_selectable_fields(api: Client) -> bool:
    return selectable_fields.present(await api.get(CRDS, MODEL_DEPLOYMENTS.crd))


async def test_foreign_manifest_with_broad_rights_is_refused(cluster: ControlPlane, tmp_path: Path) -> None:
    kubefoundry = CommandLine(cluster.kubeconfig, "default")
    documents = list(yaml.safe_load_all((ROOT / "manifests/providers/kaito.yaml").read_text()))
    [role] = [
        one
        for one in documents
        if (one["kind"], one["metadata"]["name"]) == ("ClusterRole", "kubefoundry-provider-kaito")
    ]
    role["rules"].append({"apiGroups": [""], "resources": ["secrets"], "verbs": ["list"]})
    manifest = tmp_path / "acme.yaml"
    manifest.write_text(yaml.safe_dump_all(documents))

    refused = await kubefoundry("provider install", str(manifest), "--yes")
    shown = await kubefoundry("provider install", str(manifest), "--dry-run")

    assert (refused.code, "--allow accepts them" in refused.err) == (5, True), refused
    assert "! ClusterRole kubefoundry-provider-kaito: list: secrets (core) in all namespaces" in shown.out


async def own_unreported_deployment(api: Client, namespace: str, name: str, *, like: str) -> None:
    """Leave a model as an import that ended before it resumed the model: it owns an object that no status names."""
    body = model_deployment(name, namespace, GPU, provider="direct")
    body["metadata"]["annotations"] = {PAUSED_ANNOTATION: "true"}
    model = await api.create(MODEL_DEPLOYMENTS, body, manager="test")
    owner = {key: model[key] for key in ("apiVersion", "kind")} | {
        "name": name,
        "uid": model["metadata"]["uid"],
    }
    upstream = await api.get(DEPLOYMENTS, like, namespace)
    meta = {"name": name, "namespace": namespace, "ownerReferences": [owner]}
    body = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": upstream["spec"]}
    await api.create(DEPLOYMENTS, body, manager="test")


async def test_uninstall_with_eject_leaves_serving_models(fresh: Suite, api: Client, namespace: str) -> None:
    fresh.start("core", "direct")
    kubefoundry = CommandLine(fresh.plane.kubeconfig, namespace)
    names = [f"m-{index}" for index in range(3)]
    for name in names:
        await api.create(
            MODEL_DEPLOYMENTS, model_deployment(name, namespace, GPU, provider="direct"), manager="test"
        )
    for name in names:
        await until_deployment(
            api, name, namespace, lambda obj: reason(obj, "ResourceCreated") == "ResourceCreated"
        )
    names.append("unresumed")
    await own_unreported_deployment(api, namespace, "unresumed", like="m-0")
    before = {name: await api.get(DEPLOYMENTS, name, namespace) for name in names}

    body = model_deployment("going", namespace, GPU, provider="nobody")
    body["metadata"]["finalizers"] = ["example.com/hold"]
    body["status"] = {}
    going = await api.create(MODEL_DEPLOYMENTS, body, manager="test")
    hold = {"provider": {"name": "direct", "resourceName": "going", "resourceAPIVersion": "apps/v1"}}
    await api.json_patch(
        *(MODEL_DEPLOYMENTS, "going", namespace, [{"op": "add", "path": "/status", "value": hold}]),
        manager="test",
        subresource="/status",
    )
    await api.delete(MODEL_DEPLOYMENTS, "going", namespace, uid=going["metadata"]["uid"])

    # one model that cannot be ejected stops it before the first write
    stopped = await kubefoundry("controller uninstall", "--yes", "--eject")
    assert (stopped.code, "is being deleted" in stopped.err) == (1, True), stopped
    assert "deleted  " not in stopped.out
    assert {one["metadata"]["name"] for one in (await api.list(MODEL_DEPLOYMENTS))[0]} == {*names, "going"}
    await api.json_patch(
        *(MODEL_DEPLOYMENTS, "going", namespace, [{"op": "remove", "path": "/metadata/finalizers"}]),
        manager="test",
    )

    refused = await kubefoundry("controller uninstall", "--yes")
    done = await kubefoundry("controller uninstall", "--yes", "--eject")

    assert (refused.code, "4 ModelDeployments need KubeFoundry" in refused.err) == (1, True), refused
    assert (done.code, "KubeFoundry is removed" in done.err) == (0, True), done
    assert f"will delete  Namespace {SYSTEM}" in done.out
    assert done.out.index("will delete  ") < done.out.index("deleted      ")
    assert (await api.list(MODEL_DEPLOYMENTS))[0] == []
    for name, was in before.items():
        left = await api.get(DEPLOYMENTS, name, namespace)
        # the generation of a Deployment changes with its annotations, too
        assert (left["metadata"]["uid"], left["spec"]) == (was["metadata"]["uid"], was["spec"])
        assert not left["metadata"].get("ownerReferences")
        assert not left["metadata"].get("deletionTimestamp")
