"""install.yaml as a real API server takes it, and what users may do once it is there."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubefoundry_cli.install import bundle
from kubefoundry_local.control_plane import ControlPlane
from kubefoundry_local.suite import PROBE
from kubefoundry_sdk._api import selectable_fields
from kubefoundry_sdk._api.kinds import Kind, Object
from kubefoundry_sdk._cluster.client import Client
from support.waiting import SECONDS, until

pytestmark = pytest.mark.integration

MANIFESTS = Path(__file__).resolve().parents[2] / "manifests"
CLUSTER_ROLES = Kind("rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole", namespaced=False)


def dry_run(plane: ControlPlane, *arguments: str, **more: Any) -> tuple[list[str], str]:
    """Lines of what would be done, and what was said beside that."""
    done = plane.kubectl("apply", "--dry-run=server", *arguments, **more)
    return done.stdout.splitlines(), done.stderr


def test_install_manifest_applies_without_a_warning(cluster: ControlPlane) -> None:
    documents = [
        document for document in yaml.safe_load_all((MANIFESTS / "install.yaml").read_text()) if document
    ]

    applied, said = dry_run(cluster, "-f", str(MANIFESTS / "install.yaml"))

    assert len(applied) == len(documents)
    assert said == ""


def test_kustomize_builds_the_install_manifest(cluster: ControlPlane) -> None:
    built = cluster.kubectl("kustomize", str(MANIFESTS)).stdout

    assert sorted(map(yaml.safe_dump, yaml.safe_load_all(built))) == sorted(
        map(yaml.safe_dump, yaml.safe_load_all((MANIFESTS / "install.yaml").read_text()))
    )


def test_selectable_fields_are_those_of_the_command_line(cluster: ControlPlane) -> None:
    built = cluster.kubectl("kustomize", str(MANIFESTS / "selectable-fields")).stdout

    def named(definitions: Iterable[Object]) -> dict[str, Object]:
        return {each["metadata"]["name"]: each for each in definitions}

    assert named(yaml.safe_load_all(built)) == named(map(selectable_fields.added, bundle.crds()))


def test_pod_with_more_rights_would_be_warned_about(cluster: ControlPlane) -> None:
    documents = list(yaml.safe_load_all((MANIFESTS / "provider-selector.yaml").read_text()))
    [deployment] = [document for document in documents if document["kind"] == "Deployment"]
    del deployment["spec"]["template"]["spec"]["containers"][0]["securityContext"]

    _, said = dry_run(cluster, "-f", "-", input=yaml.safe_dump(deployment))

    assert 'would violate PodSecurity "restricted:latest"' in said


@pytest.mark.parametrize(
    ("role", "may", "may_not"),
    [
        pytest.param(
            "view",
            [("get", "modeldeployments"), ("watch", "modeldeployments"), ("get", "modeldeployments/scale")],
            [("create", "modeldeployments"), ("patch", "modeldeployments/scale")],
            id="view",
        ),
        pytest.param(
            "edit",
            [
                ("list", "modeldeployments"),
                ("create", "modeldeployments"),
                ("delete", "modeldeployments"),
                ("patch", "modeldeployments/scale"),
            ],
            [("patch", "modeldeployments/status"), ("create", "inferenceproviderconfigs")],
            id="edit",
        ),
        pytest.param(
            "admin",
            [("create", "modeldeployments"), ("deletecollection", "modeldeployments")],
            [("patch", "modeldeployments/status")],
            id="admin",
        ),
    ],
)
async def test_clusters_own_roles_carry_model_deployments(
    cluster: ControlPlane,
    api: Client,
    namespace: str,
    role: str,
    may: list[tuple[str, str]],
    may_not: list[tuple[str, str]],
) -> None:
    cluster.kubectl("create", "rolebinding", role, f"--clusterrole={role}", "--user=alice", "-n", namespace)
    # Aggregation is the work of a controller.
    await until(api, CLUSTER_ROLES, role, None, lambda found: found and speaks_of_us(found))

    def allowed(verb: str, resource: str) -> bool:
        plural, _, subresource = resource.partition("/")
        asked = ["auth", "can-i", verb, f"{plural}.kubefoundry.ai", "--as=alice", "-n", namespace]
        if subresource:
            asked.append(f"--subresource={subresource}")
        return cluster.kubectl(*asked, check=False).stdout.strip() == "yes"

    # The API server hears of the binding in its own time.
    last = time.monotonic() + SECONDS
    while missing := [asked for asked in may if not allowed(*asked)]:
        assert time.monotonic() < last, missing
        await asyncio.sleep(PROBE)
    assert [asked for asked in may_not if allowed(*asked)] == []


def speaks_of_us(role: Object) -> bool:
    return any("kubefoundry.ai" in rule.get("apiGroups", ()) for rule in role.get("rules") or ())
