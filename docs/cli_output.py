"""Writes docs/cli-output.schema.json: the JSON that commands print, from the types that they print it with."""

from __future__ import annotations

import json
from pathlib import Path

from kubefoundry_cli.documents import schemas

FILE = Path(__file__).with_name("cli-output.schema.json")


def document() -> str:
    """The content of the file."""
    return json.dumps(schemas(), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    FILE.write_text(document())
