"""The provider's InferenceProviderConfig, and its heartbeats (contract §5, contract §10)."""

from __future__ import annotations

from typing import Final

import widget
from api_server import Api, Object, Refused
from model_deployment import MANAGER, NAME
from report import condition, now, stamped

VERSION: Final = "0.1.0"
PATH: Final = f"/apis/kubefoundry.ai/v1alpha1/inferenceproviderconfigs/{NAME}"
HEAD: Final = {
    "apiVersion": "kubefoundry.ai/v1alpha1",
    "kind": "InferenceProviderConfig",
    "metadata": {"name": NAME},
}
CAPABILITIES: Final = {
    "engines": ["vllm"],
    "servingModes": ["aggregated"],
    "cpuSupport": False,
    "gpuSupport": True,
}
RULES: Final = [{"condition": "metadata.namespace.startsWith('plain-')", "priority": 1}]


async def register(api: Api) -> None:
    """Apply capabilities by force, and rules only if nobody else has set them."""
    body: Object = {**HEAD, "spec": {"capabilities": CAPABILITIES, "selectionRules": RULES}}
    try:
        await api.apply(PATH, body, force=False)
    except Refused as error:
        if error.code != 409:
            raise
        if "selectionRules" in str(error):
            body["spec"] = {"capabilities": CAPABILITIES}
        await api.apply(PATH, body)


async def report(api: Api, crd: Object | None) -> None:
    """Send a heartbeat with the state of the CRD."""
    lacks = widget.missing(crd) if crd else []
    if crd is None:
        state = (False, "CRDNotInstalled", f"CRD {widget.CRD} is not installed; install Widgets")
    elif lacks:
        state = (False, "UnsupportedSchema", f"CRD {widget.CRD} lacks {', '.join(lacks)}; upgrade Widgets")
    else:
        state = (True, "SchemaSupported", f"CRD {widget.CRD} is installed, using {widget.API_VERSION}")
    live = await api.get(PATH)
    if live is None:
        await register(api)
    before = ((live or {}).get("status") or {}).get("conditions", [])
    upstream_ready = condition("UpstreamReady", *state, generation=1)
    del upstream_ready["observedGeneration"]
    status: Object = {
        "ready": state[0],
        "version": f"{MANAGER}:v{VERSION}",
        "lastHeartbeat": now(),
        "conditions": stamped([upstream_ready], before),
    }
    if state[0]:
        status["upstreamCRDVersion"] = widget.API_VERSION
    await api.apply(f"{PATH}/status", {**HEAD, "status": status})
