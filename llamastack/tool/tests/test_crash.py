"""Killed at any step, a rerun ends in the same tree: before and after every file move, and in a chain of containers.

A SIGKILL leaves what the file system holds at that moment, so one run that copies its volume at each step shows what
a kill at any of them leaves. Real kills prove that, and a state that several steps share is rerun once.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from support.provider_images import image, wheel
from support.provider_pod import Pod

pytestmark = pytest.mark.integration

AT_EACH_CALL = """
import itertools, os, shutil, signal, sys
_, system_call, killed_at, root, copies, *arguments = sys.argv
called, numbers = getattr(os, system_call), itertools.count(1)

def at(moment):
    if moment == killed_at:
        os.kill(os.getpid(), signal.SIGKILL)
    if copies:
        shutil.copytree(root, f"{copies}/{moment}", symlinks=True)

def watched(*places, **options):
    number = next(numbers)
    at(f"before-{number}")
    called(*places, **options)
    at(f"after-{number}")

setattr(os, system_call, watched)
from llamastack_providers.cli import main
sys.exit(main(arguments))
"""
"""Runs the tool. At the given moment of the given system call it is killed; at each, its pod is copied."""


def run(pod: Pod, script: str, *words: str) -> subprocess.CompletedProcess[str]:
    """Run Python code that starts the tool."""
    return subprocess.run(
        [pod.python, "-c", script, *words],
        env={**os.environ, "PYTHONPATH": str(pod.tool)},
        capture_output=True,
        text=True,
        check=False,
    )


def killed(pod: Pod, source: Path, provider_id: str, system_call: str, moment: str) -> None:
    """Kill the installation at the moment, for instance `after-3`."""
    arguments = pod.install_arguments(source, provider_id)
    done = run(pod, AT_EACH_CALL, system_call, moment, str(pod.root), "", *arguments)
    assert done.returncode == -signal.SIGKILL, done.stderr


def copied_at_each(
    pod: Pod, source: Path, provider_id: str, system_call: str, folder: Path
) -> dict[str, Pod]:
    """Install the provider, and return the pod as it was at each moment."""
    arguments = pod.install_arguments(source, provider_id)
    folder.mkdir()
    done = run(pod, AT_EACH_CALL, system_call, "", str(pod.root), str(folder), *arguments)
    assert done.returncode == 0, done.stderr
    return {path.name: Pod(path, pod.tool, dict(pod.images), pod.python) for path in folder.iterdir()}


def left(pod: Pod) -> str:
    """Return the content of the volume. The name of the staging directory is random."""
    [staging] = pod.shared.glob(".staging-*")
    staging.rename(pod.shared / ".staging-")
    return pod.tree()


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Return two providers that share a dependency."""
    folder = tmp_path_factory.mktemp("images")
    sources = []
    for name in ("a", "b"):
        source = image(folder / name, f"acme-{name}", requires=["acme-common==1.0"])
        wheel(source / "packages", "acme-common", "1.0")
        sources.append(source)
    return sources[0], sources[1]


@pytest.fixture(scope="module")
def begun(
    tmp_path_factory: pytest.TempPathFactory, tool: Path, python: str, images: tuple[Path, Path]
) -> Pod:
    """Return a pod whose first provider is installed, to be copied."""
    pod = Pod(tmp_path_factory.mktemp("begun") / "pod", tool, python=python)
    assert pod.install(images[0], "a").code == 0
    return pod


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory, begun: Pod, images: tuple[Path, Path]) -> Pod:
    """Return a pod whose providers are both installed undisturbed, to be copied and compared with."""
    pod = begun.copied(tmp_path_factory.mktemp("whole") / "pod")
    assert pod.install(images[1], "b").code == 0
    return pod


