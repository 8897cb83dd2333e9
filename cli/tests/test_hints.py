"""Commands in messages, help texts and pages: the parser accepts each, with the options of the place it came from."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import click
import pytest
from click.testing import CliRunner

from kubefoundry_cli import advice, cluster
from kubefoundry_cli.hint import hint, kubectl, name_namespaces
from kubefoundry_cli.main import COMMANDS, kubefoundry

ROOT: Final = Path(__file__).resolve().parents[2]
SOURCES: Final = [
    path
    for folder in ("cli", "dashboard", "core", "selector", "sdk", "providers", "dev/demo")
    for path in sorted((ROOT / folder).rglob("*.py"))
    if "src" in path.relative_to(ROOT).parts
]
TEMPLATES: Final = sorted((ROOT / "dashboard/src/kubefoundry_dashboard/templates").glob("*.html"))
COMMAND: Final = re.compile(rf"(?<!`)\bkubefoundry ((?:{'|'.join(COMMANDS)}) [^;:`\n<(\")]*)")
"""A command with arguments in prose, up to the end of its clause."""

REST: Final = re.compile(
    r"(, | (?:is|says|shows|lists|adds|does|or|of|and|in|with|has|would|to)\b|\.( |$)).*", re.S
)
"""The rest of the sentence behind a command."""

EXAMPLE: Final = re.compile(rf"^ *kubefoundry ((?:{'|'.join(COMMANDS)})\b.*?)(?: +# .*| > .*)?$", re.M)
"""A line of a help text that is a command."""


def parsed(line: str) -> None:
    """Parse a command line without the program's name as far as it goes without running. Raises click.UsageError."""
    command: click.Command = kubefoundry
    context, arguments = click.Context(kubefoundry, info_name="kubefoundry"), shlex.split(line)
    while isinstance(command, click.Group):
        name, found, arguments = command.resolve_command(context, arguments)
        assert name is not None and found is not None
        command, context = found, click.Context(found, context, info_name=name)
    command.make_context(command.name, arguments, parent=context.parent)


def text_of(node: ast.expr) -> str:
    """The text of an expression; `m` for each part that is computed."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(map(text_of, node.values))
    if isinstance(node, ast.BinOp):
        return text_of(node.left) + text_of(node.right)
    return "m"


def hints() -> Iterator[str]:
    """Arguments of `hint` in all sources, and the commands in ADVICE."""
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text())):
            called = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "hint"
            # advice.py has its commands in templates
            if called and path.name != "advice.py":
                yield text_of(node.args[0])  # type: ignore[attr-defined]
    for reasons in advice.ADVICE.values():
        for template in reasons.values():
            yield from (found[1] for found in advice.COMMAND.finditer(template))


def mentioned() -> Iterator[str]:
    """Commands with arguments in messages, help texts and templates that `hint` did not make."""
    texts = [path.read_text() for path in TEMPLATES]
    for path in SOURCES:
        texts += literals(ast.parse(path.read_text()))
    for text in texts:
        yield from EXAMPLE.findall(text)
        prose = (REST.sub("", found).strip() for found in COMMAND.findall(EXAMPLE.sub("", text)))
        yield from (command for command in prose if " " in command)


def literals(module: ast.Module) -> list[str]:
    """Return the strings of a module; a formatted string is one text."""
    nodes = [*ast.walk(module)]
    parts = {id(part) for node in nodes if isinstance(node, ast.JoinedStr) for part in node.values}
    strings = [node for node in nodes if isinstance(node, ast.JoinedStr | ast.Constant)]
    return [text_of(node) for node in strings if id(node) not in parts]


HINTS: Final = sorted(set(hints()))
MENTIONED: Final = sorted(set(mentioned()))


@pytest.mark.parametrize("line", HINTS)
def test_parser_accepts_each_hint(line: str) -> None:
    parsed(line)


@pytest.mark.parametrize("line", MENTIONED)
def test_parser_accepts_each_mentioned_command(line: str) -> None:
    parsed(line)


@pytest.mark.parametrize("line", ["provider install", "scale m", "nosuch", "status --nosuch"])
def test_parser_rejects_an_incomplete_hint(line: str) -> None:
    with pytest.raises(click.UsageError):
        parsed(line)


def test_hints_of_all_kinds_are_found() -> None:
    assert {"provider install PROVIDER", "status -A", "plan m --set PATH=VALUE"} <= {*HINTS}
    assert {"provider install kaito", "plan llama-8b --set engine.contextLength=16384"} <= {*MENTIONED}


@pytest.mark.parametrize(
    ("options", "command", "said"),
    [
        pytest.param([], "status m", "kubefoundry status m", id="nothing given"),
        pytest.param(["-n", "a"], "status m", "kubefoundry status m -n a", id="a namespace"),
        pytest.param(
            ["--context", "x y", "--kubeconfig", "k"],
            "status m",
            "kubefoundry status m --context 'x y' --kubeconfig k",
            id="a context with a blank",
        ),
        pytest.param(["-n", "a"], "status -A", "kubefoundry status -A", id="all namespaces"),
        pytest.param(
            ["-n", "a", "--context", "x"],
            "provider install kaito",
            "kubefoundry provider install kaito --context x",
            id="a command of no namespace",
        ),
    ],
)
def test_options_that_say_where_are_repeated(options: list[str], command: str, said: str) -> None:
    @click.command()
    @cluster.options
    def shows(target: cluster.Target) -> None:
        print(hint(command))

    assert CliRunner().invoke(shows, options).stdout.strip() == said


@pytest.mark.parametrize(
    ("options", "said"),
    [
        pytest.param([], "kubefoundry resume m", id="the context's namespace"),
        pytest.param(["-n", "b"], "kubefoundry resume m -n b", id="one namespace"),
        pytest.param(["-A"], "kubefoundry resume m -n b", id="all namespaces"),
    ],
)
def test_hint_names_the_namespace_of_the_model(options: list[str], said: str) -> None:
    @click.command()
    @click.option("-A", "everywhere", is_flag=True)
    @cluster.options
    def shows(everywhere: bool, target: cluster.Target) -> None:
        print(hint("resume m", "b"))

    assert CliRunner().invoke(shows, options).stdout.strip() == said


def test_hint_of_the_page_names_the_namespace_of_the_model() -> None:
    @click.command()
    @cluster.options
    def serves(target: cluster.Target) -> None:
        name_namespaces()
        print(hint("resume m", "b"))

    assert CliRunner().invoke(serves, ["-n", "a"]).stdout.strip() == "kubefoundry resume m -n b"


def test_command_of_kubectl_names_the_cluster() -> None:
    @click.command()
    @cluster.options
    def shows(target: cluster.Target) -> None:
        print(kubectl("-n a get pods"))

    options = ["-n", "b", "--context", "x", "--kubeconfig", "k"]
    assert CliRunner().invoke(shows, options).stdout.strip() == (
        "kubectl -n a get pods --context x --kubeconfig k"
    )
