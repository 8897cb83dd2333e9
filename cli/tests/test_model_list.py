"""A list of models is read without the libraries of the other commands, and by the client where that cannot do."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from click.testing import Result

from support.deployments import GPU, model_deployment
from support.fake_server import Answers, serving

HEAVY: Final = {"aiohttp", "asyncio", "kubernetes", "pydantic", "requests"}
"""Packages that take more CPU to import than the rest of the command."""


def stored(name: str) -> dict[str, Any]:
    model = model_deployment(name, "models", GPU)
    model["metadata"] |= {"uid": name, "generation": 1, "resourceVersion": "1"}
    return model


class Paged(Answers):
    """Two pages of one model each."""

    def to(self, path: str) -> tuple[int, Any]:
        is_first = "continue=" not in path
        assert is_first or path.endswith("&continue=a%2Fb%3D")
        meta = {"resourceVersion": "1", **({"continue": "a/b="} if is_first else {})}
        return 200, {"metadata": meta, "items": [stored("first" if is_first else "second")]}


def single_page() -> Answers:
    answers = Answers()
    answers.objects = {"modeldeployments": [stored(f"m{number}") for number in range(2)]}
    return answers


@pytest.mark.parametrize("answers", [single_page(), Paged()], ids=["one page", "two pages"])
def test_list_of_models_imports_no_heavy_package(tmp_path: Path, answers: Answers) -> None:
    program = str(Path(sys.executable).with_name("kubefoundry"))

    with serving(answers, tmp_path) as kubeconfig:
        command = [
            sys.executable,
            "-X",
            "importtime",
            program,
            "status",
            "-A",
            "--kubeconfig",
            str(kubeconfig),
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=True)

    lines = [line for line in done.stderr.splitlines() if line.startswith("import time:")]
    imported = {line.rpartition("|")[2].strip().partition(".")[0] for line in lines}
    assert len(done.stdout.splitlines()) == 3
    assert {"click", "kubefoundry_cli"} <= imported
    assert imported & HEAVY == set()


def test_list_of_models_has_all_pages(call: Callable[..., Result], tmp_path: Path) -> None:
    with serving(Paged(), tmp_path) as kubeconfig:
        done = call("status", "-o", "json", "--kubeconfig", str(kubeconfig))

    assert [one["metadata"]["name"] for one in json.loads(done.stdout)["items"]] == ["first", "second"]


class Refusing(Answers):
    def to(self, path: str) -> tuple[int, Any]:
        return 403, {"kind": "Status", "code": 403, "reason": "Forbidden", "message": "you cannot list"}


@pytest.mark.parametrize("options", [(), ("--as", "ann")], ids=["oneself", "another user"])
def test_refused_list_has_the_words_of_the_server(
    call: Callable[..., Result], tmp_path: Path, options: tuple[str, ...]
) -> None:
    with serving(Refusing(), tmp_path) as kubeconfig:
        done = call("status", "--kubeconfig", str(kubeconfig), *options)

    assert (done.exit_code, done.stderr.splitlines()[0]) == (
        5,
        "error: cannot list ModelDeployments in namespace models: you cannot list",
    )


@pytest.mark.parametrize("package", ["kubefoundry_cli", "kubefoundry_dashboard"])
def test_models_are_listed_in_one_place(package: str) -> None:
    folder = Path(str(import_module(package).__file__)).parent
    listing = [
        path.name
        for path in sorted(folder.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in ("list", "pages")
        and any(isinstance(word, ast.Name) and word.id == "MODEL_DEPLOYMENTS" for word in node.args)
    ]

    assert listing == (["cluster.py"] if package == "kubefoundry_cli" else [])


def test_server_that_does_not_answer_is_named(call: Callable[..., Result], tmp_path: Path) -> None:
    with serving(Answers(), tmp_path) as kubeconfig:
        content = yaml.safe_load(kubeconfig.read_text())
    # the port is free again
    file = tmp_path / "closed"
    file.write_text(yaml.safe_dump(content))

    done = call("status", "--kubeconfig", str(file))

    assert (done.exit_code, "the API server does not answer" in done.stderr) == (4, True)
