"""A test executes every command in a message of the product, as the message prints it."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Final

import pytest

from support.message_commands import ROOT, SITES, Site, command_in, sources, texts

HERE: Final = Path(__file__).parents[1]

ELSEWHERE: Final = {
    "sdk/_provider/reconcile/recreate: kubectl -n {} delete {} {}": (
        "tests/integration/writes/test_exact_quota.py::test_command_in_the_refusal_makes_room"
    ),
    "cli/cluster: kubefoundry status": (
        "tests/integration/commands/test_users_of_a_namespace.py::test_errors_of_the_view_role_name_a_remedy"
    ),
    "cli/install/change: kubefoundry controller install": (
        "tests/integration/install/test_install.py::test_from_nothing_and_back"
    ),
    "cli/checks/versions: kubefoundry controller migrate": (
        "tests/integration/upgrade/test_api_versions.py::test_interrupted_move_is_named_and_completed"
    ),
    "cli/install/storage: kubefoundry controller migrate": (
        "tests/integration/upgrade/test_api_versions.py::test_failed_move_names_the_model_and_is_repeated"
    ),
    "cli/main: kubefoundry controller install": (
        "tests/integration/install/test_install.py::test_from_nothing_and_back"
    ),
    "cli/main: kubefoundry controller uninstall": (
        "tests/integration/install/test_install.py::test_from_nothing_and_back"
    ),
    "cli/permission: kubectl create {} {} --clusterrole={} {}": (
        "tests/integration/commands/test_commands_of_each_role.py::test_command_works_or_names_the_role"
    ),
    "llamastack/observe/own_pods: kubectl scale -n {} deployment {} --replicas=1": (
        "tests/integration/llamastack/test_own_pods.py::test_printed_remedy_starts_an_autoscaled_service_again"
    ),
    "dashboard/talk: kubefoundry logs {} -n {}": (
        "tests/integration/commands/test_demo.py::test_demo_model_answers_during_a_change"
    ),
}
"""Tests in other modules that execute the command of a message."""

NOT_EXECUTED: Final[dict[str, str]] = {}
"""Commands that no test executes, each with the reason."""


def executed() -> set[str]:
    """The keys in the tests of remedies, which execute each of theirs."""
    modules = list(HERE.glob("*/test_remedies*.py"))
    nodes = [node for path in modules for node in ast.walk(ast.parse(path.read_text()))]
    texts = {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    return texts & set(SITES)


TENANTS: Final = (
    "sdk/_provider/reconcile/",
    "sdk/_runtime/refusals",
    "core/decision",
    "core/provider_health",
    "selector/",
    "cli/advice",
)
"""Modules whose messages users of a namespace read, in the conditions of their ModelDeployments."""

FOR_ADMINISTRATORS: Final = re.compile(
    r"\b[Ii]nstall |\bgrant |\b[Cc]heck (?:that|the|why)\b.*(?:provider|controller|operator)|"
    r"look at the .*operator"
)
"""Remedies that take rights in the cluster."""


def test_remedy_for_administrators_says_so() -> None:
    found = [
        (module, line, text)
        for module, tree in sources()
        if module.startswith(TENANTS)
        for line, text in texts(tree)
        if FOR_ADMINISTRATORS.search(text) and "administrator" not in text
    ]

    assert found == []


def test_every_command_of_a_message_is_executed() -> None:
    missing = set(SITES) - executed() - set(ELSEWHERE) - set(NOT_EXECUTED)

    assert missing == set(), "execute it in tests/integration/commands/test_remedies*.py"


def test_exceptions_are_commands_of_messages_not_executed_here() -> None:
    exceptions = set(ELSEWHERE) | set(NOT_EXECUTED)

    assert exceptions <= set(SITES)
    assert exceptions & executed() == set()


@pytest.mark.parametrize("test", sorted(set(ELSEWHERE.values())))
def test_execution_elsewhere_exists(test: str) -> None:
    path, _, name = test.partition("::")

    assert f"def {name}(" in (ROOT / path).read_text()


@pytest.mark.parametrize(
    ("module", "command", "message", "words"),
    [
        (
            "cli/a",
            "kubefoundry scale {} 1",
            "none; kubefoundry scale m 1 -n t; more",
            "kubefoundry scale m 1 -n t",
        ),
        (
            "cli/a",
            "kubectl get pod {}",
            "see kubectl -n t get pod m --context c",
            "kubectl -n t get pod m --context c",
        ),
        ("sdk/a", "kubectl delete pod {}", "x: kubectl delete pod m, or y", "kubectl delete pod m"),
    ],
)
def test_command_is_taken_from_message_as_printed(
    monkeypatch: pytest.MonkeyPatch, module: str, command: str, message: str, words: str
) -> None:
    site = Site(module, command)
    monkeypatch.setitem(SITES, site.key, site)

    assert " ".join(command_in(message, site.key)) == words


def test_command_missing_in_message_is_an_error() -> None:
    with pytest.raises(AssertionError, match="is not in: all is well"):
        command_in("all is well", next(iter(SITES)))


def test_commands_of_all_origins_are_found() -> None:
    origins = {key.partition("/")[0] for key in SITES}

    assert origins >= {"cli", "core", "dashboard", "direct", "llamastack", "sdk"}
