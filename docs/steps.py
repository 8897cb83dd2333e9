"""`make docs`: the steps of a reconcile in docs/contract.md, from the docstrings of the code's own list."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from kubefoundry_sdk._provider.reconcile.reconciler import STEPS

DOCS: Final = Path(__file__).resolve().parent
BEGIN: Final = (
    "<!-- generated from sdk/src/kubefoundry_sdk/_provider/reconcile/reconciler.py: make docs -->\n"
)
END: Final = "<!-- end of the steps -->\n"


def steps() -> str:
    """Return the table of steps, as it is in contract section 4.

    Raises:
        ValueError: The number in a docstring is not the position of its step.
    """
    lines = ["| step | |", "|---|---|"]
    for position, step in enumerate(STEPS, 1):
        number, text = numbered(step.__doc__ or "")
        if number != position:
            raise ValueError(f"step {position} is numbered {number}: {text}")
        lines.append(f"| {number} | {text} |")
    return "\n".join(lines) + "\n"


def numbered(docstring: str) -> tuple[int, str]:
    """Return the number at the beginning of a docstring, and all of its text as one line.

    Raises:
        ValueError: The docstring has no number.
    """
    match = re.fullmatch(r"(\d+)\. (.+)", " ".join(docstring.split()))
    if match is None:
        raise ValueError(f"does not begin with a number: {docstring}")
    return int(match[1]), match[2]


def contract(text: str) -> str:
    """Return docs/contract.md with the steps of the code."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}{steps()}{END}{after}"


def main() -> None:
    page = DOCS / "contract.md"
    page.write_text(contract(page.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
