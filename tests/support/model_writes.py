"""Writes to the upstream objects of models, read from the audit log, and the state of these objects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import pytest

from kubefoundry_local.audit_log import requests_by_user
from kubefoundry_local.suite import Suite
from kubefoundry_sdk._api.kinds import DEPLOYMENTS, SERVICES, Kind
from kubefoundry_sdk._cluster.client import Client
from support.audit import WRITES
from support.kinds import UPSTREAM

PROVIDERS: Final[dict[str, Kind]] = {**UPSTREAM, "direct": DEPLOYMENTS}
SIMULATORS: Final = "Python/"
"""How the user agent of the simulated operators begins."""


async def upstream_objects(api: Client, namespace: str) -> dict[tuple[str, str], tuple[str, int]]:
    """Return uid and generation of each upstream object by provider and name."""
    objects = {}
    for provider, kind in PROVIDERS.items():
        for obj in (await api.list(kind, namespace))[0]:
            meta = obj["metadata"]
            objects[provider, meta["name"]] = (meta["uid"], meta["generation"])
    return objects


def log_size(suite: Suite) -> int:
    """Return the length of the audit log in bytes. Skip the test if the control plane is not ours."""
    if suite.plane.audit_log is None:
        pytest.skip("the audit log of a cluster that is not ours is out of reach")
    return suite.plane.audit_log.stat().st_size


def upstream_writes(suite: Suite, namespace: str, start: int, models: Sequence[str]) -> list[str]:
    """Return the requests of our components that changed an upstream object or a helper of these models."""
    assert suite.plane.audit_log is not None
    plurals = {"configmaps", SERVICES.plural, *(kind.plural for kind in PROVIDERS.values())}

    def is_about_models(entry: dict[str, Any]) -> bool:
        about = entry.get("objectRef") or {}
        name = str(about.get("name", ""))
        return (
            about.get("namespace") == namespace
            and about.get("resource") in plurals
            and about.get("subresource") != "status"
            and any(name == model or name.startswith(f"{model}-") for model in models)
        )

    return [
        f"{entry['verb']} {entry['requestURI']} by {entry['user']['username']}"
        for entry in requests_by_user(suite.plane.audit_log, start)
        if entry["verb"] in WRITES
        and entry["stage"] == "ResponseComplete"
        and "dryRun=All" not in entry["requestURI"]
        and not entry["userAgent"].startswith(SIMULATORS)
        and not entry["user"]["username"].startswith(("system:kube-", "system:serviceaccount:kube-system:"))
        and is_about_models(entry)
    ]
