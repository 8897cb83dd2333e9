"""The layouts of `make images`, read by crane and umoci: reproducible, valid, small, and without a shell."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from images.components import components
from images.debian import ARCHITECTURES, write_lock
from images.interpreter import machine
from images.layers import CERTIFICATES
from images.registry import Registry, registry, run
from images.wheels import SITE

from kubefoundry_sdk._api.build import describe
from support.checkout import copy_checkout
from support.tested_images import ALL, COMPONENTS

pytestmark = [pytest.mark.integration, pytest.mark.slow]

ROOT: Final = Path(__file__).resolve().parents[2]
TESTED: Final = ARCHITECTURES if ALL else (machine(),)
LARGEST: Final = 100_000_000
"""Bytes of an unpacked image."""

SHELLS: Final = {"sh", "bash", "dash", "busybox", "pip", "pip3", "apt", "dpkg", "perl"}


@pytest.fixture(scope="module")
def lock(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Debian packages of today: Debian removes a locked version when it publishes a newer one."""
    file = tmp_path_factory.mktemp("debian") / "lock"
    write_lock(file, TESTED)
    return file


def build(source: Path, folder: Path, lock: Path, **how: Any) -> None:
    """Run the build of a checkout."""
    command = [sys.executable, "-m", "images", "build", str(folder), *COMPONENTS, "--architecture", *TESTED]
    command += ["--debian-lock", str(lock)]
    environment = {
        **os.environ,
        "PYTHONPATH": f"{source}/dev:{source}/requirements",
        **how.pop("variables", {}),
    }
    subprocess.run(command, cwd=source, env=environment, check=True, **how)


