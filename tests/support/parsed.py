"""Parse large YAML files once. The results are stored as JSON in build/parsed/, by a hash of the content."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any, Final

import yaml

from kubefoundry_sdk._api.foreign_yaml import quick_loader

CACHE: Final = Path(__file__).resolve().parents[2] / "build" / "parsed"


def parsed(path: Path) -> Any:
    """Return the file's document. CRDs have up to 1 MB: half a second as YAML, ten milliseconds as JSON."""
    content = path.read_bytes()
    cached = CACHE / f"{hashlib.sha256(content).hexdigest()}.json"
    if cached.exists():
        return json.loads(cached.read_bytes())
    # The pure Python loader takes half a minute for a CRD.
    document = yaml.load(content, Loader=quick_loader())
    CACHE.mkdir(parents=True, exist_ok=True)
    # Several processes collect tests at the same time, so the file gets its name only when it is complete.
    unfinished = cached.with_name(f"{cached.name}.{os.getpid()}")
    unfinished.write_text(json.dumps(document))
    unfinished.rename(cached)
    return document
