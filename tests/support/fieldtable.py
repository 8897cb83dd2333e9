"""Read the field table of a provider's README, and compare the code with it.

The table has the header `| Field | Variant | Class | Detail |`:

- Field: a leaf field of contract §2 in backticks, `engine.args`. A value with a class of its own is added:
  `engine.trustRemoteCode: false`.
- Variant: kinds of this provider's upstream objects (`preset`, `v1beta1`, ...), separated by commas, or `all`.
- Class: `honoured`, `refused` or `meaningless`.
- Detail: an honoured field begins with the paths of its value, in backticks and separated by commas (see
  `support.paths`). A refused field has its message in double quotes, with `{word}` for any text. A meaningless field
  has the reason.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, get_args

from kubefoundry_conformance.fields import FIELDS
from kubefoundry_sdk._provider.contract import Provider, Rendered
from support.paths import values_at

HEADER: Final = ("Field", "Variant", "Class", "Detail")

FieldClass = Literal["honoured", "refused", "meaningless"]


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the table. `field` has no backticks; `line` counts from 1."""

    field: str
    variants: tuple[str, ...]
    klass: FieldClass
    detail: str
    line: int

    @property
    def leaf(self) -> str:
        """Return the field without its value."""
        return self.field.split(":", 1)[0]

    def covers(self, variant: str) -> bool:
        """Check whether the row is about the variant."""
        return variant in self.variants or "all" in self.variants


@dataclass(frozen=True, slots=True)
class Sample:
    """Two specs (JSON) that differ only in the field, or value, of a row."""

    base: Mapping[str, Any]
    changed: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Promise:
    """An honoured field with its sample, which the provider accepts in this variant."""

    field: str
    variant: str
    subject: Provider
    sample: Sample


def read(readme: Path) -> list[Row]:
    """Return the rows of the field table in a file.

    Raises:
        ValueError: The table is missing or malformed.
    """
    rows: list[Row] = []
    inside = False
    for number, line in enumerate(readme.read_text(encoding="utf-8").splitlines(), 1):
        cells = [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line.strip())[1:-1]]
        if tuple(cells) == HEADER:
            inside = True
        elif not cells:
            inside = False
        elif inside and not all(re.fullmatch(r":?-+:?", cell) for cell in cells):
            rows.append(_row(cells, readme, number))
    if not rows:
        raise ValueError(f"{readme} has no table | {' | '.join(HEADER)} |")
    return rows


def _row(cells: list[str], readme: Path, line: int) -> Row:
    if len(cells) != len(HEADER) or cells[2] not in get_args(FieldClass) or not cells[3]:
        raise ValueError(f"{readme}:{line}: not a row of {', '.join(HEADER)}: {cells}")
    variants = tuple(part.strip().strip("`") for part in cells[1].split(","))
    return Row(cells[0].strip("`"), variants, cells[2], cells[3], line)  # type: ignore[arg-type]


def gaps(rows: Iterable[Row], variants: Sequence[str]) -> list[str]:
    """Return messages about fields without a class for a variant, and about unknown fields and variants."""
    rows = list(rows)
    messages = [
        f"{field} has no class for {variant}"
        for field in FIELDS
        for variant in variants
        if not any(row.leaf == field and row.covers(variant) for row in rows)
    ]
    for row in rows:
        if row.leaf not in FIELDS:
            messages.append(f"line {row.line}: {row.leaf} is no field of the spec")
        messages += [
            f"line {row.line}: {name} is not one of {', '.join(variants)}"
            for name in row.variants
            if name != "all" and name not in variants
        ]
    return messages


def broken_promise(
    row: Row,
    sample: Sample,
    supports: Callable[[Mapping[str, Any]], Sequence[str]],
    render: Callable[[Mapping[str, Any]], Rendered],
) -> str | None:
    """Return why the code differs from the row, or None if it does not.

    Args:
        row: The row.
        sample: Specs that differ only in the row's field.
        supports: The provider's function, with the variant's schema, for a spec (JSON).
        render: The provider's function, with the variant's schema, for a spec (JSON).
    """
    problems = list(supports(sample.changed))
    if row.klass == "refused":
        texts = re.findall(r'"([^"]+)"', row.detail)
        if not texts:
            return f"line {row.line}: a refused row has its text in double quotes"
        if not any(_says(problem, text) for problem in problems for text in texts):
            return f"line {row.line}: {row.field} is not refused with {texts[0]!r}, but: {problems}"
        return None
    if problems:
        return f"line {row.line}: {row.field} is called {row.klass}, but refused: {problems}"
    before, after = render(sample.base), render(sample.changed)
    if row.klass == "meaningless":
        same = before.main == after.main and before.helpers == after.helpers
        return None if same else f"line {row.line}: {row.field} is called meaningless, but changes the render"
    paths = re.match(r"`[^`]+`(\s*,\s*`[^`]+`)*", row.detail)
    if not paths:
        return f"line {row.line}: an honoured row begins with a path in backticks"
    for path in re.findall(r"`([^`]+)`", paths.group()):
        if values_at(before, path) == values_at(after, path):
            return f"line {row.line}: {row.field} does not change {path}"
    return None


def _says(problem: str, text: str) -> bool:
    pattern = ".+".join(re.escape(part) for part in re.split(r"\{\w+\}", text))
    return re.search(pattern, problem) is not None
