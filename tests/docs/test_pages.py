"""The pages of the site: `docs/pages.py` completes links to folders and copies the files that pages link to."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any, Final

import pytest

ROOT: Final = Path(__file__).resolve().parents[2]


@pytest.fixture
def pages(tmp_path: Path) -> dict[str, Any]:
    """The functions of the program, which write below a folder of the test."""
    functions = runpy.run_path(str(ROOT / "docs" / "pages.py"))
    functions["completed"].__globals__["PAGES"] = tmp_path
    return functions


@pytest.mark.parametrize(
    ("link", "completed", "written"),
    [
        ("[a](install.md#uninstall-with-helm)", "[a](install.md#uninstall-with-helm)", set()),
        ("[a](https://example.com/docs)", "[a](https://example.com/docs)", set()),
        ("[a](../providers/direct)", "[a](../providers/direct/README.md)", set()),
        ("[a](overview.svg)", "[a](overview.svg)", {"docs/overview.svg"}),
        (
            "[a](../examples/selectors/)",
            "[a](../examples/selectors/README.md)",
            {"examples/selectors/README.md", "examples/selectors/by_cost.py"},
        ),
    ],
)
def test_link_leads_to_a_page_or_a_file(
    pages: dict[str, Any], tmp_path: Path, link: str, completed: str, written: set[str]
) -> None:
    result = pages["LINK"].sub(lambda match: pages["completed"](match, Path("docs")), link)

    files = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    assert result == completed
    assert written <= files
    assert bool(files) == bool(written)
