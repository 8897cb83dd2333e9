"""CEL rules behind one interface: `compile(text)`, `environment(spec, metadata)`, `match(rule, environment)`."""

from kubefoundry_selector.cel.rule import (
    Environment,
    Failure,
    InvalidRule,
    Rule,
    compile,
    environment,
    match,
    values_read,
)

__all__ = [
    "Environment",
    "Failure",
    "InvalidRule",
    "Rule",
    "compile",
    "environment",
    "match",
    "values_read",
]
