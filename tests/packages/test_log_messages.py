"""Messages of log lines are constant, and values stand beside them: a search finds all lines of a kind."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Final

import pytest

from support.log_texts import LOG_TEXTS
from support.message_commands import sources

MODULES: Final = {name: tree for name, tree in sources() if "getLogger" in ast.unparse(tree)}


def test_every_component_has_log_lines() -> None:
    packages = {name.partition("/")[0] for name in MODULES}

    assert {"core", "sdk", "llamastack", "dashboard"} <= packages


@pytest.mark.parametrize("module", MODULES)
def test_log_messages_are_constant(module: str) -> None:
    calls = list(_calls(MODULES[module]))

    assert [ast.unparse(call) for call in calls if not _is_constant(call)] == []


@pytest.mark.parametrize("text", sorted(LOG_TEXTS))
def test_runbooks_name_texts_of_log_lines(text: str) -> None:
    messages = [str(_message(call)) for tree in MODULES.values() for call in _calls(tree)]

    assert [message for message in messages if text in message]


def _calls(tree: ast.AST) -> Iterator[ast.Call]:
    """Yield the calls of `log`."""
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Call)
            and ast.unparse(node.func).startswith("log.")
            and ast.unparse(node.func) != "log.addFilter"
        ):
            yield node


def _is_constant(call: ast.Call) -> bool:
    """Check whether the message is a text without values."""
    return len(_arguments(call)) == 1 and _message(call) is not None


def _message(call: ast.Call) -> str | None:
    """Return the message, None if it is computed."""
    message = next(iter(_arguments(call)), None)
    return str(message.value) if isinstance(message, ast.Constant) else None


def _arguments(call: ast.Call) -> list[ast.expr]:
    """Return message and values. `log.log` has the level before them."""
    assert isinstance(call.func, ast.Attribute)
    return call.args[1:] if call.func.attr == "log" else call.args
