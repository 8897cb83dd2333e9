"""The lists of mutations: lines of ours that carry a rule, what they become, and the test that sees it."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

ROOT: Final = Path(__file__).resolve().parents[2]
LISTS: Final = tuple(Path(__file__).with_name(f"{name}.yaml") for name in ("list", "llamastack", "cli"))


@dataclass(frozen=True, slots=True)
class Mutation:
    """rule: what no longer holds. file: from the root. before, after: text that is there once, and what takes
    its place. test: the one that has to fail, as pytest calls it."""

    rule: str
    file: str
    before: str
    after: str
    test: str

    def mutate(self, text: str) -> str:
        """Raises ValueError unless `before` is there exactly once."""
        if (found := text.count(self.before)) != 1:
            raise ValueError(f"{self.rule}: {self.before!r} stands {found} times in {self.file}")
        return text.replace(self.before, self.after)


def mutations() -> list[Mutation]:
    """In the order of the lists."""
    return [mutation for path in LISTS for mutation in of_list(path)]


def of_list(path: Path) -> list[Mutation]:
    """In the order of the file."""
    return [_mutation(entry) for entry in yaml.safe_load(path.read_text(encoding="utf-8"))]


def defines(root: Path, test: str) -> bool:
    """Whether the file of a test's name defines a function of that name; parameters are not looked at."""
    file, _, function = test.partition("::")
    path = root / file
    if not path.is_file():
        return False
    return any(
        isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == function.partition("[")[0]
        for node in ast.parse(path.read_text(encoding="utf-8")).body
    )


def _mutation(entry: dict[str, Any]) -> Mutation:
    return Mutation(
        rule=entry["rule"],
        file=entry["file"],
        before=entry["before"],
        after=entry.get("after", ""),
        test=entry["test"],
    )
