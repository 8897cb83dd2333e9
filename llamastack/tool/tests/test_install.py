"""Tests the volume after `install`, and after a rerun."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from support.provider_images import image, wheel
from support.provider_pod import Pod

pytestmark = pytest.mark.integration

SCRIPT = {"acme_a-1.0.0.data/scripts/tool": "#!/bin/sh\n"}
"""A program in a wheel of acme-a, which pip puts into `bin`."""


@pytest.mark.accept("FR-013", "FR-014", "FR-022")
def test_install_writes_packages_and_metadata(pod: Pod, tmp_path: Path) -> None:
    source = image(tmp_path / "echo")

    ended = pod.install(source, "my-echo", config={"url": "http://x"}, order=0)

    assert ended.code == 0, ended.log
    assert pod.installed() == {"acme_echo/__init__.py", "acme_echo/provider.py"}
    metadata = pod.places.metadata / "my-echo"
    assert (metadata / "lls-provider-spec.yaml").read_bytes() == (
        source / "lls-provider-spec.yaml"
    ).read_bytes()
    assert yaml.safe_load((metadata / "crd-config.yaml").read_text()) == {
        "providerId": "my-echo",
        "api": "inference",
        "config": {"url": "http://x"},
        "image": "images/echo:1",
        "order": 0,
    }


def test_install_reports_package_and_version(pod: Pod, tmp_path: Path) -> None:
    ended = pod.install(image(tmp_path / "echo", version="1.4.0"), "my-echo")

    assert json.loads(ended.message) == {
        "package": "acme-echo",
        "version": "1.4.0",
        "providerType": "remote::acme-echo",
        "warnings": [],
    }


def test_install_writes_no_config_when_absent(pod: Pod, tmp_path: Path) -> None:
    pod.install(image(tmp_path / "echo"), "my-echo")

    assert "config" not in yaml.safe_load((pod.places.metadata / "my-echo" / "crd-config.yaml").read_text())


@pytest.mark.accept("FR-024a")
def test_manifest_names_each_package_per_provider(pod: Pod, tmp_path: Path) -> None:
    first, second = image(tmp_path / "a", "acme-a"), image(tmp_path / "b", "acme-b", version="2.0.0")
    for _ in range(2):
        pod.install(first, "a")
        pod.install(second, "b")
    pod.install(second, "b")

    lines = pod.places.manifest.read_text().splitlines()

    assert lines == [
        "acme-a==1.0.0  # provider a, image images/a:1",
        "acme-b==2.0.0  # provider b, image images/b:1",
    ]


@pytest.mark.accept("NFR-002")
def test_install_rerun_gives_same_tree(pod: Pod, tmp_path: Path) -> None:
    first, second = image(tmp_path / "a", "acme-a"), image(tmp_path / "b", "acme-b")
    for source, provider_id in ((first, "a"), (second, "b")):
        assert pod.install(source, provider_id).code == 0
    before = pod.tree()

    again = [
        pod.install(source, provider_id, env={"PYTHONHASHSEED": seed})
        for source, provider_id, seed in ((second, "b", "1"), (first, "a", "2"), (second, "b", "3"))
    ]

    assert [ended.code for ended in again] == [0, 0, 0]
    assert pod.tree() == before


def test_first_install_empties_tree(pod: Pod, tmp_path: Path) -> None:
    pod.install(image(tmp_path / "a", "acme-a"), "a")
    pod.install(image(tmp_path / "b", "acme-b"), "b")

    pod.install(tmp_path / "a", "a")

    assert pod.installed() == {"acme_a/__init__.py", "acme_a/provider.py"}
    assert [path.name for path in pod.places.metadata.iterdir()] == ["a"]


def test_install_removes_files_of_earlier_image(pod: Pod, tmp_path: Path) -> None:
    pod.install(image(tmp_path / "a", "acme-a"), "a")
    pod.install(
        image(tmp_path / "old", "acme-b", extra={"acme_b/old/gone.py": "", "acme_b/same.py": "1"}), "b"
    )

    ended = pod.install(
        image(tmp_path / "new", "acme-b", version="2.0.0", extra={"acme_b/same.py": "2"}), "b"
    )

    assert ended.code == 0, ended.log
    assert not (pod.places.packages / "acme_b" / "old").exists()
    assert (pod.places.packages / "acme_b" / "same.py").read_text() == "2"
    assert pod.places.manifest.read_text().count("acme-b==") == 1


@pytest.mark.accept("FR-013")
def test_providers_share_namespace_package(pod: Pod, tmp_path: Path) -> None:
    pod.install(image(tmp_path / "a", "my-org-a", package="my_org.a"), "a")
    ended = pod.install(image(tmp_path / "b", "my-org-b", package="my_org.b"), "b")

    assert ended.code == 0, ended.log
    assert {"my_org/a/provider.py", "my_org/b/provider.py"} <= pod.installed()


@pytest.mark.accept("HP-10")
@pytest.mark.parametrize(
    "init", [{"bin/__init__.py": ""}, {}], ids=["a package of both", "a namespace package"]
)
@pytest.mark.parametrize("name", ["one.py", "data", "deep/one.json"])
def test_providers_share_top_level_package_with_warning(
    pod: Pod, tmp_path: Path, init: dict[str, str], name: str
) -> None:
    """`bin` is also where pip puts scripts, and they may give way."""
    pod.install(image(tmp_path / "a", "acme-a", extra={**init, "bin/a.py": "", f"bin/a_{name}": "1"}), "a")
    ended = pod.install(
        image(tmp_path / "b", "acme-b", extra={**init, "bin/b.py": "", f"bin/b_{name}": "2"}), "b"
    )

    assert ended.code == 0, ended.log
    for path in ("a.py", f"a_{name}", "b.py", f"b_{name}"):
        assert (pod.places.packages / "bin" / path).exists(), path
    [warning] = json.loads(ended.message)["warnings"]
    assert "package 'bin'" in warning
    assert "provider 'a'" in warning


@pytest.mark.accept("HP-10")
@pytest.mark.parametrize("other_files", [{"bin/tool": "1"}, SCRIPT], ids=["their content", "their script"])
def test_package_content_never_yields_to_same_file_name(
    pod: Pod, tmp_path: Path, other_files: dict[str, str]
) -> None:
    pod.install(image(tmp_path / "a", "acme-a", extra=other_files), "a")
    before = pod.tree()

    ended = pod.install(image(tmp_path / "b", "acme-b", extra={"bin/tool": "2"}), "b")

    assert (ended.code, pod.tree()) == (1, before)
    assert "Code: FileClash" in ended.message
    assert "bin/tool" in ended.message


def test_script_yields_to_other_providers_with_warning(pod: Pod, tmp_path: Path) -> None:
    pod.install(image(tmp_path / "a", "acme-a", extra=SCRIPT), "a")
    own_files = {path.replace("acme_a", "acme_b"): f"{text}2" for path, text in SCRIPT.items()}

    ended = pod.install(image(tmp_path / "b", "acme-b", extra=own_files), "b")

    assert ended.code == 0, ended.log
    [warning] = json.loads(ended.message)["warnings"]
    assert "script bin/tool was not installed" in warning
    assert "provider 'a'" in warning


def test_providers_share_equal_dependency(pod: Pod, tmp_path: Path) -> None:
    for name in ("a", "b"):
        source = image(tmp_path / name, f"acme-{name}", requires=["acme-common==1.0"])
        wheel(source / "packages", "acme-common", "1.0")
        assert pod.install(source, name).code == 0

    # taking b back leaves what a needs
    assert pod.install(image(tmp_path / "c", "acme-b", version="3.0.0"), "b").code == 0
    assert "acme_common.py" in pod.installed()


@pytest.mark.parametrize(
    ("listed", "installed", "warned"),
    [
        (None, {"listed.py", "other.py"}, []),
        (["packages/listed-1.0.0-py3-none-any.whl"], {"listed.py"}, ["other-1.0.0"]),
    ],
    ids=["all of packages/", "what is listed"],
)
def test_install_selects_listed_wheels(
    pod: Pod, tmp_path: Path, listed: list[str] | None, installed: set[str], warned: list[str]
) -> None:
    source = image(tmp_path / "echo", dependency_wheels=listed)
    for name in ("listed", "other"):
        wheel(source / "packages", name)

    ended = pod.install(source, "my-echo")

    assert {path for path in pod.installed() if "/" not in path} == installed
    warnings = json.loads(ended.message)["warnings"]
    assert [name for name in warned if any(name in warning for warning in warnings)] == warned
    assert len(warnings) == len(warned)


def test_install_accepts_wheels_in_subfolders(pod: Pod, tmp_path: Path) -> None:
    source = image(tmp_path / "echo", dependency_wheels=["/lls-provider/more/extra-1.0.0-py3-none-any.whl"])
    wheel(source / "more", "extra")

    assert pod.install(source, "my-echo").code == 0
    assert "extra.py" in pod.installed()


@pytest.mark.accept("NFR-002", "FR-004", "NFR-001")
def test_install_ignores_surrounding_environment(pods: Callable[[str], Pod], tmp_path: Path) -> None:
    source = image(tmp_path / "echo", extra={f"acme_echo/part_{n}.py": str(n) for n in range(9)})
    wheel(source / "packages", "acme-common")
    (tmp_path / "pip.conf").write_text("[global]\ntarget = /nowhere\nindex-url = http://127.0.0.1:9/\n")
    settings = [
        {"PYTHONHASHSEED": "1", "TZ": "UTC"},
        {
            "PYTHONHASHSEED": "4711",
            "TZ": "Asia/Kathmandu",
            "LC_ALL": "C",
            "PIP_CONFIG_FILE": str(tmp_path / "pip.conf"),
        },
        {"PIP_TARGET": "/nowhere", "PIP_NO_BINARY": ":all:", "PYTHONPATH": str(tmp_path), "HOME": "/nowhere"},
    ]

    trees = set()
    for number, env in enumerate(settings):
        pod = pods(f"pod-{number}")
        ended = pod.install(source, "my-echo", env=env)
        assert ended.code == 0, ended.log
        trees.add(pod.tree())

    assert len(trees) == 1
