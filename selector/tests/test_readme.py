"""The tables of the README say what the tests hold."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

from kubefoundry_sdk._cel.evaluation import MAX_CELLS, MAX_STEPS, TEXT_PER_CELL
from kubefoundry_sdk._cel.functions import FUNCTIONS, METHODS
from kubefoundry_sdk._cel.source import MACROS, MAX_LENGTH, MAX_MACRO_NESTING, MAX_NODES

HERE = Path(__file__).parent
README = (HERE.parent / "README.md").read_text()


def code(text: str) -> str:
    return f"`` {text} ``" if "`" in text else f"`{text}`"


def divergences() -> str:
    with (HERE.parents[1] / "sdk" / "tests" / "cel" / "divergences.tsv").open(newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    lines = ["| expression | here | Google's CEL | why |", "|---|---|---|---|"]
    lines += [
        f"| {code(row['expression'])} | {code(row['ours'])} | {code(row['google'])} | {row['why']} |"
        for row in rows
    ]
    return "\n".join(lines)


def standard_rules(configs: dict[str, Any]) -> str:
    lines = ["| provider | condition | priority | reason |", "|---|---|---|---|"]
    for name, spec in configs.items():
        for rule in spec.get("selectionRules", []):
            condition = rule["condition"].replace("|", "\\|")
            lines.append(
                f"| {name} | `{condition}` | {rule['priority']} | {rule.get('reason', '(composed)')} |"
            )
    return "\n".join(lines)


def test_divergences() -> None:
    assert divergences() in README


def test_standard_rules(standard_configs: dict[str, Any]) -> None:
    assert standard_rules(standard_configs) in README


def test_functions_and_bounds() -> None:
    for name in (*FUNCTIONS, *METHODS, *MACROS, "has", "dyn"):
        assert f"`{name}`" in README, name
    for bound in (MAX_LENGTH, MAX_NODES, MAX_MACRO_NESTING, MAX_STEPS, MAX_CELLS, TEXT_PER_CELL):
        assert f" {bound:,} " in README, bound
