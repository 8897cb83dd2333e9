"""Writes docs/functions.schema.json and docs/mapping.schema.json from the SDK's types.

The first has the messages of a program with a provider's functions, the second the file of a mapping.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from kubefoundry_sdk._functions.json_schema import document, mapping_document

HERE = Path(__file__).parent
DOCUMENTS = {"functions": document, "mapping": mapping_document}


def text(name: str) -> str:
    """Return the content of the schema's file."""
    schema: dict[str, Any] = DOCUMENTS[name]()
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    for name in DOCUMENTS:
        (HERE / f"{name}.schema.json").write_text(text(name))
