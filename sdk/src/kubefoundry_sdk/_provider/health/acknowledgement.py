"""Checks whether the upstream operator has processed the last apply.

Before the operator processes an edit, it reports that the old spec serves. This is true, but misleads users who wait
for the new spec.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

from kubefoundry_sdk._api import managed_fields
from kubefoundry_sdk._api.kinds import Object


class Acknowledgement:
    """Remember the generation of one upstream object that its operator has processed.

    This is only needed for a status without `observedGeneration`. Such a status describes a generation if the
    operator wrote the status after that generation was applied, unless the operator always writes the field.
    """

    def __init__(self) -> None:
        self._processed: tuple[str, int] | None = None
        self._status: tuple[str, str] | None = None
        """The uid of the object, and a digest of its status before the last edit."""

    def confirm(self, live: Object) -> None:
        """Record that the current generation has served. Later writes that do not change it need no new status."""
        self._processed = _version(live)
        self._status = (self._processed[0], _digest(live.get("status") or {}))

    def is_processed(self, live: Object, manager: str, *, names_generation: bool) -> bool:
        """Check whether the status describes the object as it is now.

        `manager` is the field manager of its provider. If each status names its generation (`names_generation`), the
        time of the status is no proof.
        """
        status: dict[str, Any] = live.get("status") or {}
        version = _version(live)
        if not status or "observedGeneration" in status:
            # A generation above the object's belongs to another object of that name, or is invalid. If the value is
            # not a number, the status counts as not processed, whatever its time.
            return is_generation(status.get("observedGeneration"), version[1])
        named = _is_named(status, version[1])
        if (
            self._processed == version
            or named
            or (not names_generation and self._has_new_status(live, manager))
        ):
            self.confirm(live)
            return True
        if self._status is None or self._status[0] != version[0]:
            self._status = (version[0], _digest(status))
        return False

    def _has_new_status(self, live: Object, manager: str) -> bool:
        """Check for proof that the operator wrote the status after the last apply."""
        status, (uid, generation) = live["status"], _version(live)
        applied = managed_fields.applied_at(live, manager)
        if generation <= 1 or applied is None:
            # There is no edit of ours that could be newer than the status.
            return True
        written = managed_fields.status_written_at(live)
        if written is not None and written > applied:
            return True
        # Times have a resolution of one second. Within the same second, only a change of the status that this process
        # saw is proof.
        seen_uid, seen_status = self._status or ("", "")
        is_changed = seen_uid == uid and seen_status != _digest(status)
        return is_changed and (written is None or written >= applied)


def _version(live: Object) -> tuple[str, int]:
    meta = live["metadata"]
    return str(meta.get("uid")), int(meta.get("generation") or 1)


def _digest(status: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(status, sort_keys=True).encode()).hexdigest()


def _is_named(status: dict[str, Any], generation: int) -> bool:
    """Check whether a condition names the generation.

    An old generation proves nothing, because an operator may not write a condition that does not change (KAITO's
    UpdateStatusConditionIfNotMatch, `pkg/utils/workspace`).
    """
    conditions = status.get("conditions")
    return any(
        isinstance(item, dict) and is_generation(item.get("observedGeneration"), generation)
        for item in (conditions if isinstance(conditions, list) else ())
    )


def is_generation(value: object, generation: int) -> bool:
    """Check whether a value of a status names the generation. An operator may write any type."""
    return isinstance(value, int) and not isinstance(value, bool) and value == generation
