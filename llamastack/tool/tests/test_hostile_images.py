"""Tests `install` against hostile images: each has a code, a cause and a remedy, and nothing is installed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from llamastack_providers import cli, layout
from support.hostile_image_variants import IMAGE_VARIANTS
from support.hostile_images import IMAGES
from support.hostile_runs import BEYOND_LINT, ID, code, linted, source
from support.provider_images import image
from support.provider_pod import Ended, Pod
from support.unfit_images import UNFIT

pytestmark = pytest.mark.integration


@pytest.mark.accept("HP-8")
@pytest.mark.parametrize("name", IMAGES)
def test_install_refuses_hostile_image(begun: Pod, tmp_path: Path, name: str) -> None:
    case = IMAGES[name]
    pod = begun.copied(tmp_path / "pod")
    before = pod.tree()
    source = image(tmp_path / "echo")
    case.change(source)

    ended = pod.install(source, "my-echo")

    if not case.code:
        assert ended.code == 0, ended.log
        return
    assert ended.code == 1, ended.log
    for word in (f"Code: {case.code}\n", "Provider: my-echo\n", "Resolution: ", *case.words):
        assert word in ended.message, ended.log
    assert "Traceback" not in ended.message
    assert pod.tree() == before


@pytest.mark.accept("HP-8")
@pytest.mark.parametrize("name", IMAGE_VARIANTS)
def test_install_refuses_variants_of_hostile_image(
    begun: Pod, tmp_path: Path, name: str, umask: None
) -> None:
    """The variants run in this process, where most cost a hundredth of a start."""
    case = IMAGE_VARIANTS[name]
    pod = begun.copied(tmp_path / "pod")
    before = pod.tree()
    log = pod.places.at(layout.TERMINATION_LOG)
    log.parent.mkdir(parents=True, exist_ok=True)

    exit_code = cli.main(pod.install_arguments(source(tmp_path, case), ID))

    message = log.read_text()
    assert code(Ended(exit_code, "", message)) == case.code, message
    if case.code:
        for word in (f"Provider: {ID}\n", "Image: images/echo:1\n", "Resolution: ", *case.words):
            assert word in message
        assert pod.tree() == before


@pytest.mark.accept("HP-4", "HP-8")
@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", [*IMAGES, *IMAGE_VARIANTS, *UNFIT])
def test_lint_agrees_with_install_on_hostile_image(tmp_path: Path, name: str) -> None:
    case = {**IMAGES, **IMAGE_VARIANTS, **UNFIT}[name]

    assert linted(source(tmp_path, case)) == ("" if case.code in BEYOND_LINT else case.code)


@pytest.fixture
def umask() -> Iterator[None]:
    """Restore the umask that the tool sets."""
    before = os.umask(0o022)
    yield
    os.umask(before)
