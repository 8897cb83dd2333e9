"""A small mapping, and changes of it."""

from __future__ import annotations

import copy
from typing import Any

import yaml

from support.hostile_functions import DESCRIPTION

SMALL: dict[str, Any] = {
    **{key: part for key, part in DESCRIPTION.items() if key != "protocol"},
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
    content = copy.deepcopy(SMALL)
    for path, value in changes.items():
        *parents, last = path.split("__")
        part = content
        for name in parents:
            part = part.setdefault(name, {})
        part[last] = value
        if value is None:
            del part[last]
    return yaml.safe_dump(content, sort_keys=False)
