"""Reports of results: a table, JSON, JUnit XML, and a badge."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

from kubefoundry_conformance import versions
from kubefoundry_conformance.check import Result
from kubefoundry_conformance.rules import CONTRACT, RULES

MARKS: Final = {"passed": "ok", "failed": "FAIL", "skipped": "-"}
_NO_XML: Final = re.compile("[^\t\n\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
COLOURS: Final = {True: "brightgreen", False: "red"}


def link(rule: str) -> str:
    """Return the link to a rule in the contract."""
    return f"{CONTRACT.partition('#')[0]}#{rule.lower()}"


def table(results: Sequence[Result]) -> str:
    """Return the versions, a line for each check with the violation below a failed one, and the summary."""
    width = max((len(result.title) for result in results), default=0)
    lines = [versions.text()]
    for result in results:
        why = f"  {result.seen}" if result.outcome == "skipped" else ""
        lines.append(f"{MARKS[result.outcome]:4}  {result.rule:6}  {result.title:{width}}{why}".rstrip())
        if result.outcome == "failed":
            lines += [
                f"      seen:     {result.seen}",
                f"      expected: {result.expected}",
                f"      rule:     {RULES[result.rule].text} ({link(result.rule)})",
            ]
    return "\n".join([*lines, summary(results)])


def summary(results: Sequence[Result]) -> str:
    """Return the counts of outcomes and the failed rules in one line."""
    counts = Counter(result.outcome for result in results)
    failed = sorted({result.rule for result in results if result.outcome == "failed"})
    broken = f" ({', '.join(failed)})" if failed else ""
    return f"{counts['passed']} passed, {counts['failed']} failed{broken}, {counts['skipped']} not checked"


def as_json(subject: str, results: Sequence[Result]) -> str:
    """Return the results as one JSON object."""
    return json.dumps(
        {
            "subject": subject,
            "versions": versions.versions(),
            "conformant": is_conformant(results),
            "summary": summary(results),
            "results": [
                {
                    "id": result.rule,
                    "rule": RULES[result.rule].text,
                    "check": result.title,
                    "mode": result.mode,
                    "outcome": result.outcome,
                    "seen": result.seen,
                    "expected": result.expected,
                    "seconds": round(result.seconds, 3),
                    "link": link(result.rule),
                }
                for result in results
            ],
        },
        indent=2,
        ensure_ascii=False,
    )


def as_junit(subject: str, results: Sequence[Result]) -> str:
    """Return the results as JUnit XML, which CI systems read: a test case for each check."""
    counts = Counter(result.outcome for result in results)
    suite = ET.Element(
        "testsuite",
        name=f"kubefoundry-conformance {subject}",
        tests=str(len(results)),
        failures=str(counts["failed"]),
        skipped=str(counts["skipped"]),
    )
    properties = ET.SubElement(suite, "properties")
    for name, version in versions.versions().items():
        ET.SubElement(properties, "property", name=name, value=version)
    for result in results:
        case = ET.SubElement(
            suite,
            "testcase",
            classname=f"{result.mode}.{result.rule.partition('-')[0]}",
            name=f"{result.rule} {result.title}",
            time=f"{result.seconds:.3f}",
        )
        if result.outcome == "failed":
            failure = ET.SubElement(case, "failure", message=_printable(result.seen))
            failure.text = _printable(
                f"seen: {result.seen}\nexpected: {result.expected}\n{link(result.rule)}"
            )
        elif result.outcome == "skipped":
            ET.SubElement(case, "skipped", message=_printable(result.seen))
    return ET.tostring(suite, encoding="unicode", xml_declaration=True)


def badge(results: Sequence[Result]) -> str:
    """Return a badge in Markdown."""
    counts = Counter(result.outcome for result in results)
    passed = is_conformant(results)
    label = f"{counts['passed']}%20checks" if passed else f"{counts['failed']}%20failed"
    colour = COLOURS[passed]
    return (
        f"![KubeFoundry conformance](https://img.shields.io/badge/KubeFoundry_conformance-{label}-{colour})"
    )


def is_conformant(results: Sequence[Result]) -> bool:
    """Check whether a check passed and none failed."""
    return any(result.outcome == "passed" for result in results) and not any(
        result.outcome == "failed" for result in results
    )


def _printable(text: str) -> str:
    """Replace characters that XML cannot hold."""
    return "".join(
        char if char in "\t\n" or " " <= char <= "\ud7ff" or "\ue000" <= char <= "\ufffd" else "?"
        for char in text
    )


def document(form: str, subject: str, results: Sequence[Result]) -> str:
    """Return the report in the format of `--output`."""
    forms: dict[str, Any] = {"json": as_json, "junit": as_junit}
    return str(forms[form](subject, results)) if form in forms else table(results)
