"""Renders parts that the server's container and the sidecars share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kubefoundry_sdk._api import quantity
from kubefoundry_sdk._api.kinds import Object


def last_of_each(items: Iterable[Any], key: str) -> list[Any]:
    """Return the items with unique keys: the last one, in the position of the first."""
    by_key: dict[Any, Any] = {}
    for item in items:
        by_key[item.get(key)] = item
    return list(by_key.values())


def with_requests(resources: Mapping[str, Any] | None, defaults: Mapping[str, str]) -> Object:
    """Return the resources with a request of each default, but never above its limit."""
    stated = resources or {}
    limits = stated.get("limits") or {}
    requests = {name: _lower(amount, limits.get(name)) for name, amount in defaults.items()}
    return {**stated, "requests": {**requests, **(stated.get("requests") or {})}}


def _lower(amount: str, limit: int | str | None) -> int | str:
    if limit is None:
        return amount
    try:
        return min(amount, limit, key=quantity.parse)
    except ValueError:
        # The API server rejects an invalid quantity with a message of its own.
        return amount
