"""Tests that `preflight` loads providers as the server would load them."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from llamastack_providers import layout
from support.provider_server import FIELDS, GOOD, SPEC, Server, changed

pytestmark = pytest.mark.integration

STRICT = """
class Problem(Exception):
    def errors(self):
        about = {"type": "int_parsing", "msg": "Input should be a valid integer", "input": "hidden"}
        return [{"loc": ("port",), **about}]
class Config:
    def __init__(self, port=1, **values):
        if not isinstance(port, int):
            raise Problem(port)
async def get_adapter_impl(config, deps): ...
"""


@pytest.mark.accept("FR-005", "FR-027", "PF-01", "PF-02")
def test_preflight_writes_only_effective_config(
    server: Server,
) -> None:
    before = server.tree()

    ended = server.preflight()

    assert ended.code == 0, ended.log
    assert "Preflight passed; external providers: 1" in ended.log
    assert ended.message == ""
    assert server.tree() == before
    assert server.places.effective.read_bytes() == (server.places.config / "run.yaml").read_bytes()


REFUSED: dict[str, tuple[Mapping[str, str | bytes], str, tuple[str, ...]]] = {
    "no module": (
        {"elsewhere.py": ""},
        "ImportFailed",
        ("import acme_echo.provider: ModuleNotFoundError: No module named 'acme_echo'", "Traceback"),
    ),
    "an import that fails": (
        changed(
            provider="try:\n    import not_there\nexcept ImportError as e:\n    raise RuntimeError('first') from e\n"
        ),
        "ImportFailed",
        ("RuntimeError: first; from ModuleNotFoundError: No module named 'not_there'", "Traceback"),
    ),
    "an import that exits": (changed(provider="raise SystemExit(0)"), "ImportFailed", ("SystemExit",)),
    "an import that kills Python": (
        changed(provider="import os\nos._exit(3)"),
        "ProbeDied",
        ("exit code 3",),
    ),
    "an import that crashes": (
        changed(provider="import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)"),
        "ProbeDied",
        ("SIGSEGV",),
    ),
    "a syntax error": (changed(provider="def :"), "ImportFailed", ("SyntaxError",)),
    "no function": (changed(provider=""), "SpecFunction", ("get_provider_spec",)),
    "a function that raises": (
        changed(provider="def get_provider_spec():\n    return {}['x']\n"),
        "SpecRaised",
        ("KeyError: 'x'", "Traceback"),
    ),
    "a missing field": (
        changed(provider=SPEC.format('api="inference", provider_type="remote::acme-echo"')),
        "SpecRaised",
        ("config_class",),
    ),
    "an empty field": (
        changed(provider=SPEC.format(FIELDS.replace('"acme_echo"', "None"))),
        "SpecInvalid",
        ("that has no module",),
    ),
    "None": (changed(provider="def get_provider_spec(): ..."), "SpecInvalid", ("NoneType",)),
    "a wrong type": (changed(provider="def get_provider_spec(): return {}"), "SpecInvalid", ("dict",)),
    "an empty list": (changed(provider="def get_provider_spec(): return []"), "SpecInvalid", ("nothing",)),
    "no implementation": (
        changed(init="class Config: ..."),
        "Implementation",
        ("acme_echo has no function get_adapter_impl",),
    ),
    "no config class": (
        changed(provider=SPEC.format(FIELDS.replace("Config", "Missing"))),
        "ConfigClass",
        ("acme_echo.Missing",),
    ),
}


@pytest.mark.accept("FR-005", "FR-027", "PF-01", "PF-03", "PF-04", "PF-05", "PF-06", "NFR-003", "SC-009")
@pytest.mark.parametrize("name", REFUSED)
def test_preflight_reports_unloadable_provider(tmp_path: Path, tool: Path, python: str, name: str) -> None:
    files, code, phrases = REFUSED[name]
    server = Server(tmp_path / "pod", tool, python=python)
    server.distribution()
    server.provide(files)
    server.configure()

    ended = server.preflight()

    assert ended.code == 1, ended.log
    who = "Provider: echo\nModule: acme_echo\nImage: images/echo:1\nContainer: llama-stack\n"
    for phrase in (*phrases, who, f"Code: {code}", "Reason: ", "Resolution: "):
        assert phrase in ended.message
    assert not server.places.effective.exists()


@pytest.mark.accept("PF-03")
def test_preflight_stops_at_first_error(server: Server) -> None:
    mark = server.root / "looked"
    server.provide(changed(provider="raise ValueError('the first')"))
    server.provide({"later/provider.py": f"open({str(mark)!r}, 'w')\nraise ValueError('second')\n"}, "later")
    later = {"provider_id": "later", "provider_type": "remote::later", "module": "later"}
    config = yaml.safe_load((server.places.config / "run.yaml").read_text())
    config["providers"]["inference"].append(later)
    (server.places.config / "run.yaml").write_text(yaml.safe_dump(config))

    ended = server.preflight()

    assert "ValueError: the first" in ended.message
    assert "second" not in ended.log
    assert not mark.exists()


@pytest.mark.accept("SC-008", "PF-08")
def test_preflight_accepts_missing_optional_import(server: Server) -> None:
    server.provide(
        changed(
            init="try:\n    import not_there\nexcept ImportError:\n    pass\n"
            + str(GOOD["acme_echo/__init__.py"])
        )
    )

    assert server.preflight().code == 0


@pytest.mark.accept("FR-026", "NFR-005", "SC-007", "PF-10")
def test_preflight_warns_and_uses_runtime_value(server: Server) -> None:
    other_fields = FIELDS.replace("remote::acme-echo", "remote::later")
    server.provide(changed(provider=SPEC.format(other_fields)))

    ended = server.preflight()

    assert ended.code == 0, ended.log
    assert (
        "WARNING: Provider metadata mismatch (non-blocking)\n\nProvider: echo\n\nField: provider_type\n"
        "  Metadata (lls-provider-spec.yaml): remote::acme-echo\n"
        "  Runtime (get_provider_spec()): remote::later\n"
        "  Using: remote::later (runtime value)\n"
    ) in ended.log
    assert server.effective_types() == ["remote::nothing", "remote::later"]


@pytest.mark.accept("FR-026")
@pytest.mark.parametrize(
    ("types", "used"),
    [(["a", "acme-echo"], "remote::acme-echo"), (["later"], "remote::later"), (["a", "b"], "")],
    ids=["one of several", "the only one", "none of several"],
)
def test_preflight_chooses_spec_from_list(server: Server, types: list[str], used: str) -> None:
    specs = [f'RemoteProviderSpec(adapter_type="x", {FIELDS.replace("acme-echo", type_)})' for type_ in types]
    text = f"from llama_stack_api import *\ndef get_provider_spec():\n    return [{', '.join(specs)}]\n"
    server.provide(changed(provider=text))

    ended = server.preflight()

    if used:
        assert ended.code == 0, ended.log
        assert server.effective_types()[1] == used
    else:
        assert "Code: SpecInvalid" in ended.message
        assert "remote::a, remote::b" in ended.message


@pytest.mark.accept("PF-11")
def test_preflight_refuses_unknown_api(server: Server) -> None:
    server.configure("agents")

    ended = server.preflight()

    assert "Code: ApiUnknown" in ended.message
    assert "API 'agents' is not one of inference, safety" in ended.message


@pytest.mark.accept("PF-11")
def test_preflight_hides_values_of_rejected_config(server: Server) -> None:
    server.provide(changed(init=STRICT))
    server.configure(config={"port": "${env.PORT}"})

    ended = server.preflight(PORT="s3cr3t-value")

    assert "Code: ConfigRejected" in ended.message
    assert "config.port: Input should be a valid integer" in ended.message
    assert "s3cr3t-value" not in ended.log + ended.message
    assert "hidden" not in ended.log


@pytest.mark.parametrize("shown", ["os.environ['KEY']", "repr(os.environ['KEY'])"], ids=["plain", "quoted"])
def test_preflight_hides_values_of_variables(server: Server, shown: str) -> None:
    server.provide(changed(provider=f"import os\nraise ValueError('key is ' + {shown})"))
    server.configure(config={"key": "${env.KEY}"})

    ended = server.preflight(KEY="s3cr3t\\\nvalue")

    assert "${env.KEY}" in ended.message
    assert "s3cr3t" not in ended.log + ended.message


def test_preflight_accepts_yaml_only_values(server: Server) -> None:
    text = (server.places.config / "run.yaml").read_text()
    (server.places.config / "run.yaml").write_text(text.replace("http://x", "2024-01-01"))

    assert server.preflight().code == 0


@pytest.mark.accept("PF-11")
@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"config": {"key": "${env.NOT_SET}"}}, "EnvironmentMissing"),
        ({"config": {"key": "${env.NOT_SET:=x}"}}, ""),
        ({"provider_id": "${env.NOT_SET:+echo}", "config": {"port": "x"}}, ""),
        ({"module": "acme_echo==1.0.0"}, ""),
    ],
    ids=["missing", "a default", "a disabled provider", "a module with a version"],
)
def test_preflight_expands_variables(server: Server, changes: dict[str, Any], code: str) -> None:
    server.configure(**changes)

    ended = server.preflight()

    assert ended.code == (1 if code else 0), ended.log
    assert f"Code: {code}" in ended.message or not code


def test_preflight_refuses_image_without_llama_stack(tmp_path: Path, tool: Path, python: str) -> None:
    server = Server(tmp_path / "pod", tool, python=python)
    server.provide(GOOD)
    server.configure()

    ended = server.preflight()

    assert "Code: ServerMissing" in ended.message
    assert "No module named 'llama_stack_api'" in ended.message
    assert "Image: distribution:1" in ended.message


def test_broken_server_is_described_without_other_releases(server: Server) -> None:
    """OGX has no module of llama-stack: only its own broken dependency is the cause."""
    site = server.root / "site"
    shutil.rmtree(site / "llama_stack")
    (site / "llama_stack_api.py").unlink()
    (site / "ogx_api.py").write_text("import mcp\n")
    (site / "mcp.py").write_text("import not_there\n")
    (site / "ogx" / "core").mkdir(parents=True)
    for name in ("stack", "distribution"):
        (site / "ogx" / "core" / f"{name}.py").write_text("import ogx_api\n")

    ended = server.preflight()

    assert "Code: ServerMissing" in ended.message
    assert "Reason: ogx_api: ModuleNotFoundError: No module named 'not_there'" in ended.message
    assert "llama_stack" not in ended.message.partition("Reason: ")[2].partition("Resolution: ")[0]


def test_preflight_names_release_without_providers(server: Server) -> None:
    """This is checked before any provider runs: a valid provider would be blamed for the release."""
    server.distributed("llama_stack", "0.2.12")
    with (server.root / "site" / "llama_stack_api.py").open("a") as file:
        file.write('ProviderSpec.model_fields = {"api": None, "provider_type": None, "config_class": None}\n')

    ended = server.preflight()

    assert ended.code == 1, ended.log
    assert "Code: ServerTooOld" in ended.message
    assert "llama_stack 0.2.12" in ended.message
    assert "0.2.16 or newer" in ended.message
    assert "Loading provider" not in ended.log


def test_preflight_hides_own_packages_from_providers(server: Server) -> None:
    """The distribution of this test has neither."""
    where = "from importlib.util import find_spec\n" + "".join(
        f"assert find_spec('{name}') is None\n" for name in ("yaml", "packaging", "llamastack_providers")
    )
    server.provide(changed(provider=where + str(GOOD["acme_echo/provider.py"])))

    assert server.preflight().code == 0


def test_preflight_does_not_wait_for_leftover_threads(server: Server) -> None:
    forever = "import threading\nthreading.Thread(target=threading.Event().wait).start()\n"
    server.provide(changed(provider=forever + str(GOOD["acme_echo/provider.py"])))

    assert server.preflight().code == 0


def test_service_account_token_is_removed_from_message(server: Server) -> None:
    token = "eyJhbGciOiJSUzI1NiJ9.c3lzdGVtOnNlcnZpY2VhY2NvdW50.Zm9ya2VkLXNpZ25hdHVyZQ"
    path = server.places.at(layout.TOKEN)
    path.parent.mkdir(parents=True)
    path.write_text(f"{token}\n")
    server.provide(changed(provider=f"raise RuntimeError('Authorization: Bearer {token}')"))

    ended = server.preflight()

    assert ended.code == 1
    assert "Bearer (token of the ServiceAccount)" in ended.message
    assert token[5:13] not in ended.message
