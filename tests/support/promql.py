"""The PromQL of our alerts and dashboards."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import yaml

MONITORING: Final = Path(__file__).resolve().parents[2] / "manifests" / "monitoring"

_NOT_A_NAME: Final = re.compile(
    r'"[^"]*"|\{[^}]*\}|\[[^\]]*\]|\b(?:by|on|without|ignoring|group_left|group_right)\s*\([^)]*\)'
)
"""Strings, matchers, ranges, and lists of labels."""

_NAME: Final = re.compile(r"(?<![\w:$.])[a-zA-Z_:][\w:]*(?!\s*\(|[\w:])")
_OPERATORS: Final = {"and", "or", "unless", "bool", "offset", "by", "on", "without", "ignoring"}


def groups() -> list[dict[str, Any]]:
    """Return the groups of alerts, as Prometheus reads them."""
    document = yaml.safe_load((MONITORING / "alerts.yaml").read_text())
    found: list[dict[str, Any]] = document["spec"]["groups"]
    return found


def alerts() -> list[dict[str, Any]]:
    """Return all alerts."""
    return [rule for group in groups() for rule in group["rules"]]


def boards() -> list[dict[str, Any]]:
    """Return the JSON of each dashboard."""
    documents = yaml.safe_load_all((MONITORING / "dashboards.yaml").read_text())
    return [json.loads(text) for document in documents for text in document["data"].values()]


def panel_queries() -> Iterator[tuple[str, str]]:
    """Yield title and PromQL of each line of each panel."""
    for board in boards():
        for panel in board["panels"]:
            for target in panel.get("targets", ()):
                yield f"{board['title']}: {panel['title']}", target["expr"]


def metrics_of(expression: str) -> set[str]:
    """Return the names of the metrics in an expression."""
    return set(_NAME.findall(_NOT_A_NAME.sub(" ", expression))) - _OPERATORS
