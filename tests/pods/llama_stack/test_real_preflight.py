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
from support.hostile_providers import HOSTILE, spec
from support.provider_server import GOOD, Server, changed

pytestmark = pytest.mark.integration


@dataclass(frozen=True, slots=True)
class Case:
    """files: of the provider. code: empty where it passes. words: of the log. entry: where its entry differs."""

    files: Mapping[str, str | bytes]
    code: str
    words: tuple[str, ...] = ()
    entry: Mapping[str, Any] = field(default_factory=dict)
    ids: tuple[str, ...] = ()


OPTIONAL = "try:\n    import not_there\nexcept ImportError:\n    pass\n" + str(GOOD["acme_echo/__init__.py"])
STRICT = """
from pydantic import BaseModel
class Config(BaseModel):
    port: int
async def get_adapter_impl(config, deps): ...
"""
CASES = {
    "passes": Case(GOOD, "", ("Preflight passed; external providers: 1",), ids=("PF-01", "PF-02")),
    "says another type at run time": Case(
        {**GOOD, **spec(provider_type='"remote::later"')},
        "",
        ("Field: provider_type", "Runtime (get_provider_spec()): remote::later", "Using: remote::later"),
        ids=("FR-026", "NFR-005", "SC-007", "PF-10"),
    ),
    "says another API": Case(
        {**GOOD, **spec(api='"safety"')}, "ApiDiffers", ids=("FR-026", "SC-007", "HP-3")
    ),
    "has an import that may fail": Case(changed(init=OPTIONAL), "", ids=("SC-008", "PF-08")),
    "has an import that fails": Case(
        changed(provider="import not_there\n"),
        "ImportFailed",
        ("Traceback", "not_there"),
        ids=("PF-03", "PF-04"),
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
    "is configured wrongly": Case(
        changed(init=STRICT), "ConfigRejected", ("config.port",), {"config": {"port": "x"}}, ids=("PF-11",)
    ),
    "hangs": Case({**GOOD, **HOSTILE["sleeps when it is imported"].files}, "TookTooLong", ids=("HP-2",)),
}


LOADED = """
import importlib, sys
for name in ("llama_stack.core.server.server", "llama_stack.core.stack"):
    importlib.import_module(name)
tops = {name.partition(".")[0] for name in sys.modules}
print(*(name for name in tops if "site-packages" in str(getattr(sys.modules.get(name), "__file__", None))))
"""
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
def test_lint_knows_every_module_that_the_server_loads(base: Image) -> None:
    """All but the compiled helpers of packages, whose names begin with an underscore."""
    loaded = chroot.run(base, ["python3", "-c", LOADED])

    found = {name for name in loaded.stdout.split() if not name.startswith("_")}
    assert len(found) > 20, loaded.stderr
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
def test_a_provider_that(chain: Callable[[], Chain], tool: Path, name: str) -> None:
    case, pod = CASES[name], chain()
    volumes = Server(pod.folder, tool)
    volumes.provide(case.files)
    volumes.configure(**case.entry)

    ended = pod.preflight(seconds=5 if case.code == "TookTooLong" else 60)

    assert ended.code == (1 if case.code else 0), ended.log
    if case.code:
        assert f"Code: {case.code}\n" in ended.message
        assert "Provider: echo\n" in ended.message
    for word in case.words:
        assert word in ended.log
    assert "it ran" not in ended.log
    assert pod.places.effective.exists() is not bool(case.code)
