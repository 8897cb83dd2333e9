"""The commands that a document tells its readers to run."""

from __future__ import annotations

import re
import shlex
from pathlib import Path


def document_commands(document: Path, section: str, *programs: str) -> list[list[str]]:
    """Return the words of each command of these programs in a section of a Markdown document."""
    [text] = re.findall(rf"^## {section}\n(.*?)(?=^## |\Z)", document.read_text(), re.M | re.S)
    lines = re.findall(rf"^    ((?:{'|'.join(programs)}) .*)$", text, re.M)
    assert lines, f"{document.name} has no command of {' or '.join(programs)} in the section {section}"
    return [shlex.split(line) for line in lines]
