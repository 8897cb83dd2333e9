"""Building blocks of `probe`: choose how to write an installed CRD by the fields that it declares."""

from __future__ import annotations

from kubefoundry_sdk._provider.upstream_fields import (
    Fields,
    by_fields,
    declared,
    served_version,
    version_schema,
)

__all__ = ["Fields", "by_fields", "declared", "served_version", "version_schema"]
