"""Refusals, content and status of Widgets. All functions are pure."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from api_server import Object

GROUP: Final = "example.com"
API_VERSION: Final = f"{GROUP}/v1"
CRD: Final = f"widgets.{GROUP}"
NEEDED: Final = ("model", "servedName", "image", "replicas", "gpus", "flags", "env")
NO_PLACE: Final = (
    "resources.cpu",
    "resources.memory",
    "podTemplate",
    "model.storage",
    "secrets.huggingFaceToken",
    "nodeSelector",
    "tolerations",
)
IDENTITY: Final = ("model.id", "model.source", "engine.type", "serving.mode")
STATES: Final = {
    "": ("Pending", "Progressing"),
    "Starting": ("Deploying", "Progressing"),
    "Serving": ("Running", "DeploymentReady"),
    "Broken": ("Failed", "Failed"),
}


@dataclass(frozen=True, slots=True)
class Seen:
    """The observation of a Widget: phase, reason of `Ready`, message, desired and ready replicas."""

    phase: str
    reason: str
    message: str
    desired: int
    ready: int


def at(spec: Object, path: str, otherwise: object = None) -> object:
    """Return the value at a path of maps."""
    part: object = spec
    for name in path.split("."):
        part = part.get(name) if isinstance(part, dict) else None
    return otherwise if part is None else part


def missing(crd: Object) -> list[str]:
    """Return the fields that the installed CRD lacks. Fields decide, not the release."""
    for version in crd["spec"]["versions"]:
        if version["name"] == "v1" and version.get("served"):
            properties = at(version, "schema.openAPIV3Schema.properties.spec.properties")
            fields = properties if isinstance(properties, dict) else {}
            return [f"spec.{name}" for name in NEEDED if name not in fields]
    return ["version v1"]


def refusals(spec: Object) -> Iterator[str]:
    """Yield a sentence for every unsupported field, so that no field is dropped silently."""
    if at(spec, "engine.type") != "vllm":
        yield f"Widgets does not support {at(spec, 'engine.type')} engine"
    if at(spec, "serving.mode", "aggregated") != "aggregated":
        yield f"Widgets does not support {at(spec, 'serving.mode')} mode"
    elif not at(spec, "resources.gpu.count"):
        yield "Widgets requires GPU (set resources.gpu.count > 0)"
    if at(spec, "resources.gpu.type", "nvidia.com/gpu") != "nvidia.com/gpu":
        yield f"Widgets has no place for resources.gpu.type {at(spec, 'resources.gpu.type')}: only nvidia.com/gpu"
    if not at(spec, "image"):
        yield "Widgets has no default image for vllm: set image"
    for path in NO_PLACE:
        if at(spec, path):
            yield f"Widgets has no place for {path}: remove it"


def rendered(spec: Object) -> Object:
    """Return the Widget's spec."""
    flags = dict(spec["engine"].get("args") or {})
    if (length := at(spec, "engine.contextLength")) is not None:
        flags["max-model-len"] = str(length)
    if at(spec, "engine.trustRemoteCode"):
        flags["trust-remote-code"] = "true"
    model = str(at(spec, "model.id", ""))
    return {
        "model": model,
        "servedName": at(spec, "model.servedName") or model.rpartition("/")[2],
        "image": spec["image"],
        "replicas": at(spec, "scaling.replicas", 1),
        "gpus": at(spec, "resources.gpu.count"),
        "flags": flags,
        "env": spec.get("env") or [],
    }


def merged(now: Object, before: Object, applied: Object, live: Object) -> Object:
    """Return the new spec of an existing Widget. An upgrade of this provider rewrites nothing (contract §4).

    Args:
        now: The render of the current spec.
        before: The render of the last applied spec by this release.
        applied: The last applied content.
        live: The current content.
    """
    kept = {
        name
        for name in now
        if now[name] == before.get(name) and name in applied and live.get(name) == applied[name]
    }
    return {name: live[name] if name in kept else value for name, value in now.items()}


def observed(spec: Object, widget: Object) -> Seen:
    """Return the observation of a Widget. An unknown state is `Unknown`, never an exception."""
    status = widget.get("status")
    status = status if isinstance(status, dict) else {}
    state, count = str(status.get("state") or ""), status.get("ready")
    desired = int(str(at(spec, "scaling.replicas", 1)))
    ready = count if isinstance(count, int) and not isinstance(count, bool) and count > 0 else 0
    phase, reason = STATES.get(state, ("Deploying", "Unknown"))
    if desired == 0 and ready == 0:
        phase, reason = "Pending", "ScaledToZero"
    elif phase == "Running" and ready == 0:
        phase, reason = "Deploying", "Progressing"
    message = status.get("message") or f"Widget is {state or 'not taken up yet'}"
    return Seen(phase, reason, message if isinstance(message, str) else json.dumps(message), desired, ready)
