"""`python docs/words.py`: no text of this repository has a word that the list in CONTRIBUTING.md replaces.

Prose, messages and names alike: between two words of an entry may be a space, an underscore or the end of a line.
The name of a test starts with what is tested, not with an article, and has at most 60 characters.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
LIST: Final = ROOT / "CONTRIBUTING.md"

GAP: Final = r"(?:[ _]|\s*\n[ \t]*(?:#|//|\|)?[ \t]*)"
"""Between two words."""

SPARED: Final = re.compile(
    r"^(?:CONTRIBUTING\.md|CHANGELOG\.md|LICENSE|requirements/.*|.*\.(?:sum|mod|tsv|json)|docs/benchmarks\.md)$"
)
"""The list itself, files by others, and figures of an earlier run."""

ENTRY: Final = re.compile(r"^\| ((?:`[^`]+`(?:, )?)+) \| ([^|]+) \|$", re.M)

TEST_NAME: Final = re.compile(r"^\s*(?:async )?def (test_\w+)", re.M)
LONGEST_TEST_NAME: Final = 60


def replaced(text: str) -> dict[str, str]:
    """Return each word of the list with its replacement.

    Raises:
        ValueError: The text has no list.
    """
    _, _, section = text.partition("\n## Words\n")
    words = {
        word: instead.strip()
        for entry, instead in ENTRY.findall(section)
        for word in re.findall("`(.+?)`", entry)
    }
    if not words:
        raise ValueError("there is no list of words below `## Words`")
    return words


def find_words(text: str, words: dict[str, str]) -> Iterator[tuple[int, str, str]]:
    """Yield line, word and replacement for each of the words in a text."""
    for word, instead in words.items():
        pattern = r"(?<![A-Za-z])" + GAP.join(map(re.escape, word.split())) + r"(?![A-Za-z])"
        for match in re.finditer(pattern, text, re.IGNORECASE):
            yield text.count("\n", 0, match.start()) + 1, word, instead


def find_test_names(text: str) -> Iterator[tuple[int, str, str]]:
    """Yield line, name and remedy for each test whose name starts with an article or is too long."""
    for match in TEST_NAME.finditer(text):
        line = text.count("\n", 0, match.start(1)) + 1
        if re.match("test_(?:an?|the)_", match[1]):
            yield line, match[1], "the name without its article"
        elif len(match[1]) > LONGEST_TEST_NAME:
            yield line, match[1], f"at most {LONGEST_TEST_NAME} characters"


def files() -> Iterator[Path]:
    """Yield the files that git tracks, and the new files that it does not ignore."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        check=True,
    ).stdout
    for name in sorted(set(listed.decode().split("\0"))):
        path = ROOT / name
        if name and not SPARED.match(name) and path.is_file() and not path.is_symlink():
            yield path


def main() -> int:
    words = replaced(LIST.read_text(encoding="utf-8"))
    texts = problems = 0
    for path in files():
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        texts += 1
        names = find_test_names(text) if path.suffix == ".py" else ()
        for line, word, instead in sorted([*find_words(text, words), *names]):
            problems += 1
            print(f"{path.relative_to(ROOT)}:{line}: {word!r}: write {instead}")
    print(f"{len(words)} words, {texts} files, {problems} found")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
