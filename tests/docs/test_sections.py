"""Every citation of a section in this repository leads to one: a reader is never sent to a text that is not here."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

import pytest

ROOT: Final = Path(__file__).resolve().parents[2]
DOCUMENTS: Final = {"contract": ROOT / "docs" / "contract.md", "sources": ROOT / "docs" / "sources.md"}
ACCEPTANCE: Final = ROOT / "llamastack" / "acceptance.txt"

CITED: Final = re.compile(
    r"\b(?P<document>[\w./-]+)[\s#`*]+(?P<sections>§\s?\d+(?:\.\d+)*(?:(?:,|;| and| to)[\s#]+§\s?\d+(?:\.\d+)*)*)"
)
"""A document and one section of it, or several; a line break and the `#` of a comment may appear between."""
DEMANDED: Final = re.compile(r"\b(?:FR-\d{3}a?|NFR-\d{3}|SC-\d{3})\b")
TEXTS: Final = (".md", ".py", ".yaml", ".toml", ".go", ".txt", ".sh", "Makefile", "Dockerfile")
NOT_OURS: Final = ("requirements/", "docs/llamastack/crd-reference.md")
HERE: Final = Path(__file__).relative_to(ROOT).as_posix()


class Citation(NamedTuple):
    """Where something is cited, and what."""

    place: str
    document: str
    section: str


def texts() -> Iterator[tuple[str, str]]:
    """Path and text of each file that people wrote."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    ).stdout.split("\n")
    for name in listed:
        if (
            name.endswith(TEXTS)
            and not name.startswith(NOT_OURS)
            and name != HERE
            and (ROOT / name).is_file()
        ):
            yield name, (ROOT / name).read_text(encoding="utf-8")


def citations(name: str, text: str) -> list[Citation]:
    """Every section sign of a text, with the document that it belongs to (`?` where none is named)."""
    found: list[Citation] = []
    known: set[int] = set()
    for match in CITED.finditer(text):
        place = f"{name}:{text.count(chr(10), 0, match.start()) + 1}"
        document = match["document"].rpartition("/")[2].removesuffix(".md").lower()
        for section in re.finditer(r"§\s?(\d+(?:\.\d+)*)", match["sections"]):
            known.add(match.start("sections") + section.start())
            found.append(Citation(place, document, section[1]))
    loose = [sign.start() for sign in re.finditer("§", text) if sign.start() not in known]
    return found + [Citation(f"{name}:{text.count(chr(10), 0, at) + 1}", "?", "") for at in loose]


def sections(document: str) -> set[str]:
    """Numbers of the headings of one of our documents, and of the rows of the tables below them."""
    found: set[str] = set()
    chapter = ""
    for line in DOCUMENTS[document].read_text(encoding="utf-8").splitlines():
        if heading := re.match(r"## (\d+)\. ", line):
            chapter = heading[1]
            found.add(chapter)
        elif row := re.match(r"\| (\d+(?:\.\d+)?) \|", line):
            found.add(row[1] if "." in row[1] else f"{chapter}.{row[1]}")
    return found


def test_cited_section_exists() -> None:
    known = {document: sections(document) for document in DOCUMENTS}

    cited = [one for name, text in texts() if "§" in text for one in citations(name, text)]

    print(f"{len(cited)} citations of sections")
    lost = [one for one in cited if one.section not in known.get(one.document, ())]
    assert len(cited) > 100
    assert not lost, "\n".join(f"{one.place}: {one.document} §{one.section}" for one in lost)


def test_cited_demand_is_listed() -> None:
    listed = set(DEMANDED.findall(ACCEPTANCE.read_text(encoding="utf-8")))

    cited = {(name, demand) for name, text in texts() for demand in DEMANDED.findall(text)}

    assert not {(name, demand) for name, demand in cited if demand not in listed}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("as contract §4.14 says", [("contract", "4.14")]),
        ("(contract §4.2, §4.4, §4.12)", [("contract", "4.2"), ("contract", "4.4"), ("contract", "4.12")]),
        ("docs/sources.md §2.1", [("sources", "2.1")]),
        ("# of Ray (sources\n# §4.5)", [("sources", "4.5")]),
        ("design §3", [("design", "3")]),
        ("see (§4.10)", [("?", "")]),
    ],
)
def test_citation_is_recognised(text: str, expected: list[tuple[str, str]]) -> None:
    assert [(one.document, one.section) for one in citations("file", text)] == expected
