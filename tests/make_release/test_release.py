"""`make release` on a copy of the checkout, and the commands of docs/release.md on its files: make test-release"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from images.debian import write_lock
from images.interpreter import machine
from images.registry import Registry, program, registry, run
from release.files import PACKAGES

from support.checkout import copy_checkout
from support.helm import Helm, build

ROOT: Final = Path(__file__).resolve().parents[2]
DOCUMENT: Final = ROOT / "docs" / "release.md"
VERSION: Final = "0.2.0"
"""The version in the commands of the document."""

AUTHOR: Final = {
    "GIT_AUTHOR_NAME": "test",
    "GIT_AUTHOR_EMAIL": "test@example.com",
    "GIT_COMMITTER_NAME": "test",
    "GIT_COMMITTER_EMAIL": "test@example.com",
}


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with the files of this one in one commit, at the state of a release. It shares the downloads."""
    folder = tmp_path_factory.mktemp("checkout")
    copy_checkout(folder)
    changelog = folder / "CHANGELOG.md"
    changelog.write_text(changelog.read_text().replace("## Unreleased\n", f"## {VERSION} - 2026-11-27\n"))
    for command in (["init", "--quiet"], ["add", "--all"], ["commit", "--quiet", "--message", "release"]):
        subprocess.run(["git", *command], cwd=folder, env={**os.environ, **AUTHOR}, check=True)
    return folder


