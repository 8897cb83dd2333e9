"""CEL rules: `compile(text)`, `environment(spec, metadata)`, `match(rule, environment)`.

Only this module, and those below it, need the extra `cel`.
"""

from __future__ import annotations

from kubefoundry_sdk._cel.rule import (
    Environment,
    Failure,
    InvalidRule,
    Rule,
    compile,
    environment,
    match,
    values_read,
)
from kubefoundry_sdk._cel.source import Node, Problem

__all__ = [
    "Environment",
    "Failure",
    "InvalidRule",
    "Node",
    "Problem",
    "Rule",
    "compile",
    "environment",
    "match",
    "values_read",
]
