"""An operator of Widgets in kopf, and the provider of Widgets inside it: `kopf run --standalone -A` this file.

The first half stands for an operator that you have. The last line is all that KubeFoundry needs.
"""

from __future__ import annotations

from typing import Any

import kopf

import kubefoundry_sdk.kopf
from kubefoundry_widgets.provider import provider


@kopf.on.event("example.com", "v1", "widgets")
def serving(spec: Any, status: Any, patch: Any, type: str | None, **_: Any) -> None:
    """Every Widget serves at once."""
    wanted = {"state": "Serving", "ready": spec.get("replicas", 0)}
    if type != "DELETED" and dict(status) != wanted:
        patch.status.update(wanted)


kubefoundry_sdk.kopf.serve(lambda: provider({"vllm": "example.com/vllm:1"}))
