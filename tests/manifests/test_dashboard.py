"""The page's Deployment: no rights, no token, and arguments that its program knows."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubefoundry_local.control_plane import ControlPlane
from kubefoundry_sdk._cluster.client import Client
from support.access import allowed

FOLDER = Path(__file__).resolve().parents[2] / "manifests" / "dashboard"
DOCUMENTS: list[dict[str, Any]] = list(yaml.safe_load_all((FOLDER / "dashboard.yaml").read_text()))


def only(kind: str) -> dict[str, Any]:
    [found] = [document for document in DOCUMENTS if document["kind"] == kind]
    return found


def test_pod_is_restricted_and_holds_no_token() -> None:
    pod = only("Deployment")["spec"]["template"]["spec"]
    [container] = pod["containers"]

    assert [document["kind"] for document in DOCUMENTS] == ["ServiceAccount", "Service", "Deployment"]
    assert (pod["automountServiceAccountToken"], only("ServiceAccount")["automountServiceAccountToken"]) == (
        False,
        False,
    )
    assert [set(volume) - {"name"} for volume in pod["volumes"]] == [{"configMap"}]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert container["image"] == f"kubefoundry/dashboard:{version('kubefoundry-dashboard')}"


def test_service_and_the_probes_name_the_port_that_is_served() -> None:
    labels = only("Deployment")["spec"]["template"]["metadata"]["labels"]
    [container] = only("Deployment")["spec"]["template"]["spec"]["containers"]

    assert only("Service")["spec"]["selector"].items() <= labels.items()
    assert [port["targetPort"] for port in only("Service")["spec"]["ports"]] == ["http"]
    assert {container[probe]["httpGet"]["port"] for probe in ("livenessProbe", "readinessProbe")} == {"http"}
    assert [f"--port={port['containerPort']}" for port in container["ports"]] == container["args"]


@pytest.mark.integration
def test_program_knows_its_arguments() -> None:
    [container] = only("Deployment")["spec"]["template"]["spec"]["containers"]
    program = Path(sys.executable).with_name(container["command"][0])

    done = subprocess.run(
        [program, *container["args"], "--help"], capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stderr
    assert all(f"{argument.partition('=')[0]} " in done.stdout for argument in container["args"])


@pytest.mark.integration
async def test_dashboard_manifest_applies_without_rights(cluster: ControlPlane, api: Client) -> None:
    done = cluster.kubectl("apply", "--dry-run=server", "-k", str(FOLDER))

    assert "Warning" not in done.stderr
    for verb, resource in (
        ("list", "modeldeployments.kubefoundry.ai"),
        ("get", "secrets"),
        ("list", "namespaces"),
    ):
        assert not await allowed(api, "kubefoundry-dashboard", verb, resource)
