"""What preflight says of providers where the llama-stack that it asks is the real one: classes of specs, expansion of
variables and registry of provider types are those of release 0.7.3."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from kubefoundry_llamastack.render import tool as placed
from kubefoundry_nodes.kubelet import chroot
from kubefoundry_nodes.kubelet.image import Image
from llamastack_providers import layout, shadowing
from pods.llama_stack.chain import Chain
from pods.llama_stack.conftest import Release
from support.hostile_providers import spec
from support.provider_server import GOOD, Server, changed

pytestmark = [pytest.mark.integration, pytest.mark.thorough]


@dataclass(frozen=True, slots=True)
class Case:
    """files: of the provider. code: empty where it passes. words: of the log. entry: where its entry differs.

    Imports that fail, configurations that are wrong and providers that hang have whole pods: test_failures.py,
    test_changes.py, test_hostile.py.
    """

    files: Mapping[str, str | bytes]
    code: str
    words: tuple[str, ...] = ()
    entry: Mapping[str, Any] = field(default_factory=dict)
    ids: tuple[str, ...] = ()


OPTIONAL = "try:\n    import not_there\nexcept ImportError:\n    pass\n" + str(GOOD["acme_echo/__init__.py"])
CASES = {
    "says another type at run time": Case(
        {**GOOD, **spec(provider_type='"remote::later"')},
        "",
        ("Field: provider_type", "Runtime (get_provider_spec()): remote::later", "Using: remote::later"),
        ids=("FR-026", "NFR-005", "SC-007", "PF-10"),
    ),
    "says another API": Case(
        {**GOOD, **spec(api='"safety"')}, "ApiDiffers", ids=("FR-026", "SC-007", "HP-3")
    ),
    "has an import that may fail": Case(
        changed(init=OPTIONAL),
        "",
        ("Preflight passed; external providers: 1",),
        ids=("SC-008", "PF-01", "PF-02", "PF-08"),
    ),
    "has a spec that lacks a field": Case(
        changed(
            provider=str(spec()["acme_echo/provider.py"]).replace('config_class="acme_echo.Config", ', "")
        ),
        "SpecRaised",
        ("config_class",),
        ids=("PF-05",),
    ),
    "has no implementation": Case(changed(init="class Config: ...\n"), "Implementation", ids=("PF-06",)),
    "is for another processor": Case(
        {**GOOD, "acme_echo/core.so": b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x03\x00\x08\x00" + bytes(44)},
        "WrongArchitecture",
        ids=("PF-07",),
    ),
    "takes the place of pydantic": Case(
        {**GOOD, "pydantic/__init__.py": "raise SystemExit('it ran')\n"},
        "ModuleShadowed",
        ("pydantic", "in the distribution image"),
        ids=("HP-4", "PF-09"),
    ),
    "has a type of llama-stack": Case(
        {**GOOD, **spec(provider_type='"remote::vllm"')},
        "ProviderTypeTaken",
        ("llama-stack itself",),
        {"provider_type": "remote::vllm"},
        ids=("HP-1",),
    ),
}


REFUSED = """
import sys
sys.path.insert(0, sys.argv[1])
from llamastack_providers import record, shadowing, site
from llamastack_providers.layout import Layout
places = Layout()
records, base = record.read_all(places.metadata), site.base_path(places.packages)
print(*(one.reason.split()[0] for one in shadowing.of_the_server(places.packages, records, base)))
"""


@pytest.mark.accept("HP-4")
def test_lint_knows_every_module_that_the_server_loads(release: Release) -> None:
    """All but the compiled helpers of packages, whose names begin with an underscore."""
    found = {name for name in release.modules if not name.startswith("_")}
    assert len(found) > 20
    assert found - set(shadowing.SERVER_MODULES) == set()


@pytest.mark.accept("HP-4")
def test_what_lint_refuses_of_the_server_preflight_refuses_too(
    chain: Callable[[], Chain], tool: Path, base: Image
) -> None:
    pod = chain()
    Server(pod.folder, tool).provide({f"{name}/__init__.py": "" for name in shadowing.SERVER_MODULES})
    binds = {placed.ZIPAPP: tool, layout.EXTERNAL_PROVIDERS: pod.places.shared}

    done = chroot.run(base, ["python3", "-c", REFUSED, placed.ZIPAPP], binds)
    there = chroot.run(base, ["sh", "-c", "ls /opt/app-root/lib/python3*/site-packages"])

    in_image = {name.removesuffix(".py") for name in there.stdout.split()} & set(shadowing.SERVER_MODULES)
    assert set(done.stdout.split()) == in_image, done.stderr
    assert all(shadowing.in_a_server("acme-echo", [f"{name}/__init__.py"]) for name in in_image)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.accept(*case.ids)) for name, case in CASES.items()]
)
def test_preflight_reports_a_provider_that(chain: Callable[[], Chain], tool: Path, name: str) -> None:
    case, pod = CASES[name], chain()
    volumes = Server(pod.folder, tool)
    volumes.provide(case.files)
    volumes.configure(**case.entry)

    ended = pod.preflight()

    assert ended.code == (1 if case.code else 0), ended.log
    if case.code:
        assert f"Code: {case.code}\n" in ended.message
        assert "Provider: echo\n" in ended.message
    for word in case.words:
        assert word in ended.log
    assert "it ran" not in ended.log
    assert pod.places.effective.exists() is not bool(case.code)
