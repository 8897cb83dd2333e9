"""Repairs lost ownership: `metadata.managedFields` no longer names us on a live object (contract §4.19).

A comparison of values does not show the loss. It counts as drift, because a hand-over depends on the ownership.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from kubefoundry_sdk._api import managed_fields
from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._provider.write import manifest
from kubefoundry_sdk._provider.write.helpers import mark, marked
from kubefoundry_sdk._provider.write.plan import Plan

PATH: Final = "metadata.managedFields"

_HEAD: Final = ("apiVersion", "kind")


def with_repairs(write_plan: Plan, live: Object | None, live_helpers: Iterable[Object], manager: str) -> Plan:
    """Return the plan with the objects to apply again because the manager no longer owns any of their content.

    A plan that already writes something is returned unchanged. The next reconcile checks again.
    """
    if live is None or write_plan.changed or write_plan.recreate:
        return write_plan
    if _is_lost(write_plan.main, live, manager) and write_plan.moved is None:
        return replace(write_plan, drifted=(*write_plan.drifted, PATH))
    live_by_mark = marked(live_helpers)
    lost = [
        obj
        for obj in write_plan.helpers
        if (live_helper := live_by_mark.get(mark(obj))) is not None and _is_lost(obj, live_helper, manager)
    ]
    return replace(write_plan, changed=lost, edited=tuple((obj, (PATH,)) for obj in lost))


def _is_lost(applied: Object, live: Object, manager: str) -> bool:
    """Check whether the manager's entry is gone, or was emptied of everything but metadata.

    The loss of a part is harmless: an autoscaler takes over counts, and an operator takes over a list by writing it
    back.
    """
    if manager not in managed_fields.managers(live):
        return True
    fields = managed_fields.owned(live, manager) or {}
    content = {key for key, value in manifest.body(applied).items() if value and key not in _HEAD}
    return bool(content) and not any(f"f:{key}" in fields for key in content)
