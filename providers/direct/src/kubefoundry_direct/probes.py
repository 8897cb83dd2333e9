"""Startup, readiness and liveness probes.

All four servers answer GET /health with 200 once the model is loaded, without a key even if the API requires one
(vllm/entrypoints/openai/api_server.py, sglang/srt/entrypoints/http_server.py, tensorrt_llm/serve/openai_server.py,
llama.cpp tools/server/README.md).
"""

from __future__ import annotations

import math
from typing import Any, Final

from kubefoundry_direct.names import PORT_NAME

_HEALTH: Final = {"httpGet": {"path": "/health", "port": PORT_NAME}}

STARTING: Final = 2
"""Seconds between two startup probes, and the time-out of each. A small model serves after one or two probes."""

PERIOD: Final = 5
"""Seconds between two probes of a pod that serves."""

STUCK: Final = 120
"""Seconds without an answer after which a server counts as stuck. A busy server answers in less time."""


def probes(startup_seconds: int) -> dict[str, Any]:
    """Return the probes of an engine that loads its model within `startup_seconds`.

    The readiness and liveness probes wait for the startup probe. So a model may load for an hour, and a stuck server
    is noticed soon anyway.
    """
    return {
        "startupProbe": {
            **_HEALTH,
            "periodSeconds": STARTING,
            "timeoutSeconds": STARTING,
            "failureThreshold": math.ceil(startup_seconds / STARTING),
        },
        "readinessProbe": {
            **_HEALTH,
            "periodSeconds": PERIOD,
            "timeoutSeconds": 5,
            "failureThreshold": 3,
        },
        "livenessProbe": {
            **_HEALTH,
            "periodSeconds": 2 * PERIOD,
            "timeoutSeconds": 2 * PERIOD,
            "failureThreshold": STUCK // (2 * PERIOD),
        },
    }
