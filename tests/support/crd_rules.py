"""Evaluate the rules of a CRD by Google's CEL (cel-expr-python)."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

from cel_expr_python import cel  # type: ignore[import-untyped]

Schema = dict[str, Any]


@cache
def _program(rule: str) -> cel.Expression:
    return cel.NewEnv(variables={"self": cel.Type.DYN}).compile(rule)


def broken(value: Any, schema: Schema) -> Iterator[str]:
    """Yield the messages of the rules that a value (with its defaults) breaks, at any depth.

    Raises:
        AssertionError: A rule cannot be evaluated. The API server would refuse the value with that error.
    """
    for validation in schema.get("x-kubernetes-validations", ()):
        result = _program(validation["rule"]).eval(data={"self": value}).plain_value()
        assert isinstance(result, bool), f"{validation['rule']}: {result}"
        if not result:
            yield validation["message"]
    if isinstance(value, dict):
        for key, child in value.items():
            yield from broken(child, schema.get("properties", {}).get(key, {}))
    elif isinstance(value, list):
        for item in value:
            yield from broken(item, schema.get("items", {}))
