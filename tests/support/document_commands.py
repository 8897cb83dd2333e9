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


def code_lines(document: Path) -> list[str]:
    """Return the lines of the document's code blocks, continued lines joined, without prompts and outputs.

    A block with prompts (`$ `) is a session: only its lines with a prompt are commands.
    """
    lines: list[str] = []
    for block in _blocks(document.read_text()):
        joined = re.sub(r"\\\n\s*", " ", block).splitlines()
        prompted = [line[2:] for line in joined if line.startswith("$ ")]
        lines += prompted or joined
    return lines


def _blocks(text: str) -> list[str]:
    """Return the fenced blocks, and the blocks that are indented by four spaces after an empty line."""
    fenced = re.findall(r"^```\w*\n(.*?)^```", text, re.M | re.S)
    rest = re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)
    indented = re.findall(r"(?<=\n\n)(?: {4}.*\n| *\n(?= {4}))+", rest)
    return fenced + [re.sub(r"^ {4}", "", block, flags=re.M) for block in indented]


def calls_of(line: str, program: str) -> list[list[str]]:
    """Return the arguments of each call of the program in a line of shell, without redirections and comments."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars="();<>|&`")
    lexer.whitespace_split = True
    calls: list[list[str]] = []
    current: list[str] | None = None
    first, redirected = True, False
    for word in lexer:
        if set(word) <= set("();<>|&`$"):
            redirected = set(word) <= set("<>")
            first = not redirected
            current = None
        elif first and Path(word).name == program:
            current, first = [], False
            calls.append(current)
        elif current is not None and not redirected:
            current.append(word)
        else:
            # A variable may precede a program, and the program is the first word that is not one.
            first = first and ("=" in word or word in ("do", "then", "if", "while", "sudo"))
    return calls
