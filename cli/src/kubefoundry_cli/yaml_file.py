"""Read the YAML documents of a file that a user names. It imports no model, so that `status` starts fast."""

from __future__ import annotations

from typing import Any

from kubefoundry_cli.failure import Exit, Failure
from kubefoundry_sdk._api import foreign_yaml


def documents_in(text: str, name: str) -> list[Any]:
    """Return the YAML documents of a text without empty ones.

    Args:
        text: The content of the file.
        name: Its name, for errors.

    Raises:
        Failure: The text is not YAML, or exceeds the limits of `foreign_yaml`.
    """
    try:
        return [document for document in foreign_yaml.documents(text) if document]
    except foreign_yaml.Unreadable as error:
        raise Failure(f"cannot read {name}: it {error}", Exit.USAGE) from error
