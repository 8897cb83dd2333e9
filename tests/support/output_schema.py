"""Compare the output of commands with docs/cli-output.schema.json."""

from __future__ import annotations

import json
from typing import Any, Final

from jsonschema import Draft202012Validator  # type: ignore[import-untyped]  # its types are another package

from kubefoundry_local.control_plane import ROOT

SCHEMA: Final[dict[str, Any]] = json.loads((ROOT / "docs/cli-output.schema.json").read_text(encoding="utf-8"))


def checked(command: str, text: str) -> Any:
    """Return the document in a command's output. Raise ValidationError if it does not match the schema."""
    document = json.loads(text)
    shape = {**SCHEMA["properties"][command], "$defs": SCHEMA["$defs"]}
    Draft202012Validator(shape).validate(document)
    return document
