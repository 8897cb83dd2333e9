"""Messages of log lines are constant, and values stand beside them: a search finds all lines of a kind."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

import kubefoundry_sdk

ROOT: Final = Path(kubefoundry_sdk.__file__).parent
MODULES: Final = sorted(
    path.relative_to(ROOT).as_posix()
    for package in ("_runtime", "_provider")
    for path in (ROOT / package).rglob("*.py")
    if "getLogger" in path.read_text()
)


@pytest.mark.parametrize("module", MODULES)
def test_log_messages_are_constant(module: str) -> None:
    calls = list(_calls(ast.parse((ROOT / module).read_text())))

    assert [ast.unparse(call) for call in calls if not _is_constant(call)] == []


def _calls(tree: ast.AST) -> Iterator[ast.Call]:
    """Yield the calls of `log`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func).startswith("log."):
            yield node


def _is_constant(call: ast.Call) -> bool:
    """Check whether the message is a text without values. `log.log` has the level before it."""
    assert isinstance(call.func, ast.Attribute)
    message = call.args[1:] if call.func.attr == "log" else call.args
    return len(message) == 1 and isinstance(message[0], ast.Constant)
