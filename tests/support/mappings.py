"""A small mapping, and changes of it."""

from __future__ import annotations

import json
from typing import Any

import yaml

SMALL: dict[str, Any] = {
    "name": "widgets",
    "title": "Widgets",
    "version": "0.1.0",
    "capabilities": {
        "engines": ["vllm"],
        "servingModes": ["aggregated"],
        "cpuSupport": False,
        "gpuSupport": True,
    },
    "upstream": {"group": "example.com", "plural": "widgets", "kind": "Widget"},
    "fields": {"v1": {"needed": ["spec.model"], "optional": {"env": "spec.env"}}},
    "object": {"spec": {"model": "${spec.model.id}", "gpus": "${derived.gpuCount}"}},
    "status": {
        "ready": "${status.ready}",
        "endpoint": {"service": "${metadata.name}", "port": 8000},
        "phases": [{"phase": "Running", "when": "status.state == 'Serving'"}],
    },
}


def mapping(**changes: Any) -> str:
    """Return the small mapping as text; `object__spec__x=…` changes a part of it, and None removes one."""
    content = json.loads(json.dumps(SMALL))
    for path, value in changes.items():
        *parents, last = path.split("__")
        part = content
        for name in parents:
            part = part.setdefault(name, {})
        part[last] = value
        if value is None:
            del part[last]
    return yaml.safe_dump(content, sort_keys=False)
