"""Cells of the list of models, and the state of a pod in one line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kubefoundry_cli.health import endpoint, health_of, phase
from kubefoundry_cli.output import age
from kubefoundry_sdk._api.conditions import find
from kubefoundry_sdk._api.engine_choice import effective_engine
from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._api.untrusted import part


def rows(models: list[Object], *, everywhere: bool, wide: bool) -> tuple[list[str], list[list[str]]]:
    """Return head and cells of the list."""
    head = ["NAMESPACE"] if everywhere else []
    head += ["NAME", "PHASE", "READY", "STATE", "PROVIDER", "REPLICAS", "ENDPOINT", "AGE"]
    head += ["MODEL", "ENGINE", "MESSAGE"] if wide else []
    cells = [
        [*([obj["metadata"]["namespace"]] if everywhere else []), *_row(obj), *(_wide(obj) if wide else [])]
        for obj in models
    ]
    return head, cells


def _row(obj: Object) -> list[str]:
    meta, status = obj["metadata"], obj.get("status") or {}
    replicas = status.get("replicas") or {}
    return [
        meta["name"],
        phase(obj) or "-",
        (find(status.get("conditions"), "Ready") or {}).get("status") or "-",
        health_of(obj).state,
        part(status, "provider").get("name") or "-",
        f"{replicas.get('ready', 0)}/{replicas['desired']}" if "desired" in replicas else "-",
        endpoint(status) or "-",
        age(meta.get("creationTimestamp")),
    ]


def _wide(obj: Object) -> list[str]:
    values = (part(obj, "spec", "model").get("id"), effective_engine(obj), part(obj, "status").get("message"))
    return [value or "-" for value in values]


def pod_state(status: Mapping[str, Any]) -> str:
    """Return the state of a pod in one line: `Pending  0/1 ready  ImagePullBackOff: …`."""
    states = status.get("containerStatuses") or []
    waiting = [(state.get("state") or {}).get("waiting") or {} for state in states]
    why = "; ".join(
        f"{reason.get('reason', 'Waiting')}: {reason.get('message', '')}" for reason in waiting if reason
    )
    up = sum(bool(state.get("ready")) for state in states)
    return f"{status.get('phase')}  {up}/{len(states)} ready  {why}".rstrip()
