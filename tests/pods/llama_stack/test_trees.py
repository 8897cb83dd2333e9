"""What providers install, on real roots with real pip: one tree whatever surrounds it, and none that is half new."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kubefoundry_nodes.kubelet.image import Image
from pods.images import provider
from pods.llama_stack.chain import Chain

pytestmark = [pytest.mark.integration, pytest.mark.thorough]


@pytest.fixture(scope="module")
def built(
    opponents: dict[str, tuple[provider.Files, list[Path]]], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, tuple[provider.Files, list[Path]]]:
    """Sources and wheels of providers: two that need other versions of one package, two of one namespace package."""
    names = {f"my-org-{letter}": f"my_org.{letter}" for letter in "ab"}
    sources = [
        provider.in_namespace_package(provider.scaffolded("inference", name), name, package)
        for name, package in names.items()
    ]
    made = provider.wheels(sources, tmp_path_factory.mktemp("built"))
    return opponents | {
        name: (files, [wheel]) for name, files, wheel in zip(names, sources, made, strict=True)
    }


def image(name: str, folder: Path, built: Any) -> Image:
    files, wheels = built[name]
    return provider.image(f"example.com/{name}:1", folder, files["lls-provider-spec.yaml"], wheels)


SURROUNDINGS = (
    ({"PYTHONHASHSEED": "1", "TZ": "UTC", "LC_ALL": "C", "SOURCE_DATE_EPOCH": "1"}, "022"),
    ({"PYTHONHASHSEED": "4711", "TZ": "Asia/Kathmandu", "LC_ALL": "C.UTF-8"}, "077"),
)
"""Variables and umask. The clock itself cannot be set for one root alone; the tool's own tests move it."""


@pytest.mark.accept("NFR-002")
def test_two_fresh_roots_end_in_one_tree(
    chain: Callable[[], Chain], built: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file system in memory lists a folder in the order in which it was written; times of files differ, too."""
    hashes, listings = [], []
    with tempfile.TemporaryDirectory(dir="/dev/shm") as memory:
        for number, (env, umask) in enumerate(SURROUNDINGS):
            pod = chain()
            for provider_id in ("left", "my-org-a", "my-org-b"):
                files, wheels = built[provider_id]
                folder = Path(memory) / str(number) / provider_id
                order = wheels if number else list(reversed(wheels))
                used = image(provider_id, folder, {provider_id: (files, order)})
                for path in folder.rglob("*"):
                    os.utime(path, (number * 10**9, number * 10**9))
                listings.append([path.name for path in (folder / "lls-provider" / "packages").iterdir()])
                ended = pod.install(used, provider_id, env=env, umask=umask)
                assert ended.code == 0, ended.log
            hashes.append(pod.tree())
            with capsys.disabled():
                print(f"\ntree of {', '.join(pod.images)}: {hashes[-1]}  {env}, umask {umask}")

    assert listings[0] != listings[3]
    assert hashes[0] == hashes[1]


@pytest.mark.accept("FR-015", "FR-024", "SC-006")
def test_conflict_leaves_the_tree_alone(chain: Callable[[], Chain], built: Any, tmp_path: Path) -> None:
    pod = chain()
    assert pod.install(image("left", tmp_path / "left", built), "left").code == 0
    before = pod.tree()

    ended = pod.install(image("right", tmp_path / "right", built), "right")

    assert ended.code == 1, ended.log
    assert "Code: DependencyConflict" in ended.message
    assert pod.tree() == before


@pytest.mark.accept("FR-013", "FR-005", "PF-02")
def test_two_providers_of_one_namespace_package_are_both_loaded(
    chain: Callable[[], Chain], built: Any, tmp_path: Path
) -> None:
    pod = chain()
    for provider_id in ("my-org-a", "my-org-b"):
        assert pod.install(image(provider_id, tmp_path / provider_id, built), provider_id).code == 0
    merged = pod.merge()

    ended = pod.preflight()

    assert merged.code == 0, merged.log
    assert ended.code == 0, ended.log
    assert "external providers: 2" in ended.log
