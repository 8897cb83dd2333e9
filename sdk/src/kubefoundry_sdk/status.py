"""Building blocks of `observe`: read a status that others wrote, in which each value may have any type."""

from __future__ import annotations

from kubefoundry_sdk._api.fields import MAX_INT32
from kubefoundry_sdk._api.untrusted import mapping, mappings, part
from kubefoundry_sdk._provider.upstream_status import (
    UpstreamCondition,
    count,
    outdated,
    text,
    upstream_conditions,
)

__all__ = [
    "MAX_INT32",
    "UpstreamCondition",
    "count",
    "mapping",
    "mappings",
    "outdated",
    "part",
    "text",
    "upstream_conditions",
]
