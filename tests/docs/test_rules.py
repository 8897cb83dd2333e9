"""The rules in docs/contract.md and docs/conformance-checks.md are those of the conformance kit."""

from __future__ import annotations

import runpy
from pathlib import Path

from kubefoundry_conformance.catalogue import CHECKS
from kubefoundry_conformance.rules import GROUPS, RULES

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGES = runpy.run_path(str(DOCS / "rules.py"))


def test_contract_rules_are_current() -> None:
    text = (DOCS / "contract.md").read_text(encoding="utf-8")

    assert PAGES["contract"](text) == text, "make docs"


def test_checks_page_is_current() -> None:
    assert (DOCS / "conformance-checks.md").read_text(encoding="utf-8") == PAGES["checks"](), "make docs"


def test_check_belongs_to_a_rule() -> None:
    assert {check.rule for checks in CHECKS.values() for check in checks} <= set(RULES)
    assert {id.partition("-")[0] for id in RULES} == set(GROUPS)


def test_rule_has_a_check_or_a_reason() -> None:
    checked = {check.rule for checks in CHECKS.values() for check in checks}

    assert {id for id, rule in RULES.items() if bool(rule.unchecked) == (id in checked)} == set()
