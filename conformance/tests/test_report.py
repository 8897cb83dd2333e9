"""Reports of the kit: table, JSON and JUnit XML."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET

import pytest

from kubefoundry_conformance import report
from kubefoundry_conformance.check import Check, Finding, Outcome, Result, Skipped, run
from kubefoundry_conformance.versions import versions

PASSED = Result("REN-3", "twice", "functions", "passed")
FAILED = Result("REN-1", "specs", "functions", "failed", "a \x00 field", "none")
SKIPPED = Result("OBS-5", "update", "functions", "skipped", "no case")


def test_table_has_violation_and_link_of_rule() -> None:
    table = report.table([PASSED, FAILED, SKIPPED])

    assert table.startswith("kubefoundry-conformance ")
    assert "seen:     a \x00 field" in table
    assert "docs/contract.md#ren-1" in table
    assert table.endswith("1 passed, 1 failed (REN-1), 1 not checked")


def test_json_has_every_result() -> None:
    reported = json.loads(report.as_json("widgets", [PASSED, FAILED]))

    assert (reported["subject"], reported["conformant"]) == ("widgets", False)
    assert reported["versions"] == versions()
    assert [(result["id"], result["outcome"], result["seen"]) for result in reported["results"]] == [
        ("REN-3", "passed", ""),
        ("REN-1", "failed", "a \x00 field"),
    ]


def test_junit_is_valid_xml_for_any_text() -> None:
    suite = ET.fromstring(report.as_junit("widgets", [PASSED, FAILED, SKIPPED]))

    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("3", "1", "1")
    assert {each.get("name"): each.get("value") for each in suite.iter("property")} == versions()
    [failure] = suite.iter("failure")
    assert failure.get("message") == "a ? field"


@pytest.mark.parametrize(
    ("results", "conformant"),
    [([PASSED], True), ([PASSED, SKIPPED], True), ([PASSED, FAILED], False), ([SKIPPED], False), ([], False)],
)
def test_conformant_needs_a_passed_check(results: list[Result], conformant: bool) -> None:
    assert report.is_conformant(results) is conformant
    assert ("brightgreen" in report.badge(results)) is conformant


@pytest.mark.parametrize(
    ("found", "outcome"), [([], "passed"), ([Finding("a", "b"), Finding("c", "d")], "failed")]
)
def test_first_finding_is_reported(found: list[Finding], outcome: Outcome) -> None:
    result = run(Check("REN-1", "x", lambda subject: found), None, "functions")

    assert (result.outcome, result.seen) == (outcome, "a" if found else "")


def test_skipped_check_reports_its_reason() -> None:
    def nothing(subject: None) -> list[Finding]:
        raise Skipped("no cases")

    assert run(Check("REN-1", "x", nothing), None, "functions").seen == "no cases"
