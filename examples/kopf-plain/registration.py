"""The provider's InferenceProviderConfig: registered, and kept alive by heartbeats (contract §5, contract §10)."""

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
    """Capabilities by force; rules only where nobody else has set them."""
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
    """A heartbeat, and what is installed."""
    lacks = widget.missing(crd) if crd else []
    if crd is None:
        said = (False, "CRDNotInstalled", f"CRD {widget.CRD} is not installed; install Widgets")
    elif lacks:
        said = (False, "UnsupportedSchema", f"CRD {widget.CRD} lacks {', '.join(lacks)}; upgrade Widgets")
    else:
        said = (True, "SchemaSupported", f"CRD {widget.CRD} is installed, using {widget.API_VERSION}")
    live = await api.get(PATH)
    if live is None:
        await register(api)
    before = ((live or {}).get("status") or {}).get("conditions", [])
    found = condition("UpstreamReady", *said, generation=1)
    del found["observedGeneration"]
    status: Object = {
        "ready": said[0],
        "version": f"{MANAGER}:v{VERSION}",
        "lastHeartbeat": now(),
        "conditions": stamped([found], before),
    }
    if said[0]:
        status["upstreamCRDVersion"] = widget.API_VERSION
    await api.apply(f"{PATH}/status", {**HEAD, "status": status})
