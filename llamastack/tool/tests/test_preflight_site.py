"""Tests platform and dependencies of providers next to the distribution's. Nothing is imported."""

from __future__ import annotations

import pytest

from support.provider_images import shared_object
from support.provider_server import GOOD, Server, changed

pytestmark = pytest.mark.integration


@pytest.mark.accept("SC-005", "PF-07")
def test_preflight_finds_foreign_code_before_imports(server: Server) -> None:
    server.provide(
        changed(provider="raise SystemExit('imported')", core="") | {"acme_echo/core.so.1": shared_object(8)}
    )

    ended = server.preflight()

    assert ended.code == 1
    assert "Code: WrongArchitecture" in ended.message
    assert "acme_echo/core.so.1 is built for processor 8" in ended.message
    assert "Provider: echo\nModule: acme_echo\nImage: images/echo:1\n" in ended.message


@pytest.mark.accept("SC-005", "PF-07")
def test_preflight_finds_wheel_for_other_python(server: Server) -> None:
    server.provide(
        changed(provider="raise SystemExit('imported')"), tag_inside="cp27-cp27m-manylinux2014_x86_64"
    )

    assert "Code: WrongPlatform" in server.preflight().message


@pytest.mark.accept("FR-024", "SC-006", "PF-09")
@pytest.mark.parametrize(
    ("requires", "distribution", "code", "phrase"),
    [
        (
            ["not-there>=1"],
            {},
            "DependencyMissing",
            "acme-echo 1.0.0 of provider 'echo' requires not-there>=1",
        ),
        (["common>=2"], {"common": "1.0"}, "DependencyConflict", "common 1.0 of the distribution image"),
        (["common<2", "common>=1"], {"common": "1.0"}, "", ""),
    ],
    ids=["missing", "excluded", "met"],
)
def test_preflight_reports_missing_dependency(
    server: Server, requires: list[str], distribution: dict[str, str], code: str, phrase: str
) -> None:
    server.distribution(**distribution)
    server.provide(GOOD, requires=requires)

    ended = server.preflight()

    assert ended.code == (1 if code else 0), ended.log
    assert f"Code: {code}" in ended.message or not code
    assert phrase in ended.message


@pytest.mark.accept("FR-024", "SC-006", "PF-09")
def test_preflight_reports_broken_base_package(server: Server) -> None:
    server.distributed("server-part", "1.0", "acme-echo>=2")

    ended = server.preflight()

    assert "Code: DependencyConflict" in ended.message
    assert "server-part 1.0 of the distribution image requires acme-echo>=2" in ended.message
    assert "Image: images/echo:1" in ended.message


def test_preflight_ignores_problems_of_base_alone(server: Server) -> None:
    server.distributed("server-part", "1.0", "not-there", "other<1")
    server.distributed("other", "2.0")

    assert server.preflight().code == 0


@pytest.mark.accept("NFR-004")
def test_preflight_refuses_module_that_shadows_base(server: Server) -> None:
    server.distributed("common", "1.0")
    (server.root / "site" / "common.py").write_text("WHOSE = 'distribution'\n")
    sees = "import common\nassert common.WHOSE == 'provider', common.__file__\n"
    server.provide({"common.py": "WHOSE = 'provider'\n"}, "common", version="2.0")
    server.provide(changed(provider=sees + str(GOOD["acme_echo/provider.py"])))

    ended = server.preflight()

    assert ended.code == 0, ended.log
    assert "shadows-base: common 2.0" in ended.log
    assert "replaces common 1.0" in ended.log


@pytest.mark.accept("NFR-004", "PF-09")
def test_preflight_warns_about_replaced_base_package(server: Server) -> None:
    server.distributed("acme_echo", "0.5")

    ended = server.preflight()

    assert ended.code == 0
    assert "shadows-base: acme-echo 1.0.0 of provider 'echo' replaces acme-echo 0.5" in ended.log
