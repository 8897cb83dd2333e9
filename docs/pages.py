"""Writes the pages of the site: every Markdown file at its path, and the files that they link to: make site.

A folder in a link becomes its README.md, or a list of its files if it has none.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from functools import partial
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
PAGES: Final = ROOT / "build" / "site" / "pages"
LINK: Final = re.compile(r"(\]\()(?!\w+:|#|/)([^)\s#]+)((?:#[^)\s]*)?\))")
"""A link or image of Markdown whose target is a path."""

LEFT_OUT: Final = ("tests/packages/released/", ".github/")


def main() -> None:
    """Write the pages."""
    shutil.rmtree(PAGES, ignore_errors=True)
    for name in tracked("*.md"):
        if not name.startswith(LEFT_OUT):
            page = PAGES / name
            page.parent.mkdir(parents=True, exist_ok=True)
            page.write_text(LINK.sub(partial(completed, folder=Path(name).parent), (ROOT / name).read_text()))


def completed(link: re.Match[str], folder: Path) -> str:
    """Return a link of a page in a folder, and write its target if the target is not a page itself."""
    start, path, end = link.groups()
    target = Path(os.path.normpath(folder / path))
    if (ROOT / target).is_dir():
        path, target = f"{path.rstrip('/')}/README.md", target / "README.md"
        if not (ROOT / target).is_file():
            write_list(target)
    elif target.suffix != ".md" and (ROOT / target).is_file():
        copy(target)
    return f"{start}{path}{end}"


def write_list(page: Path) -> None:
    """Write a page that lists the files of its folder."""
    names = tracked(f"{page.parent}/")
    for name in names:
        copy(Path(name))
    paths = [name.removeprefix(f"{page.parent}/") for name in names]
    lines = "".join(f"- [{path}]({path})\n" for path in paths)
    (PAGES / page).write_text(f"# {page.parent}\n\n{lines}")


def copy(name: Path) -> None:
    """Copy a file to its path among the pages."""
    (PAGES / name).parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(ROOT / name, PAGES / name)


def tracked(pattern: str) -> list[str]:
    """Return the files of the repository that match a pattern of git, without files that are not there."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", pattern]
    listed = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout
    return [name for name in listed.split("\0") if name and (ROOT / name).is_file()]


if __name__ == "__main__":
    main()
