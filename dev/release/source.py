"""The source of a release: its version, its commit, and whether the checkout can be released."""

from __future__ import annotations

import re
import subprocess
import tomllib
from dataclasses import dataclass
from typing import Final

from images.components import ROOT
from images.debian import Failure

VERSION_FILE: Final = ROOT / "sdk" / "pyproject.toml"
"""A test compares the versions of all other packages, charts and manifests with this one."""

CHANGELOG: Final = ROOT / "CHANGELOG.md"


@dataclass(frozen=True, slots=True)
class Source:
    """What is released. `time`: of the commit, in seconds since 1970."""

    version: str
    commit: str
    time: int


def source(version: str | None) -> Source:
    """Return the source of a release of that version; None for the version of the sources.

    Raises:
        Failure: The sources have another version, changes without a commit, or changes that belong to no release.
    """
    own = str(tomllib.loads(VERSION_FILE.read_text())["project"]["version"])
    if version not in (None, own):
        raise Failure(
            f"VERSION={version}, but the sources have version {own}; change it in {VERSION_FILE.relative_to(ROOT)} "
            "and everywhere that make check then names, or leave VERSION out"
        )
    if not is_dated(CHANGELOG.read_text(), own):
        raise Failure(
            f"CHANGELOG.md does not begin with the section '## {own} - YYYY-MM-DD'; if {own} is not released yet, "
            "rename the section Unreleased, else set the next version first (docs/release.md)"
        )
    if changed := _git("status", "--porcelain").splitlines():
        raise Failure(
            f"{changed[0].split(maxsplit=1)[-1]} has changes without a commit, and the provenance names the commit; "
            "commit or stash them"
        )
    return Source(own, _git("rev-parse", "HEAD"), int(_git("log", "-1", "--format=%ct")))


def is_dated(changelog: str, version: str) -> bool:
    """Check whether the first section of a changelog is that of the version, with a date."""
    first = re.search(r"^## .*$", changelog, re.M)
    return bool(first and re.fullmatch(rf"## {re.escape(version)} - \d{{4}}-\d\d-\d\d", first[0]))


def _git(*arguments: str) -> str:
    command = ["git", *arguments]
    return subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
