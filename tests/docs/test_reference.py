"""Documents that repeat what is in the code agree with it."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest
import yaml

from kubefoundry_sdk.api import validation
from kubefoundry_sdk.api.reasons import REASONS

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"


def test_the_field_references_are_those_of_the_crds() -> None:
    references = runpy.run_path(str(DOCS / "reference.py"))["references"]()

    assert len(references) == 2
    assert [path.name for path, text in references.items() if path.read_text() != text] == [], "make docs"


def sections(text: str) -> dict[str, set[str]]:
    """Of each `### Condition` the reasons that its table explains in the first column."""
    found: dict[str, set[str]] = {}
    for part in re.split(r"^### ", text, flags=re.M)[1:]:
        title, _, body = part.partition("\n")
        found[title.strip("` ")] = set(re.findall(r"^\| `(\w+)` \|", body, flags=re.M))
    return found


def test_every_reason_is_explained() -> None:
    explained = sections((DOCS / "conditions.md").read_text())

    assert {type_: explained.get(type_) for type_ in REASONS} == {
        type_: set(reasons) for type_, reasons in REASONS.items()
    }


def test_the_contract_lists_every_reason() -> None:
    listed = {
        type_: set(re.findall(r"`(\w+)`", cells))
        for type_, cells in re.findall(
            r"^\| `(\w+)` \|[^|]*\| (.*) \|$", (DOCS / "contract.md").read_text(), re.M
        )
        if type_ in REASONS
    }

    assert listed == {type_: set(reasons) for type_, reasons in REASONS.items()}


@pytest.mark.parametrize(
    "document",
    [ROOT / "README.md", *sorted(DOCS.glob("**/*.md"))],
    ids=lambda path: str(path.relative_to(ROOT)),
)
def test_links_lead_somewhere(document: Path) -> None:
    targets = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", document.read_text())

    assert [target for target in targets if not (document.parent / target).exists()] == []


def test_the_model_deployment_of_the_readme_is_valid() -> None:
    [text] = re.findall(r"^```yaml\n(.*?)^```$", (ROOT / "README.md").read_text(), flags=re.M | re.S)

    assert text == (ROOT / "examples" / "llama-8b.yaml").read_text(), "what is shown is not what is applied"
    assert list(validation.validate(yaml.safe_load(text)["spec"])) == []


def test_the_architecture_names_files_that_are_there() -> None:
    named = set(re.findall(r"`(?:[\w/…]*/)?(\w+\.py)`", (DOCS / "architecture.md").read_text()))
    there = {path.name for path in ROOT.glob("*/src/**/*.py")} | {
        path.name for path in ROOT.glob("providers/*/src/**/*.py")
    }

    assert named - there == set()
