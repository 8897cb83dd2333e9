"""`kubefoundry controller install --from`: the install.yaml of a release, on a control plane with only Kubernetes."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from kubefoundry_cli.failure import Exit
from kubefoundry_cli.install.bundle import MIRRORED
from kubefoundry_local.control_plane import ROOT, ControlPlane, control_plane
from kubefoundry_sdk._api.kinds import DEPLOYMENTS
from kubefoundry_sdk._cluster import credentials
from kubefoundry_sdk._cluster.client import Client
from support.command_line import CommandLine

pytestmark = [pytest.mark.integration, pytest.mark.apart]

MIRROR = "mirror.example.com/kf"


@pytest.fixture
def plane(tmp_path: Path) -> Iterator[ControlPlane]:
    with control_plane(tmp_path / "plane") as made:
        yield made


@pytest.fixture
def release(tmp_path: Path) -> Path:
    """The folder of a release, as far as the command reads it."""
    folder = tmp_path / "release"
    folder.mkdir()
    file = Path(shutil.copy(ROOT / "manifests" / "install.yaml", folder))
    (folder / "SHA256SUMS").write_text(f"{hashlib.sha256(file.read_bytes()).hexdigest()}  install.yaml\n")
    return folder


async def test_folder_of_release_installs_everything_with_mirror(plane: ControlPlane, release: Path) -> None:
    kubefoundry = CommandLine(plane.kubeconfig, "default")
    command = ("controller install", "--from", str(release), "--mirror", MIRROR, "--yes")

    first = await kubefoundry(*command)
    second = await kubefoundry(*command)
    lost = await kubefoundry("provider upgrade", "direct", "--registry", MIRROR, "--yes")
    kept = await kubefoundry("provider upgrade", "direct", "--mirror", MIRROR, "--yes")

    assert first.code == 0, first.err
    assert (second.code, "nothing to do" in second.err) == (0, True), second.err
    assert lost.code == Exit.USAGE
    assert f"kubefoundry-provider-direct runs with --mirror={MIRROR}" in lost.err
    assert (kept.code, "nothing to do" in kept.err) == (0, True), kept.err
    async with Client(credentials.from_kubeconfig(str(plane.kubeconfig)), user_agent="test") as api:
        deployments, _ = await api.list(DEPLOYMENTS)
    containers = [one["spec"]["template"]["spec"]["containers"][0] for one in deployments]
    assert {one["image"].rpartition(":")[0] for one in containers} == {
        f"{MIRROR}/{name}"
        for name in (
            "core",
            "selector",
            "provider-direct",
            "provider-dynamo",
            "provider-kaito",
            "provider-kuberay",
        )
    }
    mirrored = {one["name"] for one in containers if f"--mirror={MIRROR}" in one["args"]}
    assert mirrored == MIRRORED - {"llamastack"}

    removed = await kubefoundry("provider upgrade", "direct", "--mirror", "", "--registry", MIRROR, "--yes")

    assert removed.code == 0, removed.err
