"""Owner references (`metadata.ownerReferences`) of an object that has more than one owner."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kubefoundry_sdk._api.untrusted import mappings


def beside_controller(owners: Sequence[Any], live: Any) -> list[Any]:
    """Return our owner references as the API server accepts them over those of the live object.

    It allows one owner with `controller: true`, and would refuse every apply of a second one. If another owner is the
    controller, ours are without that role. The garbage collector deletes the object anyway. Either list may come from
    a record, which may hold anything.
    """
    ours = [owner.get("uid") for owner in mappings(owners)]
    if not any(owner.get("controller") and owner.get("uid") not in ours for owner in mappings(live)):
        return list(owners)
    return [
        {key: value for key, value in owner.items() if key != "controller"}
        if isinstance(owner, dict)
        else owner
        for owner in owners
    ]
