"""Tests `preflight` against hostile providers: each is named with a code of its own, and no other is
affected."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.hostile_provider_variants import LINTED, PROVIDER_KINDS, PROVIDER_VARIANTS
from support.hostile_providers import HOSTILE, LOADING, PRYING, SECRETS, SHADOWING, TYPES
from support.hostile_runs import checked, linted
from support.provider_images import image
from support.provider_server import Server

pytestmark = pytest.mark.integration


@pytest.mark.parametrize(
    "name",
    [
        *(pytest.param(name, marks=pytest.mark.accept("HP-1")) for name in TYPES),
        *(pytest.param(name, marks=pytest.mark.accept("HP-2")) for name in LOADING),
        *(pytest.param(name, marks=pytest.mark.accept("HP-4")) for name in SHADOWING),
        *(pytest.param(name, marks=pytest.mark.accept("HP-6")) for name in PRYING),
        *PROVIDER_VARIANTS,
    ],
)
def test_preflight_names_hostile_provider(tmp_path: Path, tool: Path, python: str, name: str) -> None:
    case = {**HOSTILE, **PROVIDER_VARIANTS}[name]
    server = Server(tmp_path / "pod", tool, python=python)
    server.distributed("pydantic", "2.0", files={"pydantic/__init__.py": ""})
    server.distributed("PyYAML", "6.0", files={"yaml/__init__.py": ""})

    ended = checked(server, case)

    if not case.code:
        assert ended.code == 0, ended.log
        assert ended.message == ""
    else:
        assert ended.code == 1, ended.log
        assert f"Code: {case.code}\n" in ended.message
        assert f"Provider: {case.culprit}\n" in ended.message
        assert f"Image: images/{case.culprit}:1\n" in ended.message
    assert "it ran" not in ended.log
    for word in case.words:
        assert word in ended.message
    for variable in case.secret:
        for part in parts(SECRETS[variable]):
            assert part.lower() not in "".join((ended.message + ended.log).lower().split())


@pytest.mark.accept("HP-4", "HP-8")
@pytest.mark.parametrize("kind", LINTED)
def test_lint_agrees_with_preflight_on_hostile_provider(tmp_path: Path, kind: str) -> None:
    reported_codes = {
        name: linted(image(tmp_path / name, extra=case.files)) for name, case in PROVIDER_KINDS[kind].items()
    }

    assert reported_codes == {name: case.code for name, case in PROVIDER_KINDS[kind].items()}


def parts(secret: str) -> list[str]:
    """Return pieces of a secret that would reveal it."""
    flat = "".join(secret.split())
    return [flat[start : start + 8] for start in range(max(0, len(flat) - 7))]