@pytest.mark.accept("NFR-002")
def test_install_rerun_repairs_kill_at_every_move(
    begun: Pod, whole: Pod, images: tuple[Path, Path], tmp_path: Path
) -> None:
    states = copied_at_each(
        begun.copied(tmp_path / "undisturbed"), images[1], "b", "replace", tmp_path / "states"
    )
    moves = len(states) // 2
    # the package and its metadata, then record, two YAML files and the manifest
    assert moves >= 8
    distinct: dict[str, list[str]] = {}
    for moment, pod in states.items():
        distinct.setdefault(pod.tree(), []).append(moment)
    # each move changes the tree
    assert len(distinct) > moves

    ends = {}
    for moments in distinct.values():
        again = states[moments[0]].copied(tmp_path / "again" / moments[0])
        ended = again.install(images[1], "b")
        assert ended.code == 0, (moments, ended.log)
        ends.update(dict.fromkeys(moments, again.tree()))

    assert [moment for moment, tree in ends.items() if tree != whole.tree()] == []
    # a kill leaves what the copies hold
    for moment in ("before-2", f"after-{moves - 2}"):
        pod = begun.copied(tmp_path / f"killed-{moment}")
        killed(pod, images[1], "b", "replace", moment)
        assert left(pod) == left(states[moment])


def test_install_rerun_repairs_kill_during_removal(
    whole: Pod, images: tuple[Path, Path], tmp_path: Path
) -> None:
    newer = image(tmp_path / "images" / "newer", "acme-b", version="2.0.0")
    undisturbed = whole.copied(tmp_path / "undisturbed")
    states = copied_at_each(undisturbed, newer, "b", "unlink", tmp_path / "states")

    # two modules of the older version and its metadata
    for moment in ("after-1", "after-3", "after-5"):
        pod = states[moment]
        assert pod.tree() not in (whole.tree(), undisturbed.tree())
        assert pod.install(newer, "b").code == 0
        assert pod.tree() == undisturbed.tree()


def test_install_rerun_with_other_image_removes_old_files(begun: Pod, tmp_path: Path) -> None:
    """A pod's image can be changed in place. The record names the files that the old image had moved."""
    newer = image(tmp_path / "images" / "newer", "acme-b", version="2.0.0")
    older = image(
        tmp_path / "images" / "older", "acme-b", extra={"acme_b/a_part.py": "", "acme_b/b_part.py": ""}
    )
    pod, undisturbed = begun.copied(tmp_path / "killed"), begun.copied(tmp_path / "undisturbed")
    killed(pod, older, "b", "replace", "after-10")
    assert (pod.places.packages / "acme_b" / "a_part.py").exists()

    assert pod.install(newer, "b").code == 0

    assert undisturbed.install(newer, "b").code == 0
    assert pod.tree() == undisturbed.tree()


def test_chain_rerun_repairs_kill_of_any_container(
    begun: Pod, whole: Pod, images: tuple[Path, Path], tmp_path: Path
) -> None:
    """A new sandbox of the pod runs every init container again on the same volume."""
    pod = begun.copied(tmp_path / "killed")
    killed(pod, images[1], "b", "replace", "after-5")

    assert pod.install(images[0], "a").code == 0
    assert pod.install(images[1], "b").code == 0

    assert pod.tree() == whole.tree()


@pytest.mark.accept("NFR-002")
def test_install_ignores_umask(
    pods: Callable[[str], Pod], begun: Pod, whole: Pod, images: tuple[Path, Path], tmp_path: Path
) -> None:
    strict, loose = pods("strict"), begun.copied(tmp_path / "loose")
    for pod, source, provider_id, mask in (
        (strict, images[0], "a", 0o077),
        (strict, images[1], "b", 0o077),
        (loose, images[1], "b", 0o000),
    ):
        command = [pod.python, str(pod.tool), *pod.install_arguments(source, provider_id)]
        assert subprocess.run(command, umask=mask, check=False, stdout=subprocess.DEVNULL).returncode == 0

    assert strict.tree() == whole.tree()
    assert loose.tree() == whole.tree()


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
def test_install_ignores_clock_and_directory_order(
    pods: Callable[[str], Pod], whole: Pod, images: tuple[Path, Path]
) -> None:
    pod = pods("pod")
    for source, provider_id, clock in ((images[0], "a", 0.0), (images[1], "b", time.time() + 10**8)):
        done = run(pod, SHUFFLES, str(clock), *pod.install_arguments(source, provider_id))
        assert done.returncode == 0, done.stderr

    assert pod.tree() == whole.tree()
