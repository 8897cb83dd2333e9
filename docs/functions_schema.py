"""Writes docs/functions.schema.json: the messages of a program with a provider's functions, from the SDK's types."""

from __future__ import annotations

import json
from pathlib import Path

from kubefoundry_sdk._functions.json_schema import document

FILE = Path(__file__).with_name("functions.schema.json")


def text() -> str:
    """The content of the file."""
    return json.dumps(document(), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    FILE.write_text(text())
