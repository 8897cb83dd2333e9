"""Every `docker build` that a document names has all it needs in the context that .dockerignore leaves.

Read as Docker reads them: the last pattern that matches a path, or a folder above it, decides.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Final

import pytest

ROOT: Final = Path(__file__).resolve().parents[2]
DOCUMENTS: Final = (ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md")))


def builds() -> Iterator[dict[str, str]]:
    """The build arguments of each command, the loops around them unrolled."""
    for document in DOCUMENTS:
        text = re.sub(r"\\\n\s*", " ", document.read_text())
        for names, body in re.findall(r"for name in ([\w ]+); do\n(.*?)\n\s*done", text, re.S):
            for name in names.split():
                yield from commands(body.replace("$name", name))
        yield from commands(re.sub(r"for name in .*?\n\s*done", "", text, flags=re.S))


def commands(text: str) -> Iterator[dict[str, str]]:
    for line in re.findall(r"^\s*docker build (.*--build-arg.*)$", text, re.M):
        yield dict(re.findall(r"--build-arg (\w+)=(\S+)", line))


def admitted(path: str, patterns: list[str]) -> bool:
    """Whether a path is in the context."""
    parts = PurePosixPath(path).parts
    above = ["/".join(parts[:end]) for end in range(1, len(parts) + 1)]
    kept = True
    for pattern in patterns:
        expression = re.compile(
            re.escape(pattern.lstrip("!")).replace(r"\*\*/", "(?:.*/)?").replace(r"\*", "[^/]*")
        )
        if any(expression.fullmatch(one) for one in above):
            kept = pattern.startswith("!")
    return kept


def copied(arguments: dict[str, str]) -> list[str]:
    """What the first stage of the Dockerfile copies out of the context."""
    values = {"FOLDER": arguments["COMPONENT"], **arguments}
    found = re.findall(r"^COPY (?!--from)(\S+) ", (ROOT / "Dockerfile").read_text(), re.M)
    return [re.sub(r"\$\{(\w+)\}", lambda match: values[match[1]], path).rstrip("/") for path in found]


BUILDS: Final = list(builds())
PATTERNS: Final = [
    line
    for line in (ROOT / ".dockerignore").read_text().splitlines()
    if line.strip() and not line.startswith("#")
]


def test_documents_build_every_component() -> None:
    named = {build["COMPONENT"] for build in BUILDS}

    assert named >= {
        "core",
        "selector",
        "llamastack",
        "provider-kaito",
        "provider-dynamo",
        "provider-kuberay",
    }


@pytest.mark.parametrize("arguments", BUILDS, ids=lambda arguments: arguments["COMPONENT"])
def test_build_context_has_all_copied_files(arguments: dict[str, str]) -> None:
    needed = [*copied(arguments), f"requirements/{arguments['COMPONENT']}.txt", "requirements/image.txt"]

    for path in needed:
        assert (ROOT / path).exists(), f"{path} is missing"
        files = list((ROOT / path).rglob("*.py")) or [ROOT / path]
        sources = [one.relative_to(ROOT).as_posix() for one in files if "tests" not in one.parts]
        lost = [one for one in sources if not admitted(one, PATTERNS)]
        assert not lost, f".dockerignore leaves out {lost[:3]}"


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("sdk/src/a.py", True),
        ("sdk/tests/test_a.py", False),
        ("dev/demo/src/a.py", False),
        ("providers/kaito/src/__pycache__/a.pyc", False),
        ("README.md", False),
    ],
)
def test_dockerignore_passes_only_copied_files(path: str, expected: bool) -> None:
    assert admitted(path, PATTERNS) is expected
