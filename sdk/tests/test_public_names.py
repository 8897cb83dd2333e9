"""The public names of the SDK: each is documented, listed once, and imported at its first use."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib import import_module
from typing import Any, get_args, get_origin

import pytest

NAMESPACES = ("cel", "crd", "engine", "flags", "pod", "read_back", "selector", "spec", "status")
MODULES = ("kubefoundry_sdk", *(f"kubefoundry_sdk.{name}" for name in NAMESPACES))
PUBLIC = [(module, name) for module in MODULES for name in import_module(module).__all__]


def is_alias_or_constant(value: Any) -> bool:
    """Check whether a value cannot carry a docstring of its own."""
    return bool(get_origin(value) or get_args(value)) or isinstance(value, str | int | dict | list)


@pytest.mark.parametrize(("module", "name"), PUBLIC)
def test_public_name_has_a_docstring(module: str, name: str) -> None:
    value = getattr(import_module(module), name)

    if not is_alias_or_constant(value):
        text = value.__doc__ or ""
        # what dataclasses and pydantic write by themselves says nothing
        assert len(text) >= 15 and not text.startswith(f"{name}("), f"{name} has no docstring"


@pytest.mark.parametrize("module", MODULES)
def test_public_names_are_sorted_and_listed(module: str) -> None:
    names = import_module(module).__all__

    assert names == sorted(names, key=lambda name: (not name.isupper(), name.islower(), name))
    assert set(names) <= set(dir(import_module(module)))


def test_public_name_has_one_place() -> None:
    names = [name for module, name in PUBLIC if (module, name) not in SHARED]

    assert sorted(names) == sorted(set(names))


SHARED = {("kubefoundry_sdk.read_back", "text"), ("kubefoundry_sdk.read_back", "from_flags")}
"""Names that two namespaces have, each with a meaning of its own."""


@pytest.mark.parametrize("module", ["kubefoundry_sdk", "kubefoundry_sdk.selector"])
def test_unknown_name_is_refused(module: str) -> None:
    with pytest.raises(AttributeError, match="has no attribute 'Shop'"):
        import_module(module).Shop  # noqa: B018


def modules_after(statement: str) -> list[str]:
    """Return the modules that a statement imports in a new process."""
    program = (
        f"import sys, json; before = set(sys.modules); {statement}; "
        "print(json.dumps(sorted(set(sys.modules) - before)))"
    )
    done = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, check=True)
    imported: list[str] = json.loads(done.stdout)
    return imported


def test_importing_the_package_imports_nothing_else() -> None:
    heavy = ("pydantic", "aiohttp", "kubefoundry_sdk.")

    assert [name for name in modules_after("import kubefoundry_sdk") if name.startswith(heavy)] == []


@pytest.mark.parametrize("namespace", NAMESPACES)
def test_importing_a_namespace_imports_no_client(namespace: str) -> None:
    imported = modules_after(f"import kubefoundry_sdk.{namespace}")

    assert [name for name in imported if name.startswith(("aiohttp", "kubernetes"))] == []
