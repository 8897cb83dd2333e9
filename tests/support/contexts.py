"""Build the context of a reconcile. A test passes only the parts that it needs."""

from __future__ import annotations

from typing import Any

from kubefoundry_sdk._api import names
from kubefoundry_sdk._provider.health.models_endpoint import directly
from kubefoundry_sdk._provider.health.verification import Verification
from kubefoundry_sdk._provider.reconcile.context import Context
from kubefoundry_sdk._provider.write import manifest
from kubefoundry_sdk._provider.write.helpers import Helpers
from kubefoundry_sdk._runtime.store import Store
from support.plans import provider

UNUSED: Any = None
"""A part that the test does not use."""


def context(**parts: Any) -> Context:
    """Return a context of the example provider with empty stores, and with the given parts."""
    manager = names.provider_manager(provider().name)
    verification = Verification(directly(UNUSED), lambda work: None, lambda key: None, always=False)
    defaults: dict[str, Any] = {
        "provider": provider(),
        "client": UNUSED,
        "recorder": UNUSED,
        "deployments": Store(),
        "upstream": UNUSED,
        "helpers": Helpers({"ConfigMap": Store(managers=frozenset({manager}), index=manifest.owner_uid)}),
        "finalizer_timeout": 300.0,
        "pods": None,
        "verification": verification,
        "clock": lambda: 0.0,
    }
    return Context(**(defaults | parts))
