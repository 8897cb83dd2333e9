"""Large YAML files, parsed once: what came out is kept as JSON in build/parsed/ by the file's content."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any, Final

import yaml

from kubefoundry_sdk.api.foreign_yaml import quick_loader

KEPT: Final = Path(__file__).resolve().parents[2] / "build" / "parsed"


def parsed(path: Path) -> Any:
    """The file's one document. The published CRDs are up to 1 MB: half a second as YAML, ten milliseconds as JSON."""
    content = path.read_bytes()
    kept = KEPT / f"{hashlib.sha256(content).hexdigest()}.json"
    if kept.exists():
        return json.loads(kept.read_bytes())
    # the pure Python loader takes half a minute for one
    document = yaml.load(content, Loader=quick_loader())
    KEPT.mkdir(parents=True, exist_ok=True)
    # whole or not at all: several processes collect tests at once
    unfinished = kept.with_name(f"{kept.name}.{os.getpid()}")
    unfinished.write_text(json.dumps(document))
    unfinished.rename(kept)
    return document
