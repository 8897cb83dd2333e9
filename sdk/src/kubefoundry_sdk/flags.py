"""The provider's own flags, each with an environment variable `KUBEFOUNDRY_…`."""

from __future__ import annotations

from kubefoundry_sdk._runtime.options import boolean, duration, flag, mirror

__all__ = ["boolean", "duration", "flag", "mirror"]
