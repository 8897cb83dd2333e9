"""Reads documents that others wrote without trusting them: a part of the wrong type counts as absent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def mapping(value: object) -> Mapping[str, Any]:
    """Return the value if it is a mapping, else an empty one."""
    # The check of the abstract class takes longer, and nearly all mappings are dictionaries.
    return value if isinstance(value, (dict, Mapping)) else {}


def mappings(value: object) -> list[Mapping[str, Any]]:
    """Return the mappings in the value if it is a list, else none."""
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []


def part(value: object, *path: str) -> Mapping[str, Any]:
    """Return the mapping at that path; empty if there is none."""
    for step in path:
        value = mapping(value).get(step)
    return mapping(value)
