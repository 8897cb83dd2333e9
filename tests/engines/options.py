"""Options of argument parsers, from their sources alone: neither engine can be imported without torch and a GPU.

What cannot be read this way is an error, so nothing is left out in silence.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, Literal

Form = Literal["value", "switch", "both"]
"""With a value; bare; bare and as `--no-FLAG` (argparse.BooleanOptionalAction)."""

Classes = Mapping[str, ast.ClassDef]

SWITCHES: Final = ("store_true", "store_false", "store_const", "DeprecatedStoreTrueAction")
DYNAMIC: Final = "FrontendArgs"
"""vLLM's class whose fields all become options, by a loop."""


def vllm(root: Path) -> dict[str, str]:
    """The form of each option, and the long name of each short one.

    root: the folder of the package (vllm/engine/arg_utils.py, entrypoints/openai/cli_args.py, config/)."""
    files = [
        root / "engine" / "arg_utils.py",
        root / "entrypoints" / "openai" / "cli_args.py",
        *sorted((root / "config").rglob("*.py")),
    ]
    classes = _classes(files)
    found: dict[str, str] = {}
    for file in files[:2]:
        tree = ast.parse(file.read_text())
        configs = _configs(tree)
        for call in _calls(tree):
            for flag in _flags(call):
                found[flag] = _form(call, configs, classes)
            found |= {short: _flags(call)[0] for short in _flags(call, r"-\w+")}
    for name, annotation in _fields(DYNAMIC, classes).items():
        found[f"--{name.replace('_', '-')}"] = "both" if _boolean(annotation) else "value"
    return found


def sglang(root: Path) -> dict[str, str]:
    """root: the folder of the package (sglang/srt/server_args.py)."""
    tree = ast.parse((root / "srt" / "server_args.py").read_text())
    [arguments] = [one for one in tree.body if isinstance(one, ast.ClassDef) and one.name == "ServerArgs"]
    found: dict[str, str] = {}
    for field in arguments.body:
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
            found.update(_annotated(field.target.id, field.annotation))
    for call in _calls(tree):
        for flag in _flags(call):
            found[flag] = _form(call, {}, {})
        found |= {short: _flags(call)[0] for short in _flags(call, r"-\w+")}
    return found


def _annotated(name: str, annotation: ast.expr) -> Iterator[tuple[str, Form]]:
    """Options of a field `A[type, "help"]` or `A[type, Arg(...)]` (sglang/srt/arg_groups/arg_utils.py)."""
    if not (isinstance(annotation, ast.Subscript) and ast.unparse(annotation.value) == "A"):
        return
    assert isinstance(annotation.slice, ast.Tuple)
    kind, *rest = annotation.slice.elts
    stated: dict[str, ast.expr] = {}
    for part in rest:
        if isinstance(part, ast.Call) and ast.unparse(part.func) == "Arg":
            stated = {word.arg: word.value for word in part.keywords if word.arg}
    if "no_cli" in stated:
        return
    own = ast.literal_eval(stated["cli_name"]) if "cli_name" in stated else f"--{name.replace('_', '-')}"
    aliases = ast.literal_eval(stated["aliases"]) if "aliases" in stated else []
    form: Form = "switch" if re.fullmatch(r"(Optional\[)?bool\]?", ast.unparse(kind)) else "value"
    if "action" in stated:
        form = _of_action(ast.unparse(stated["action"]))
    for flag in (own, *aliases):
        yield flag, form


def _classes(files: list[Path]) -> Classes:
    return {
        one.name: one
        for file in files
        for one in ast.walk(ast.parse(file.read_text()))
        if isinstance(one, ast.ClassDef)
    }


def _configs(tree: ast.Module) -> dict[str, str]:
    """Variables that `get_kwargs(Class)` was assigned to, and the class."""
    return {
        target.id: ast.unparse(one.value.args[0])
        for one in ast.walk(tree)
        if isinstance(one, ast.Assign) and isinstance(one.value, ast.Call)
        for target in one.targets
        if isinstance(target, ast.Name) and ast.unparse(one.value.func) == "get_kwargs"
    }


def _calls(tree: ast.Module) -> Iterator[ast.Call]:
    for one in ast.walk(tree):
        if (
            isinstance(one, ast.Call)
            and isinstance(one.func, ast.Attribute)
            and one.func.attr == "add_argument"
        ):
            yield one


def _flags(call: ast.Call, pattern: str = "--.*") -> list[str]:
    """Long names, or those that match; none for a positional argument, or a name that is made by a loop."""
    stated = [one.value for one in call.args if isinstance(one, ast.Constant)]
    return [one for one in stated if isinstance(one, str) and re.fullmatch(pattern, one)]


def _form(call: ast.Call, configs: Mapping[str, str], classes: Classes) -> Form:
    for word in call.keywords:
        if word.arg == "action":
            return _of_action(ast.unparse(word.value))
    for word in call.keywords:
        match word.value:
            case ast.Subscript(value=ast.Name(id=variable), slice=ast.Constant(value=str(field))) if (
                not word.arg
            ):
                return "both" if _boolean(_fields(configs[variable], classes)[field]) else "value"
    return "value"


def _of_action(text: str) -> Form:
    name = text.strip("'\"").rpartition(".")[2]
    if name == "BooleanOptionalAction":
        return "both"
    return "switch" if name in SWITCHES else "value"


def _fields(name: str, classes: Classes) -> dict[str, str]:
    """Annotations of the class's fields and of those that it inherits."""
    found: dict[str, str] = {}
    for base in classes[name].bases:
        if ast.unparse(base) in classes:
            found |= _fields(ast.unparse(base), classes)
    for field in classes[name].body:
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
            found[field.target.id] = ast.unparse(field.annotation)
    return found


def _boolean(annotation: str) -> bool:
    return re.search(r"\bbool\b", annotation) is not None
