"""Owner references (`metadata.ownerReferences`) of an object that has more than one owner."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def beside_controller(owners: Sequence[Any], live: Sequence[Mapping[str, Any]] | None) -> list[Any]:
    """Return our owner references as the API server accepts them over those of the live object.

    It allows one owner with `controller: true`, and would refuse every apply of a second one. If another owner is the
    controller, ours are without that role. The garbage collector deletes the object anyway.

    Args:
        owners: The owner references to apply. They may come from a record, which may hold anything.
        live: The owner references of the live object.
    """
    ours = {owner.get("uid") for owner in owners if isinstance(owner, dict)}
    if not any(owner.get("controller") and owner.get("uid") not in ours for owner in live or ()):
        return list(owners)
    return [
        {key: value for key, value in owner.items() if key != "controller"}
        if isinstance(owner, dict)
        else owner
        for owner in owners
    ]
