"""Models saved in one cluster and restored in another one, by the commands of docs/upgrade.md."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path
from typing import Any, Final

import pytest

from kubefoundry_local.control_plane import ROOT, ControlPlane
from kubefoundry_sdk._cluster import credentials
from kubefoundry_sdk._cluster.client import Client
from support.deployments import GPU
from support.edits import running
from support.kinds import UPSTREAM
from support.suites import running_suite
from support.waiting import serves, until_deployment

pytestmark = [pytest.mark.integration, pytest.mark.apart]

DOCUMENT: Final = ROOT / "docs" / "upgrade.md"
NAMESPACE: Final = "team"
MODELS: Final = {"named": "dynamo", "selected": None}
"""The provider that each model names."""


def commands() -> list[str]:
    """Return the commands of the section: the backup, and the restore."""
    [section] = re.findall(r"^## Back up and restore\n(.*?)(?=^## )", DOCUMENT.read_text(), re.M | re.S)
    return re.findall(r"^```sh\n(.*?)^```$", section, re.M | re.S)


def run(command: str, plane: ControlPlane, folder: Path) -> None:
    """Run a command of the document, whose kubectl is that of the control plane."""
    program = shlex.join([*plane.kubectl_command, "--kubeconfig", str(plane.kubeconfig)])
    function = f'kubectl() {{ {program} "$@"; }}'
    script = f"set -euo pipefail\n{function}\n{command}"
    done = subprocess.run(["bash", "-c", script], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


async def upstream_specs(api: Client) -> dict[str, Any]:
    """Return the spec of each upstream object by the name of its model."""
    objects, _ = await api.list(UPSTREAM["dynamo"], NAMESPACE)
    return {obj["metadata"]["name"]: obj["spec"] for obj in objects}


async def test_models_serve_in_a_new_cluster_after_restore(tmp_path: Path) -> None:
    save, restore = commands()
    with running_suite(tmp_path / "old", "dynamo") as old:
        old.start("core", "selector", "dynamo")
        async with Client(credentials.from_kubeconfig(str(old.plane.kubeconfig)), user_agent="test") as api:
            old.plane.kubectl("create", "namespace", NAMESPACE)
            before = {
                name: (await running(api, NAMESPACE, GPU, provider, name))["spec"]
                for name, provider in MODELS.items()
            }
            specs = await upstream_specs(api)
            run(save, old.plane, tmp_path)

    with running_suite(tmp_path / "new", "dynamo") as new:
        new.start("core", "selector", "dynamo")
        async with Client(credentials.from_kubeconfig(str(new.plane.kubeconfig)), user_agent="test") as api:
            new.plane.kubectl("create", "namespace", NAMESPACE)
            run(restore, new.plane, tmp_path)
            restored = {name: await until_deployment(api, name, NAMESPACE, serves) for name in MODELS}

            assert {name: obj["spec"] for name, obj in restored.items()} == before
            assert specs.keys() == MODELS.keys()
            assert await upstream_specs(api) == specs
