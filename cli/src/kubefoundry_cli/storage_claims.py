"""Notes about the claims that core creates for `claimTemplate`, which no provider renders."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kubefoundry_cli.cluster import Session
from kubefoundry_sdk._api import validation
from kubefoundry_sdk._api.kinds import CLAIMS, Object
from kubefoundry_sdk._api.managed_claims import claim_name, templates
from kubefoundry_sdk._cluster.errors import ApiError

UNLESS: Final = ", unless it exists"


def claim_notes(obj: Object) -> list[str]:
    """Return a note for each claim that core creates for a valid model, if the claim does not exist yet."""
    return [f"{text}{UNLESS}" for _, text in _created(obj)]


async def missing_claim_notes(session: Session, obj: Object) -> list[str]:
    """Return a note for each claim that is missing. Raises ApiError, Unreachable."""
    notes = []
    for name, text in _created(obj):
        try:
            await session.client.get_metadata(CLAIMS, name, obj["metadata"]["namespace"])
        except ApiError as error:
            if error.not_found:
                notes.append(text)
            elif error.code == 403:
                # Who may not read claims gets the note of a command without a cluster.
                notes.append(f"{text}{UNLESS}")
            else:
                raise
    return notes


def _created(obj: Object) -> Iterator[tuple[str, str]]:
    """Yield the name of each claim, and the sentence about it."""
    if not any(templates(obj["spec"])):
        return
    for volume, template in templates(validation.default(obj["spec"])):
        name = claim_name(obj["metadata"]["name"], volume)
        storage_class = template.get("storageClassName")
        of_class = f"StorageClass {storage_class}" if storage_class else "the default StorageClass"
        kept = "is deleted" if template["whenDeleted"] == "Delete" else "stays"
        yield (
            name,
            f"core first creates PersistentVolumeClaim {name} ({template['size']}, {template['accessMode']}, "
            f"{of_class}), which {kept} when the model is deleted",
        )