@pytest.fixture(scope="module")
def layouts(lock: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with a layout of each tested component."""
    folder = tmp_path_factory.mktemp("layouts")
    build(ROOT, folder, lock)
    return folder


@pytest.fixture(scope="module")
def server(layouts: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Registry]:
    """A registry with the tested images, tagged `test`."""
    with registry(tmp_path_factory.mktemp("registry")) as made:
        for name in COMPONENTS:
            made.push(layouts / name, f"{name}:test")
        yield made


@pytest.fixture(
    scope="module",
    params=[(name, architecture) for name in COMPONENTS for architecture in TESTED],
    ids="-".join,
)
def bundle(
    request: pytest.FixtureRequest, server: Registry, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """The image of a component and an architecture, unpacked by umoci."""
    name, architecture = request.param
    return server.unpack(f"{name}:test", architecture, tmp_path_factory.mktemp("bundle"))


def test_build_elsewhere_has_equal_digests(layouts: Path, lock: Path, tmp_path: Path) -> None:
    other = tmp_path / "another folder"
    for copy in copy_checkout(other):
        copy.chmod(0o644)
        os.utime(copy, (1_000_000_000, 1_000_000_000))
    variables = {"TZ": "Pacific/Auckland", "LC_ALL": "C", "SOURCE_DATE_EPOCH": "1"}
    # The copy is no checkout of git, so it cannot know its commit.
    variables["KUBEFOUNDRY_COMMIT"] = describe(ROOT)

    build(other, tmp_path / "layouts", lock, umask=0o077, variables=variables)

    for name in COMPONENTS:
        assert _index(tmp_path / "layouts" / name) == _index(layouts / name)


def test_crane_validates_images(layouts: Path, server: Registry) -> None:
    for name in COMPONENTS:
        assert run("crane", "validate", "--remote", f"{server.address}/{name}:test").startswith("PASS")
        assert run("crane", "digest", f"{server.address}/{name}:test").strip() == _index(layouts / name)


def test_image_runs_as_user_without_shell(bundle: Path) -> None:
    process = json.loads((bundle / "config.json").read_text())["process"]

    programs = {
        path.name for path in (bundle / "rootfs").rglob("*") if path.is_file() and path.stat().st_mode & 0o111
    }

    assert (process["user"]["uid"], process["user"]["gid"]) == (65532, 65532)
    assert (bundle / "rootfs" / process["args"][0].lstrip("/")).name in programs
    assert not programs & SHELLS
    assert not (bundle / "rootfs" / SITE / "pip").exists()


def test_image_is_small_and_compiled(bundle: Path) -> None:
    files = [path for path in (bundle / "rootfs").rglob("*") if path.is_file() and not path.is_symlink()]
    packages = bundle / "rootfs" / SITE

    assert sum(path.stat().st_size for path in files) < LARGEST
    assert list(packages.glob("kubefoundry_sdk/__pycache__/__init__.cpython-311.pyc"))
    assert len([path for path in files if path.suffix == ".pyc"]) > 500


def test_image_has_authorities_and_licences(bundle: Path) -> None:
    root = bundle / "rootfs"
    packages = [path.name for path in (root / "var/lib/dpkg/status.d").iterdir()]
    documents = [(root / "usr/share/doc" / name).resolve().relative_to(root.resolve()) for name in packages]

    assert (root / CERTIFICATES).read_text().count("BEGIN CERTIFICATE") > 100
    assert (root / "usr/lib/ssl/cert.pem").readlink() == Path("/", CERTIFICATES)
    assert [str(path) for path in documents if not (root / path / "copyright").is_file()] == []
    assert (root / "opt/kubefoundry/LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()


def test_sbom_lists_every_package_of_the_image(layouts: Path, bundle: Path) -> None:
    root = bundle / "rootfs"
    debian = {path.name for path in (root / "var/lib/dpkg/status.d").iterdir()}
    python = {path.name.partition("-")[0].lower() for path in (root / SITE).glob("*.dist-info")}
    [manifest] = list(bundle.glob("sha256_*.mtree"))
    subject = manifest.name.removesuffix(".mtree").replace("_", ":")

    [listed] = [
        _json(layout, referrer["layers"][0]["digest"])["components"]
        for layout in (layouts / name for name in COMPONENTS)
        for referrer in _manifests(layout)
        if referrer.get("subject", {}).get("digest") == subject
    ]

    purls = [part["purl"] for part in listed]
    assert {part["name"] for part in listed if part["purl"].startswith("pkg:deb/")} == debian
    names = {part["name"].lower().replace("-", "_").replace(".", "_") for part in listed}
    assert names - {name.replace("-", "_").replace(".", "_") for name in debian} == python
    assert purls == sorted(set(purls))
    licences = {
        part["name"]: [each["license"]["name"] for each in part["licenses"]]
        for part in listed
        if part["name"] in debian
    }
    assert licences["zlib1g"] == ["Zlib"]
    assert licences["libc6"] == ["/usr/share/doc/libc6/copyright"]
    assert [name for name, found in licences.items() if not found] == []


def test_registry_finds_sboms_by_their_images(layouts: Path, server: Registry) -> None:
    for name in COMPONENTS:
        subjects = [
            one["digest"]
            for one in _json(layouts / name, _index(layouts / name))["manifests"]
            if "artifactType" not in one
        ]
        for subject in subjects:
            # The tag of clients for registries without the API for referrers, which crane's lacks.
            found = json.loads(
                run("crane", "manifest", f"{server.address}/{name}:{subject.replace(':', '-')}")
            )
            assert [one["artifactType"] for one in found["manifests"]] == ["application/vnd.cyclonedx+json"]


@pytest.mark.parametrize("name", components())
def test_component_has_its_lock_and_packages(name: str) -> None:
    component = components()[name]

    assert component.lock.is_file()
    assert all((ROOT / package / "pyproject.toml").is_file() for package in component.packages)


def _index(layout: Path) -> str:
    [entry] = json.loads((layout / "index.json").read_text())["manifests"]
    return str(entry["digest"])


def _json(layout: Path, digest: str) -> Any:
    return json.loads((layout / "blobs" / digest.replace(":", "/")).read_text())


def _manifests(layout: Path) -> list[Any]:
    return [_json(layout, one["digest"]) for one in _json(layout, _index(layout))["manifests"]]
