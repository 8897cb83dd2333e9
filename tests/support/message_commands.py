"""Find commands and other remedies in the messages of the product's sources.

`python -m support.message_commands` (with PYTHONPATH=tests) prints all of them, grouped by class.
"""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kubefoundry_cli import advice
from kubefoundry_cli.main import COMMANDS

ROOT: Final = Path(__file__).resolve().parents[2]
FOLDERS: Final = ("sdk", "core", "selector", "providers", "cli", "dashboard", "llamastack")
HOLE: Final = "{}"
"""Placeholder for a computed part of a message."""

CALLS: Final = ("hint", "kubectl")
"""Functions that add the options of the running command to a suggested command. They also add the program."""

VERBS: Final = (
    *("annotate", "apply", "auth", "create", "delete", "describe", "edit", "get", "label", "logs"),
    *("patch", "rollout", "scale", "wait", "-n", HOLE),
)
COMMAND: Final = re.compile(
    rf"(?<![`\w])(kubectl (?:{'|'.join(map(re.escape, VERBS))})|kubefoundry (?:{'|'.join(COMMANDS)}))"
    r"(?![\w|])[^;:`\n()\"]*"
)
"""A command in a sentence, up to the end of its clause."""

REST: Final = re.compile(
    r"(, | (?:is|says|shows|lists|adds|does|or|of|and|in|with|has|would|to|first)\b|\.( |$)).*", re.S
)
"""The rest of the sentence after a command."""

IMPERATIVE: Final = re.compile(
    r"(?:^|[;:.(]|,| or| and| then) *(add|annotate|apply|ask|change|check|choose|contact|copy|correct|create|declare|"
    r"delete|drop|free|give|grant|install|keep|list|log in|look|lower|move|name|pass|put|raise|reduce|remove|rename|"
    r"repeat|replace|report|request|restart|restore|scale|see|set|shorten|show|simplify|start|state|try|uninstall|"
    r"update|upgrade|use|wait|write)\b(?! ?[=:/({'])"
)
"""A clause that tells the reader to do something; the verb is the class of the remedy."""


@dataclass(frozen=True, order=True, slots=True)
class Site:
    """A command in a message.

    Attributes:
        module: The file without `src/kubefoundry_` and `.py`.
        command: The command in the source, with `{}` for each computed part.
    """

    module: str
    command: str

    @property
    def key(self) -> str:
        """Return the key of the site in SITES."""
        return f"{self.module}: {self.command}"

    @property
    def pattern(self) -> re.Pattern[str]:
        """Return a pattern of the command in a message, with the options that `hint` adds."""
        words = r"[^\s;,<]+".join(map(re.escape, self.command.split(HOLE)))
        if self.module.startswith("cli/"):
            words = words.replace(r"kubectl\ ", r"kubectl (?:-n \S+ )?")
        return re.compile(rf"{words}(?: (?:-n|--context|--kubeconfig) [^\s;,)'<]+)*")


def text_of(node: ast.expr) -> str:
    """Return the text of an expression, `{}` for each part that is computed."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(map(text_of, node.values))
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return text_of(node.left) + text_of(node.right)
    return HOLE


def sources() -> Iterator[tuple[str, ast.Module]]:
    """Yield name and parsed code of each module of the product."""
    for path in sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        if "src" in parts and "templates" not in parts:
            package = parts[parts.index("src") + 1].removeprefix("kubefoundry_")
            yield "/".join((package, *parts[parts.index("src") + 2 :])), ast.parse(path.read_text())


def texts(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield line and text of each string that is no docstring. The parts of an f-string are one text."""
    nodes = [*ast.walk(tree)]
    inner = {id(part) for node in nodes if isinstance(node, ast.JoinedStr) for part in node.values}
    inner |= {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    inner |= {id(node.value) for node in nodes if isinstance(node, ast.keyword) and node.arg == "help"}
    for node in nodes:
        if id(node) in inner or not isinstance(node, ast.JoinedStr | ast.Constant):
            continue
        if isinstance(node, ast.JoinedStr) or isinstance(node.value, str):
            yield node.lineno, text_of(node)


def sites() -> list[Site]:
    """Return every command in a message of the product."""
    commands = set()
    for module, tree in sources():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in CALLS:
                program = "kubefoundry" if node.func.id == "hint" else "kubectl"
                if module != "cli/advice":
                    commands.add(Site(module, f"{program} {text_of(node.args[0])}"))
        for _, text in texts(tree):
            for match in COMMAND.finditer(text):
                if module != "cli/hint":
                    commands.add(Site(module, REST.sub("", match[0]).strip()))
    templates = [template for reasons in advice.ADVICE.values() for template in reasons.values()]
    for template in (*templates, advice.ADOPTION):
        for command in advice.COMMAND.findall(template):
            words = re.sub(r"\b(NAME|PROVIDER|KIND)\b", HOLE, command)
            commands.add(Site("cli/advice", f"kubefoundry {words}"))
    return sorted(commands)


SITES: Final = {site.key: site for site in sites()}


def command_in(message: str, key: str) -> list[str]:
    """Return the words of the site's command in the message. Fail if the message does not have it."""
    match = SITES[key].pattern.search(message)
    assert match is not None, f"{key} is not in: {message}"
    return shlex.split(match[0])


def imperatives() -> Iterator[tuple[str, str, int, str]]:
    """Yield class, module, line and text of each message that tells the reader to do something."""
    for module, tree in sources():
        for line, text in texts(tree):
            if " " in text and (match := IMPERATIVE.search(text)):
                yield match[1], module, line, text


def main() -> None:
    """Print the list."""
    for key in SITES:
        print("command", key)
    for verb, module, line, text in sorted(imperatives()):
        print(f"{verb:10} {module}:{line}: {text}")


if __name__ == "__main__":
    main()
