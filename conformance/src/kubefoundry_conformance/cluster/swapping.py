"""SEL-11: a selector takes over from another one."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

from kubefoundry_conformance.check import Finding
from kubefoundry_conformance.cluster.deployments import Place
from kubefoundry_conformance.cluster.offered import Offered, offering
from kubefoundry_conformance.cluster.rig import Rig, of_rig
from kubefoundry_conformance.cluster.selections import create_deployment, create_selected, selected, settle
from kubefoundry_conformance.cluster.settings import QUIET, now
from kubefoundry_conformance.cluster.waiting import NotSeen, condition
from kubefoundry_sdk._api import names
from kubefoundry_sdk._api.conditions import condition as condition_of
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS
from kubefoundry_sdk._api.reasons import PROVIDER_SELECTED, VALIDATED

FOLLOWED: Final = "kept-by-another-selector"
"""Value of the annotation `reselect` that the earlier selector followed."""

MEMORIES: Final[tuple[Mapping[str, Any], ...]] = ({"selection": {"reselect": FOLLOWED}}, {})
"""Status fields of an earlier selector that writes `status.selection`, and of one that does not."""


async def check_foreign_selections(rig: Rig, offered: Offered) -> Finding | None:
    """Check that the subject keeps the selections of another selector.

    The check selects a provider as another selector would, with and without its memory, and starts the subject.
    """
    _, favourite = await create_selected(rig, offered)
    other = next(name for name in rig.providers if name != favourite)
    await rig.stop()
    places = [await _create_selected_by_another(rig, other, memory) for memory in MEMORIES]
    rig.subject.start()
    await asyncio.to_thread(rig.subject.wait_ready)
    # Selections for new models show that the subject leads again, and has seen the earlier models.
    await settle(rig, bool)
    for place, memory in zip(places, MEMORIES, strict=True):
        with suppress(NotSeen):
            live = await rig.deployment(place, lambda obj: selected(obj) not in ("", other), seconds=QUIET)
            kept = "status.selection" if memory else "no status.selection"
            return Finding(f"{selected(live)} in place of {other}, which a selector with {kept} chose", other)
    return None


async def check_recorded_reselect(rig: Rig, offered: Offered) -> Finding | None:
    """Ask for another choice, and expect the value of the annotation in `status.selection`."""
    place, _ = await create_selected(rig, offered)
    await rig.annotate(place, names.RESELECT_ANNOTATION, FOLLOWED)
    live = await rig.deployment(place, lambda obj: _followed(obj) == FOLLOWED or not selected(obj))
    return None if selected(live) else Finding("the selection was withdrawn", "a selection")


def _followed(obj: Mapping[str, Any]) -> str:
    return str(((obj.get("status") or {}).get("selection") or {}).get("reselect", ""))


async def _create_selected_by_another(rig: Rig, provider: str, memory: Mapping[str, Any]) -> Place:
    """Make a ModelDeployment that another selector has decided, as the field manager of all selectors."""
    place = rig.place()
    await create_deployment(rig, place, annotations={names.RESELECT_ANNOTATION: FOLLOWED})
    live = await rig.deployment(place, lambda obj: condition(obj, VALIDATED))
    selected_condition = condition_of(
        PROVIDER_SELECTED,
        True,
        "AutoSelected",
        "by another selector",
        generation=live["metadata"]["generation"],
    )
    status = {
        "provider": {"name": provider, "selectedReason": "by another selector"},
        "conditions": [{**selected_condition, "lastTransitionTime": now()}],
        **memory,
    }
    body = {
        "apiVersion": names.API_VERSION,
        "kind": names.MODEL_DEPLOYMENT,
        "metadata": {key: live["metadata"][key] for key in ("name", "namespace", "uid")},
        "status": status,
    }
    await rig.api.apply_status(MODEL_DEPLOYMENTS, body, manager=names.SELECTOR_MANAGER)
    return place


CHECKS: Final = (
    of_rig(
        "SEL-11",
        "selections of another selector, with and without its memory",
        offering(check_foreign_selections),
        "the selection stays",
    ),
    of_rig(
        "SEL-11",
        "the value of reselect that was followed",
        offering(check_recorded_reselect),
        f"status.selection.reselect is {FOLLOWED}",
    ),
)
