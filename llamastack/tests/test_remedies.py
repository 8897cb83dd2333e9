"""Tests that each field that a message names exists in the CRD."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

import kubefoundry_llamastack
import llamastack_providers

ROOT = Path(__file__).resolve().parents[2]
CRD = ROOT / "crds" / "llamastack" / "llamastackdistributions.yaml"


def texts() -> Iterator[str]:
    """Yield all texts of the operator and of the tool in the pods that have a blank: messages, docstrings."""
    for package in (kubefoundry_llamastack, llamastack_providers):
        for path in Path(str(package.__file__)).parent.rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
                    yield node.value


def fields(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the fields below a part of the schema."""
    below: dict[str, Any] = schema.get("properties") or (schema.get("items") or {}).get("properties") or {}
    return below


def is_field(server: dict[str, Any], path: list[str]) -> bool:
    """Check whether the path is in the schema of spec.server. Anything may be below an open field."""
    for step in path:
        if server.get("x-kubernetes-preserve-unknown-fields"):
            return True
        if step not in fields(server):
            return False
        server = fields(server)[step]
    return True


def test_messages_name_only_fields_of_the_crd() -> None:
    [version] = yaml.safe_load(CRD.read_text())["spec"]["versions"]
    server = version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["server"]
    starts = "|".join(name for name in fields(server) if name != "distribution")

    named = {
        match[1] for text in texts() for match in re.finditer(rf"\b((?:{starts})(?:\.[a-z][A-Za-z]+)+)", text)
    }

    assert len(named) > 5
    assert not {path for path in named if not is_field(server, path.split("."))}