@pytest.fixture(scope="module")
def lock(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Debian packages of today: Debian removes a locked version when it publishes a newer one."""
    file = tmp_path_factory.mktemp("debian") / "lock"
    write_lock(file, [machine()])
    return file


def make_release(
    checkout: Path, folder: Path, lock: Path, *flags: str, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run the command of `make release` for one image and one architecture."""
    command = [sys.executable, "-m", "release", str(folder), "--component", "core"]
    command += ["--architecture", machine(), "--debian-lock", str(lock), *flags]
    environment = {**os.environ, "PYTHONPATH": f"{checkout}/dev:{checkout}/requirements", **variables}
    return subprocess.run(command, cwd=checkout, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with cosign.key and cosign.pub."""
    folder = tmp_path_factory.mktemp("keys")
    environment = {**os.environ, "COSIGN_PASSWORD": ""}
    subprocess.run([program("cosign"), "generate-key-pair"], cwd=folder, env=environment, check=True)
    return folder


@pytest.fixture(scope="module")
def release(checkout: Path, lock: Path, keys: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a signed release, with the public key beside its files."""
    folder = tmp_path_factory.mktemp("release") / "dist"
    done = make_release(
        checkout,
        folder,
        lock,
        f"--sign-key={keys / 'cosign.key'}",
        f"--version={VERSION}",
        COSIGN_PASSWORD="",
    )
    assert done.returncode == 0, done.stderr
    shutil.copy(keys / "cosign.pub", folder)
    return folder


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Registry]:
    with registry(tmp_path_factory.mktemp("registry")) as made:
        yield made


def test_second_run_has_equal_checksums(checkout: Path, release: Path, lock: Path, tmp_path: Path) -> None:
    done = make_release(checkout, tmp_path / "again", lock, TZ="Pacific/Auckland", SOURCE_DATE_EPOCH="1")

    assert done.returncode == 0, done.stderr
    assert (tmp_path / "again/SHA256SUMS").read_text() == (release / "SHA256SUMS").read_text()


def test_checksums_list_every_file_but_signatures(release: Path) -> None:
    listed = {line.split("  ")[1] for line in (release / "SHA256SUMS").read_text().splitlines()}
    present = {str(path.relative_to(release)) for path in release.rglob("*") if path.is_file()}

    assert {name for name in present - listed if not name.startswith(("signatures/", "layouts/"))} == {
        "SHA256SUMS",
        "cosign.pub",
    }
    assert len([name for name in listed if name.endswith(".whl")]) == len(PACKAGES)


def test_commands_of_the_document_verify_the_release(release: Path, server: Registry) -> None:
    done = run_document(release, server)

    assert done.returncode == 0, done.stderr
    assert done.stderr.count("Verified OK") == 1
    assert done.stderr.count("The signatures were verified against the specified public key") == 1


def test_changed_file_fails_verification(release: Path, server: Registry, tmp_path: Path) -> None:
    changed = Path(shutil.copytree(release, tmp_path / "changed"))
    with (changed / "install.yaml").open("a") as file:
        file.write("---\n")

    assert "install.yaml: FAILED" in run_document(changed, server).stdout


def test_changed_checksums_fail_verification(release: Path, server: Registry, tmp_path: Path) -> None:
    changed = Path(shutil.copytree(release, tmp_path / "changed"))
    (changed / "images.txt").unlink()
    sums = (changed / "SHA256SUMS").read_text()
    (changed / "SHA256SUMS").write_text(re.sub(r".*  images\.txt\n", "", sums))

    done = run_document(changed, server)

    assert done.returncode != 0
    assert "invalid signature" in done.stderr


def run_document(folder: Path, server: Registry) -> subprocess.CompletedProcess[str]:
    """Run the commands of the section Verify in the folder of a release."""
    [section] = re.findall(r"^## Verify\n(.*?)(?=^## )", DOCUMENT.read_text(), re.M | re.S)
    commands = "\n".join(re.findall(r"^    (.*)$", section, re.M))
    paths = [str(Path(program(name)).parent) for name in ("cosign", "crane")]
    environment = {
        **os.environ,
        "PATH": os.pathsep.join([*paths, os.environ["PATH"]]),
        "REGISTRY": server.address,
    }
    return subprocess.run(
        ["bash", "-eu", "-c", commands],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_provenance_names_commit_and_materials(checkout: Path, release: Path) -> None:
    statement = json.loads((release / f"provenance/core-{machine()}.intoto.json").read_text())
    sbom = json.loads((release / f"sboms/core-{machine()}.cdx.json").read_text())
    commit = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=checkout, capture_output=True, text=True
    ).stdout.strip()
    [first, *materials] = statement["predicate"]["buildDefinition"]["resolvedDependencies"]

    assert statement["predicateType"] == "https://slsa.dev/provenance/v1"
    assert first == {"name": "source", "digest": {"gitCommit": commit}}
    assert {material["uri"] for material in materials} == {
        part["purl"] for part in sbom["components"] if not part["purl"].startswith("pkg:pypi/kubefoundry-")
    }


def test_provenance_is_a_referrer_of_its_image(release: Path, server: Registry) -> None:
    digest = server.push(unpacked(release, "core"), "core:referrers").partition("@")[2]
    [entry, *documents] = manifest(server, digest)["manifests"]
    statement = json.loads((release / f"provenance/core-{machine()}.intoto.json").read_text())

    assert [one["artifactType"] for one in documents] == [
        "application/vnd.cyclonedx+json",
        "application/vnd.in-toto+json",
    ]
    assert [manifest(server, one["digest"])["subject"]["digest"] for one in documents] == [
        entry["digest"]
    ] * 2
    assert [f"sha256:{one['digest']['sha256']}" for one in statement["subject"]] == [entry["digest"]]
    assert f"kubefoundry/core:{VERSION}@{digest}\n" == (release / "digests.txt").read_text()


def manifest(server: Registry, digest: str) -> Any:
    return json.loads(run("crane", "manifest", f"{server.address}/core@{digest}"))


def unpacked(release: Path, name: str) -> Path:
    folder = release / "layouts" / f"{name}.test"
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run(["tar", "-xf", release / f"images/{name}-{VERSION}.tar", "-C", folder], check=True)
    return folder


def test_command_line_of_one_file_starts_twice(release: Path, tmp_path: Path) -> None:
    file = Path(shutil.copy(release / f"kubefoundry-{VERSION}.pyz", tmp_path / "kubefoundry"))
    environment = {"PATH": os.environ["PATH"], "XDG_CACHE_HOME": str(tmp_path / "cache")}

    outputs = [
        subprocess.run([sys.executable, str(file), *command], env=environment, capture_output=True, text=True)
        for command in (["images", "-o", "name"], ["compat", "--help"], ["start", "--help"])
    ]

    assert [done.returncode for done in outputs] == [0, 0, 0], outputs
    assert f"kubefoundry/core:{VERSION}" in outputs[0].stdout.splitlines()
    assert len(list((tmp_path / "cache" / "kubefoundry").iterdir())) == 1


def test_helm_renders_the_charts_of_the_release(release: Path, tmp_path: Path) -> None:
    helm = Helm(build(), tmp_path)

    for name in ("kubefoundry", "kubefoundry-crds"):
        packed = helm("template", name, str(release / f"charts/{name}-{VERSION}.tgz")).stdout
        assert packed == helm("template", name, str(ROOT / "charts" / name)).stdout


@pytest.mark.parametrize(
    ("change", "flags", "message"),
    [
        (None, ["--version=9.9.9"], r"VERSION=9.9.9, but the sources have version"),
        ("CHANGELOG.md", [], r"CHANGELOG.md does not begin with the section"),
        ("README.md", [], r"README.md has changes without a commit"),
        (None, ["--sign-key=missing"], r"SIGN_KEY=missing is not a file"),
    ],
)
def test_release_is_refused(
    checkout: Path, lock: Path, tmp_path: Path, change: str | None, flags: list[str], message: str
) -> None:
    if change:
        text = (checkout / change).read_text()
        (checkout / change).write_text(text.replace(" - 2026-", " - ") + "\n")

    done = make_release(checkout, tmp_path / "dist", lock, *flags)

    if change:
        (checkout / change).write_text(text)
    assert done.returncode == 1
    assert re.search(message, done.stderr)
    assert not (tmp_path / "dist").exists()
