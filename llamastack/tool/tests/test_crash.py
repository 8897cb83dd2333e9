"""Killed at any step, a rerun ends in the same tree: real processes, SIGKILL, before and after every file move."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from support.provider_images import image, wheel
from support.provider_pod import Pod

pytestmark = [pytest.mark.integration, pytest.mark.apart]

CALLS_AND_DIES = """
import os, signal, sys
_, system_call, step, when, *arguments = sys.argv
called, number = getattr(os, system_call), 0

def counting(*places, **options):
    global number
    number += 1
    if (str(number), when) == (step, "before"):
        os.kill(os.getpid(), signal.SIGKILL)
    called(*places, **options)
    if (str(number), when) == (step, "after"):
        os.kill(os.getpid(), signal.SIGKILL)

setattr(os, system_call, counting)
from llamastack_providers.cli import main
code = main(arguments)
print(number, file=sys.stderr)
sys.exit(code)
"""
"""Runs the tool; kills the process at the given call of the given system call, or prints how many there were."""


def run(arguments: list[str], system_call: str, step: int, when: str) -> tuple[int, str]:
    command = [sys.executable, "-c", CALLS_AND_DIES, system_call, str(step), when, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stderr


@pytest.fixture
def images(tmp_path: Path) -> tuple[Path, Path]:
    """Two providers that share a dependency; the second of two versions of its own."""
    sources = []
    for name in ("a", "b"):
        source = image(tmp_path / "images" / name, f"acme-{name}", requires=["acme-common==1.0"])
        wheel(source / "packages", "acme-common", "1.0")
        sources.append(source)
    return sources[0], sources[1]


@pytest.fixture
def begun(pods: Callable[[str], Pod], images: tuple[Path, Path]) -> Pod:
    """A pod whose first provider is installed."""
    pod = pods("begun")
    assert pod.install(images[0], "a").code == 0
    return pod


@pytest.mark.accept("NFR-002")
def test_killed_at_every_move(begun: Pod, images: tuple[Path, Path], tmp_path: Path) -> None:
    undisturbed = begun.copied(tmp_path / "undisturbed")
    code, said = run(undisturbed.install_arguments(images[1], "b"), "replace", 0, "")
    moves, whole = int(said.split()[-1]), undisturbed.tree()
    assert code == 0
    # the package and its metadata, then record, two YAML files and the manifest
    assert moves >= 8

    def killed(step: int, when: str) -> str:
        pod = begun.copied(tmp_path / f"{when}-{step}")
        arguments = pod.install_arguments(images[1], "b")
        code, _ = run(arguments, "replace", step, when)
        assert code == -signal.SIGKILL
        code, said = run(arguments, "replace", 0, "")
        assert code == 0, said
        return pod.tree()

    with ThreadPoolExecutor(max_workers=2) as pool:
        steps = [(step, when) for step in range(1, moves + 1) for when in ("before", "after")]
        trees = list(pool.map(lambda one: killed(*one), steps))

    assert [step for step, tree in zip(steps, trees, strict=True) if tree != whole] == []


def test_killed_while_an_earlier_installation_is_taken_back(
    begun: Pod, images: tuple[Path, Path], tmp_path: Path
) -> None:
    newer = image(tmp_path / "images" / "newer", "acme-b", version="2.0.0")
    assert begun.install(images[1], "b").code == 0
    undisturbed = begun.copied(tmp_path / "undisturbed")
    assert run(undisturbed.install_arguments(newer, "b"), "unlink", 0, "")[0] == 0

    # two modules of the older version and its metadata
    for step in (1, 3, 5):
        pod = begun.copied(tmp_path / f"step-{step}")
        arguments = pod.install_arguments(newer, "b")
        assert run(arguments, "unlink", step, "after")[0] == -signal.SIGKILL
        assert run(arguments, "unlink", 0, "")[0] == 0
        assert pod.tree() == undisturbed.tree()


def test_killed_and_then_run_again_with_another_image(
    begun: Pod, images: tuple[Path, Path], tmp_path: Path
) -> None:
    """The image of a pod's container can be changed in place; what the old one had moved is known by its record."""
    newer = image(tmp_path / "images" / "newer", "acme-b", version="2.0.0")
    killed = begun.copied(tmp_path / "killed")
    older = image(
        tmp_path / "images" / "older", "acme-b", extra={"acme_b/a_part.py": "", "acme_b/b_part.py": ""}
    )
    assert run(killed.install_arguments(older, "b"), "replace", 10, "after")[0] == -signal.SIGKILL
    assert (killed.places.packages / "acme_b" / "a_part.py").exists()

    assert killed.install(newer, "b").code == 0

    assert begun.install(newer, "b").code == 0
    assert killed.tree() == begun.tree()


def test_a_kill_of_any_container_and_then_the_whole_chain_again(
    begun: Pod, images: tuple[Path, Path], tmp_path: Path
) -> None:
    """A new sandbox of the pod runs every init container again on the volume as it is."""
    killed = begun.copied(tmp_path / "killed")
    assert run(killed.install_arguments(images[1], "b"), "replace", 5, "after")[0] == -signal.SIGKILL
    assert begun.install(images[1], "b").code == 0

    assert killed.install(images[0], "a").code == 0
    assert killed.install(images[1], "b").code == 0

    assert killed.tree() == begun.tree()


@pytest.mark.accept("NFR-002")
def test_the_umask_changes_nothing(pods: Callable[[str], Pod], images: tuple[Path, Path]) -> None:
    trees = set()
    for name, mask in (("strict", 0o077), ("loose", 0o000)):
        pod = pods(name)
        for source, provider_id in zip(images, ("a", "b"), strict=True):
            arguments = pod.install_arguments(source, provider_id)
            command = [sys.executable, str(pod.tool), *arguments]
            assert subprocess.run(command, umask=mask, check=False, stdout=subprocess.DEVNULL).returncode == 0
        trees.add(pod.tree())

    assert len(trees) == 1


SHUFFLES = """
import os, random, sys, time
listed, scanned = os.listdir, os.scandir

class Shuffled(list):
    def __enter__(self): return self
    def __exit__(self, *_): pass

def shuffled(entries):
    entries = list(entries)
    random.shuffle(entries)
    return entries

os.listdir = lambda *place: shuffled(listed(*place))
os.scandir = lambda *place: Shuffled(shuffled(scanned(*place)))
time.time = lambda: float(sys.argv[1])
from llamastack_providers.cli import main
sys.exit(main(sys.argv[2:]))
"""
"""Runs the tool on a file system that lists its folders in any order, at another time."""


@pytest.mark.accept("NFR-002")
def test_clock_and_directory_order_change_nothing(
    pods: Callable[[str], Pod], images: tuple[Path, Path]
) -> None:
    trees = set()
    for clock in (0.0, time.time() + 10**8):
        pod = pods(f"at-{clock:.0f}")
        for source, provider_id in zip(images, ("a", "b"), strict=True):
            command = [
                sys.executable,
                "-c",
                SHUFFLES,
                str(clock),
                *pod.install_arguments(source, provider_id),
            ]
            assert subprocess.run(command, check=False, stdout=subprocess.DEVNULL).returncode == 0
        trees.add(pod.tree())

    assert len(trees) == 1
