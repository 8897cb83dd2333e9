"""`install` against images that mean no good: a code, a cause and a remedy each, and nothing is placed."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.hostile_images import IMAGES
from support.provider_images import image
from support.provider_pod import Pod

pytestmark = pytest.mark.integration


@pytest.mark.accept("HP-8")
@pytest.mark.parametrize("name", IMAGES)
def test_an_image_with(begun: Pod, tmp_path: Path, name: str) -> None:
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


@pytest.mark.accept("HP-4", "HP-8")
@pytest.mark.parametrize("name", [name for name, case in IMAGES.items() if case.code])
def test_lint_says_the_same_of_an_image_with(tmp_path: Path, name: str) -> None:
    """In this process: it is the same code as the zipapp's."""
    from llamastack_providers import lint

    source = image(tmp_path / "echo")
    IMAGES[name].change(source)

    assert lint.main(source) == (0 if "checksums" in name else 1)
