"""Documents that repeat what is in the code agree with it."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest
import yaml

from kubefoundry_direct import provider as direct
from kubefoundry_sdk._api import validation
from kubefoundry_sdk._api.reasons import REASONS
from kubefoundry_sdk._provider.reconcile.compatibility import check
from kubefoundry_sdk.testing.generated import deployment

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
QUICKSTART = ROOT / "examples" / "quickstart"


def test_field_references_are_current() -> None:
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


def test_conditions_page_explains_every_reason() -> None:
    explained = sections((DOCS / "conditions.md").read_text())

    assert {type_: explained.get(type_) for type_ in REASONS} == {
        type_: set(reasons) for type_, reasons in REASONS.items()
    }


def test_contract_lists_every_reason() -> None:
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
def test_links_have_targets(document: Path) -> None:
    targets = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", document.read_text())

    assert [target for target in targets if not (document.parent / target).exists()] == []


def test_readme_model_is_the_quickstarts() -> None:
    [text] = re.findall(r"^```yaml\n(.*?)^```$", (ROOT / "README.md").read_text(), flags=re.M | re.S)

    assert text == (QUICKSTART / "qwen-small.yaml").read_text(), "what is shown is not what is applied"


@pytest.mark.parametrize("file", sorted(QUICKSTART.glob("*.yaml")), ids=lambda path: path.stem)
def test_quickstart_files_are_accepted_by_direct(file: Path) -> None:
    text = file.read_text()
    spec = yaml.safe_load(text)["spec"]

    assert f"```yaml\n{text}```" in (DOCS / "quickstart.md").read_text()
    assert list(validation.validate(spec)) == []
    assert check(direct.with_defaults(), deployment(spec, file.stem), None).problems == ()


def test_architecture_names_existing_files() -> None:
    named = set(re.findall(r"`(?:[\w/…]*/)?(\w+\.py)`", (DOCS / "architecture.md").read_text()))
    there = {path.name for path in ROOT.glob("*/src/**/*.py")} | {
        path.name for path in ROOT.glob("providers/*/src/**/*.py")
    }

    assert named - there == set()
