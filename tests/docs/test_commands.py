"""Each `kubefoundry` command of the documents is one that the parser accepts, and each named file exists."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import click
import pytest

from kubefoundry_cli.main import kubefoundry
from kubefoundry_local.control_plane import ROOT
from support.document_commands import calls_of, code_lines

DOCUMENTS: Final = sorted(
    {
        ROOT / "README.md",
        ROOT / "charts/kubefoundry/templates/NOTES.txt",
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / "examples").rglob("*.md"),
    }
    # a generated session, with commands that are refused, and Python with docstrings
    - {ROOT / "docs/cli-transcript.md", ROOT / "docs/sdk-reference.md"}
)

FILES: Final = re.compile(r"(?<![\w./-])(?:manifests|charts|examples|crds|dev)(?:/[\w.-]+)+(?<![.])")
"""A path from the top of the repository."""

OF_RELEASES: Final = re.compile(r"charts/kubefoundry(-crds)?-\d[\w.]*\.tgz")
"""A file of a release's folder."""


def lines() -> list[tuple[str, str]]:
    """Return path and text of each line of code in the documents."""
    return [
        (str(document.relative_to(ROOT)), text) for document in DOCUMENTS for text in code_lines(document)
    ]


REGISTRY: Final = "registry.example.com/kubefoundry"

COMMANDS: Final = [
    pytest.param([word.replace("$REGISTRY", REGISTRY) for word in call], id=f"{name} {' '.join(call)}"[:90])
    for name, text in lines()
    if re.search(r"\bkubefoundry [a-z]", text)
    for call in calls_of(text, "kubefoundry")
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in which a file exists that a command names but the repository does not have."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def parse(arguments: list[str]) -> None:
    """Parse a command as the program does, and do not run it. Raise click.UsageError."""
    command: click.Command = kubefoundry
    context: click.Context | None = None
    name = "kubefoundry"
    while True:
        context = command.make_context(name, list(arguments), parent=context)
        if not isinstance(command, click.Group):
            return
        rest = [*context._protected_args, *context.args]
        _, found, arguments = command.resolve_command(context, rest)
        assert found is not None
        command, name = found, str(found.name)


@pytest.mark.parametrize("arguments", COMMANDS)
def test_command_of_a_document_is_accepted(arguments: list[str], folder: Path) -> None:
    for word in arguments:
        if word.endswith((".yaml", ".yml")) and "://" not in word:
            target = folder / word
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text("{}")

    parse(arguments)


def test_documents_have_commands() -> None:
    assert len(COMMANDS) > 50


@pytest.mark.parametrize(
    "arguments", [["stats"], ["status", "--nowhere"], ["provider", "instal", "x"], ["scale", "m", "many"]]
)
def test_wrong_command_is_not_accepted(arguments: list[str]) -> None:
    with pytest.raises(click.UsageError):
        parse(arguments)


NAMED: Final = sorted(
    {
        (name, path)
        for name, text in lines()
        for path in FILES.findall(text)
        if not OF_RELEASES.fullmatch(path)
    }
)


@pytest.mark.parametrize(("document", "path"), NAMED, ids=[f"{name} {path}" for name, path in NAMED])
def test_file_that_a_document_names_exists(document: str, path: str) -> None:
    assert (ROOT / path).exists() or (ROOT / document).parent.joinpath(path).exists()
