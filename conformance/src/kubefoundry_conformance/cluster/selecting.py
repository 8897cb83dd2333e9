"""SEL: a selector beside core, with providers that the checks register."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from operator import eq, ne
from typing import Any, Final

from kubefoundry_conformance.check import Finding, Skipped
from kubefoundry_conformance.cluster.offered import Offered, offering
from kubefoundry_conformance.cluster.rig import MANAGER, QUIET, RESTARTED, TIMEOUT, Place, Rig, now, of_rig
from kubefoundry_conformance.cluster.waiting import NotSeen, condition
from kubefoundry_sdk.api import names
from kubefoundry_sdk.api.conditions import condition as condition_of
from kubefoundry_sdk.api.kinds import LEASES, MODEL_DEPLOYMENTS, Object
from kubefoundry_sdk.api.managed_fields import managers
from kubefoundry_sdk.api.reasons import PROVIDER_COMPATIBLE, PROVIDER_SELECTED, VALIDATED
from kubefoundry_sdk.runtime.lease import DURATION, RENEW

WANTED: Final = {
    "model": {"id": "org/model"},
    "engine": {"type": "vllm"},
    "resources": {"gpu": {"count": 1}},
}

LEASE: Final = (names.SELECTOR_LEASE, names.SYSTEM_NAMESPACE)
ANOTHER: Final = "another-replica"

STALE: Final = 10.0
"""Seconds after which a subject has to know what became of a provider: some list the providers now and then."""

ROW: Final = 3
"""ModelDeployments that have to get a fitting provider one after another."""


def selected(obj: Object) -> str:
    """The provider that the selector chose, empty where it has not."""
    if condition(obj, PROVIDER_SELECTED).get("reason") != "AutoSelected":
        return ""
    return str(((obj.get("status") or {}).get("provider") or {}).get("name", ""))


async def ask(rig: Rig, place: Place, **metadata: Any) -> Object:
    """A ModelDeployment that names no provider."""
    body = {
        "apiVersion": names.API_VERSION,
        "kind": names.MODEL_DEPLOYMENT,
        "metadata": {"name": place.name, "namespace": place.namespace, **metadata},
        "spec": WANTED,
    }
    return await rig.api.create(MODEL_DEPLOYMENTS, body, manager=MANAGER)


async def chosen(rig: Rig, offered: Offered) -> tuple[Place, str]:
    """A place with a ModelDeployment, and the provider that was selected for it."""
    await offered.register(ready={})
    place = rig.place()
    await ask(rig, place)
    name = selected(await rig.deployment(place, selected))
    if name not in rig.providers:
        raise NotSeen(f"{name!r} was selected, which is not registered")
    return place, name


async def selected_now(rig: Rig, fits: Callable[[str], bool]) -> str:
    """The provider that new ModelDeployments get, once some in a row have fitting ones: the subject may see a
    ModelDeployment before it sees what became of a provider, and a choice that spreads may fit by chance. After
    `STALE` seconds one that does not fit."""
    clock = asyncio.get_running_loop().time
    ends, row, pause = clock() + STALE, 0, 0.1
    while True:
        place = rig.place()
        await ask(rig, place)
        got = selected(await rig.deployment(place, selected))
        row = row + 1 if fits(got) else 0
        if row == ROW or (row == 0 and clock() > ends):
            return got
        if row == 0:
            await asyncio.sleep(pause)
            pause = min(2 * pause, 1.0)


def holder(obj: Object) -> Any:
    return (obj.get("spec") or {}).get("holderIdentity")


async def holds_the_lease(rig: Rig) -> Finding | None:
    def renewed(obj: Object) -> Any:
        return holder(obj) and obj["spec"].get("renewTime")

    first = renewed(await rig.there(LEASES, *LEASE, renewed))
    await rig.there(LEASES, *LEASE, lambda obj: renewed(obj) not in (None, first))
    return None


async def yields_the_lease(rig: Rig, offered: Offered) -> Finding | None:
    await rig.there(LEASES, *LEASE, holder)
    change = [{"op": "replace", "path": "/spec/holderIdentity", "value": ANOTHER}]
    await rig.api.json_patch(LEASES, *LEASE, change, manager=MANAGER)
    try:
        taken = await rig.there(LEASES, *LEASE, lambda obj: holder(obj) != ANOTHER, seconds=RENEW + QUIET)
        return Finding(f"{holder(taken)!r} took the Lease from another replica at once", f"{DURATION:.0f} s")
    except NotSeen:
        pass
    await offered.register(ready={})
    place = rig.place()
    await ask(rig, place)
    with suppress(NotSeen):
        live = await rig.deployment(place, selected, seconds=QUIET)
        if holder(await rig.api.get(LEASES, *LEASE)) == ANOTHER:
            return Finding(
                f"{selected(live)} was selected while another replica held the Lease", "no decision"
            )
    await asyncio.sleep(DURATION - RENEW - QUIET)
    await rig.deployment(place, selected, seconds=RESTARTED)
    return None


async def waits_for_core(rig: Rig, offered: Offered) -> Finding | None:
    await offered.register(ready={})
    core = rig.own("core would have to be stopped").components["core"]
    await asyncio.to_thread(core.stop)
    try:
        place = rig.place()
        await ask(rig, place)
        try:
            live = await rig.until(
                MODEL_DEPLOYMENTS, *place, lambda obj: obj and selected(obj), seconds=QUIET
            )
            return Finding(f"{selected(live or {})} was selected before core said {VALIDATED}", "no decision")
        except NotSeen:
            pass
    finally:
        core.start()
        await asyncio.to_thread(core.wait_ready)
    live = await rig.deployment(place, selected)
    valid = condition(live, VALIDATED)
    if (valid.get("status"), valid.get("observedGeneration")) != ("True", live["metadata"]["generation"]):
        return Finding(f"{selected(live)} was selected before core said {VALIDATED}", "no decision")
    return None


async def stays(rig: Rig, offered: Offered) -> Finding | None:
    place, name = await chosen(rig, offered)
    change = [{"op": "add", "path": "/spec/model/servedName", "value": "renamed"}]
    await rig.api.json_patch(MODEL_DEPLOYMENTS, *place, change, manager=MANAGER)
    await rig.stop()
    rig.subject.start()
    await asyncio.to_thread(rig.subject.wait_ready)
    await offered.register(ready={name: False})
    # Others show that the subject leads again, and has seen it.
    await selected_now(rig, partial(ne, name))
    try:
        live = await rig.deployment(place, lambda obj: selected(obj) != name, seconds=QUIET)
        other = selected(live) or "nothing"
        return Finding(f"{other} in place of {name}, though nothing asked for it", name)
    except NotSeen:
        return None


async def chooses_again(rig: Rig, offered: Offered) -> Finding | None:
    place, name = await chosen(rig, offered)
    await offered.register(ready={name: False})
    # Others show that the subject has seen it. Before, it would rightly choose the same again.
    if await selected_now(rig, partial(ne, name)) == name:
        raise Skipped(f"{name} is selected although it is not ready (SEL-6)")
    asked = await rig.annotate(place, names.RESELECT_ANNOTATION, "again")
    if selected(asked) != name:
        other = selected(asked) or "nothing"
        raise Skipped(f"{other} was selected in place of {name} before reselect asked for it (SEL-3)")
    other = selected(await rig.deployment(place, lambda obj: selected(obj) not in ("", name)))
    await offered.register(ready={})
    await rig.annotate(place, "example.com/touched", "yes")
    with suppress(NotSeen):
        live = await rig.deployment(place, lambda obj: selected(obj) not in ("", other), seconds=QUIET)
        return Finding(f"{selected(live)} in place of {other}, by a value that was followed before", other)
    return None


async def leaves_out_who_refuses(rig: Rig, offered: Offered) -> Finding | None:
    place, name = await chosen(rig, offered)
    live = await rig.deployment(place)
    said = condition_of(
        PROVIDER_COMPATIBLE, False, "Unsupported", "not this one", generation=live["metadata"]["generation"]
    )
    meta = {key: live["metadata"][key] for key in ("name", "namespace", "uid")}
    body = {
        "apiVersion": names.API_VERSION,
        "kind": names.MODEL_DEPLOYMENT,
        "metadata": meta,
        "status": {"conditions": [{**said, "lastTransitionTime": now()}]},
    }
    await rig.api.apply_status(MODEL_DEPLOYMENTS, body, manager=names.provider_manager(name))
    await rig.deployment(place, lambda obj: selected(obj) not in ("", name))
    return None


async def only_ready_ones(rig: Rig, offered: Offered) -> Finding | None:
    for name in rig.providers:
        await offered.register(ready={other: other == name for other in rig.providers})
        got = await selected_now(rig, partial(eq, name))
        if got != name:
            return Finding(f"{got} was selected, which is not ready", name)
    return None


async def only_registered_ones(rig: Rig, offered: Offered) -> Finding | None:
    _, name = await chosen(rig, offered)
    await offered.deregister(name)
    if await selected_now(rig, partial(ne, name)) == name:
        return Finding(f"{name} was selected, which is not registered", "another provider")
    return None


async def only_fresh_ones(rig: Rig, offered: Offered) -> Finding | None:
    _, name = await chosen(rig, offered)
    await offered.fall_silent(name)
    await asyncio.sleep(TIMEOUT + 2)
    if await selected_now(rig, partial(ne, name)) == name:
        return Finding(f"{name} was selected, whose heartbeat stopped", "another provider")
    return None


async def says_that_there_is_none(rig: Rig, offered: Offered) -> Finding | None:
    await offered.register(ready=dict.fromkeys(rig.providers, False))
    place = rig.place()
    await ask(rig, place)
    # Core writes that there is no selector while the subject starts.
    live = await rig.deployment(
        place, lambda obj: condition(obj, PROVIDER_SELECTED).get("reason") not in (None, "NoSelector")
    )
    if name := selected(live):
        raise Skipped(f"{name} is selected although it is not ready (SEL-6)")
    said = condition(live, PROVIDER_SELECTED)
    if said["status"] != "False" or said["reason"] not in ("NoHealthyProviders", "NoMatchingProvider"):
        return Finding(
            f"{said['status']} {said['reason']}", "False, NoHealthyProviders or NoMatchingProvider"
        )
    return None


async def leaves_paused_ones(rig: Rig, offered: Offered) -> Finding | None:
    await offered.register(ready={})
    place = rig.place()
    await ask(rig, place, annotations={names.PAUSED_ANNOTATION: "true"})
    await chosen(rig, offered)
    live = await rig.deployment(place)
    if selected(live):
        return Finding(f"{selected(live)} was selected for a paused one", "nothing")
    await rig.annotate(place, names.PAUSED_ANNOTATION, None)
    await rig.deployment(place, selected)
    return None


async def releases(rig: Rig, offered: Offered) -> Finding | None:
    place, name = await chosen(rig, offered)
    live = await rig.deployment(place, selected)
    if names.SELECTOR_MANAGER not in (writers := managers(live, "status")):
        return Finding(f"{name} was written by {', '.join(sorted(writers))}", names.SELECTOR_MANAGER)
    change = [{"op": "add", "path": "/spec/provider", "value": {"name": name}}]
    await rig.api.json_patch(MODEL_DEPLOYMENTS, *place, change, manager=MANAGER)
    await rig.deployment(place, lambda obj: names.SELECTOR_MANAGER not in managers(obj, "status"))
    return None


async def only_able_ones(rig: Rig, offered: Offered) -> Finding | None:
    _, name = await chosen(rig, offered)
    for other in ({"engines": ["sglang"]}, {"servingModes": ["disaggregated"]}, {"gpuSupport": False}):
        await offered.register(ready={}, able={name: other})
        if await selected_now(rig, partial(ne, name)) == name:
            return Finding(f"{name} was selected, whose capabilities have {other}", "another provider")
    return None


CHECKS: Final = (
    of_rig("SEL-1", "the Lease, twice renewed", holds_the_lease, "a Lease with another renewTime"),
    of_rig(
        "SEL-1",
        "the Lease, held by another replica",
        offering(yields_the_lease),
        "a selection once it has expired",
    ),
    of_rig(
        "SEL-2",
        "a ModelDeployment while core is away",
        offering(waits_for_core),
        "a selection once core is back",
    ),
    of_rig(
        "SEL-3",
        "an edit, a restart, and a provider that is not ready any more",
        offering(stays),
        "a selection",
    ),
    of_rig(
        "SEL-4",
        "reselect while the selected one is not ready, once",
        offering(chooses_again),
        "another provider",
    ),
    of_rig("SEL-5", "the selected one refuses", offering(leaves_out_who_refuses), "another provider"),
    of_rig("SEL-6", "one ready provider after another", offering(only_ready_ones), "the one that is ready"),
    of_rig("SEL-6", "a provider that was deregistered", offering(only_registered_ones), "another one"),
    of_rig("SEL-6", "a provider whose heartbeat has stopped", offering(only_fresh_ones), "another one"),
    of_rig("SEL-7", "no ready provider", offering(says_that_there_is_none), "ProviderSelected"),
    of_rig(
        "SEL-8", "a paused ModelDeployment", offering(leaves_paused_ones), "a selection once it is not paused"
    ),
    of_rig("SEL-9", "the user names a provider", offering(releases), "no field of provider-selector"),
    of_rig(
        "SEL-10", "a provider without the engine, the mode, GPUs", offering(only_able_ones), "another one"
    ),
)
