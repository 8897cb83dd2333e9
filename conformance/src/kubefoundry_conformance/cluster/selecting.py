"""SEL: the choice of a selector, with providers that the checks register."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import partial
from operator import eq, ne
from typing import Final

from kubefoundry_conformance.check import Finding, Skipped
from kubefoundry_conformance.cluster import leading
from kubefoundry_conformance.cluster.offered import Offered, offering
from kubefoundry_conformance.cluster.rig import Rig, of_rig
from kubefoundry_conformance.cluster.selections import create_deployment, create_selected, selected, settle
from kubefoundry_conformance.cluster.settings import MANAGER, QUIET, TIMEOUT, now
from kubefoundry_conformance.cluster.waiting import NotSeen, condition
from kubefoundry_sdk._api import names
from kubefoundry_sdk._api.conditions import condition as new_condition
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS
from kubefoundry_sdk._api.managed_fields import managers
from kubefoundry_sdk._api.reasons import PROVIDER_COMPATIBLE, PROVIDER_SELECTED, VALIDATED


async def check_unvalidated_spec(rig: Rig, offered: Offered) -> Finding | None:
    """Check that the selector waits for the condition `Validated` of the newest generation.

    The check stops core, creates a ModelDeployment, and expects a selection only after core is started again.

    Raises:
        Skipped: The cluster is not the kit's own.
    """
    await offered.register(ready={})
    core = rig.own("core would have to be stopped").components["core"]
    await asyncio.to_thread(core.stop)
    try:
        place = rig.place()
        await create_deployment(rig, place)
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


async def check_selection_is_kept(rig: Rig, offered: Offered) -> Finding | None:
    """Check that an edit, a restart and an unready provider change no selection."""
    place, name = await create_selected(rig, offered)
    change = [{"op": "add", "path": "/spec/model/servedName", "value": "renamed"}]
    await rig.api.json_patch(MODEL_DEPLOYMENTS, *place, change, manager=MANAGER)
    await rig.stop()
    rig.subject.start()
    await asyncio.to_thread(rig.subject.wait_ready)
    await offered.register(ready={name: False})
    # Selections for other models show that the subject leads again, and has seen the change.
    await settle(rig, partial(ne, name))
    try:
        live = await rig.deployment(place, lambda obj: selected(obj) != name, seconds=QUIET)
        other = selected(live) or "nothing"
        return Finding(f"{other} in place of {name}, though nothing asked for it", name)
    except NotSeen:
        return None


async def check_reselect(rig: Rig, offered: Offered) -> Finding | None:
    """Check that a new value of the annotation `reselect` causes one new choice, and a later edit none.

    Raises:
        Skipped: Another rule is violated, so the result would mean nothing.
    """
    place, name = await create_selected(rig, offered)
    await offered.register(ready={name: False})
    # Selections for other models show that the subject has seen the change. Before, the same choice would be right.
    if await settle(rig, partial(ne, name)) == name:
        raise Skipped(f"{name} is selected although it is not ready (SEL-6)")
    live = await rig.annotate(place, names.RESELECT_ANNOTATION, "again")
    if selected(live) != name:
        successor = selected(live) or "nothing"
        raise Skipped(f"{successor} was selected in place of {name} before reselect asked for it (SEL-3)")
    successor = selected(await rig.deployment(place, lambda obj: selected(obj) not in ("", name)))
    await offered.register(ready={})
    await rig.annotate(place, "example.com/touched", "yes")
    with suppress(NotSeen):
        live = await rig.deployment(place, lambda obj: selected(obj) not in ("", successor), seconds=QUIET)
        return Finding(
            f"{selected(live)} in place of {successor}, by a value that was followed before", successor
        )
    return None


async def check_refusal(rig: Rig, offered: Offered) -> Finding | None:
    """Refuse a model as the selected provider, and expect that the selector selects another."""
    place, name = await create_selected(rig, offered)
    live = await rig.deployment(place)
    refusal = new_condition(
        PROVIDER_COMPATIBLE, False, "Unsupported", "not this one", generation=live["metadata"]["generation"]
    )
    meta = {key: live["metadata"][key] for key in ("name", "namespace", "uid")}
    body = {
        "apiVersion": names.API_VERSION,
        "kind": names.MODEL_DEPLOYMENT,
        "metadata": meta,
        "status": {"conditions": [{**refusal, "lastTransitionTime": now()}]},
    }
    await rig.api.apply_status(MODEL_DEPLOYMENTS, body, manager=names.provider_manager(name))
    await rig.deployment(place, lambda obj: selected(obj) not in ("", name))
    return None


async def check_ready_providers(rig: Rig, offered: Offered) -> Finding | None:
    """Make each provider the only ready provider in turn, and expect that the selector selects it."""
    for name in rig.providers:
        await offered.register(ready={other: other == name for other in rig.providers})
        provider = await settle(rig, partial(eq, name))
        if provider != name:
            return Finding(f"{provider} was selected, which is not ready", name)
    return None


async def check_registered_providers(rig: Rig, offered: Offered) -> Finding | None:
    """Delete the registration of the selected provider, and expect another provider for later models."""
    _, name = await create_selected(rig, offered)
    await offered.deregister(name)
    if await settle(rig, partial(ne, name)) == name:
        return Finding(f"{name} was selected, which is not registered", "another provider")
    return None


async def check_fresh_providers(rig: Rig, offered: Offered) -> Finding | None:
    """Stop the heartbeat of the selected provider, and expect another provider for later models."""
    _, name = await create_selected(rig, offered)
    await offered.fall_silent(name)
    await asyncio.sleep(TIMEOUT + 2)
    if await settle(rig, partial(ne, name)) == name:
        return Finding(f"{name} was selected, whose heartbeat stopped", "another provider")
    return None


async def check_no_provider(rig: Rig, offered: Offered) -> Finding | None:
    """Check that `ProviderSelected` is False, with a reason of the contract, while no provider is ready.

    Raises:
        Skipped: The selector selects an unready provider, which violates SEL-6.
    """
    await offered.register(ready=dict.fromkeys(rig.providers, False))
    place = rig.place()
    await create_deployment(rig, place)
    # While the subject starts, core writes NoSelector.
    live = await rig.deployment(
        place, lambda obj: condition(obj, PROVIDER_SELECTED).get("reason") not in (None, "NoSelector")
    )
    if name := selected(live):
        raise Skipped(f"{name} is selected although it is not ready (SEL-6)")
    provider_selected = condition(live, PROVIDER_SELECTED)
    if provider_selected["status"] != "False" or provider_selected["reason"] not in (
        "NoHealthyProviders",
        "NoMatchingProvider",
    ):
        return Finding(
            f"{provider_selected['status']} {provider_selected['reason']}",
            "False, NoHealthyProviders or NoMatchingProvider",
        )
    return None


async def check_pause(rig: Rig, offered: Offered) -> Finding | None:
    """Check that the selector selects nothing for a paused ModelDeployment, and selects after the pause.

    A selector that obeys shows nothing for the model, and one that does not obey may be late. So the pause lasts
    longer than the selector takes for a later model.
    """
    await offered.register(ready={})
    place, clock = rig.place(), asyncio.get_running_loop().time
    await create_deployment(rig, place, annotations={names.PAUSED_ANNOTATION: "true"})
    began = clock()
    await create_selected(rig, offered)
    with suppress(NotSeen):
        live = await rig.deployment(place, selected, seconds=QUIET + clock() - began)
        return Finding(f"{selected(live)} was selected for a paused one", "nothing")
    await rig.annotate(place, names.PAUSED_ANNOTATION, None)
    await rig.deployment(place, selected)
    return None


async def check_release(rig: Rig, offered: Offered) -> Finding | None:
    """Check that the selector releases all its fields once the user names the selected provider."""
    place, name = await create_selected(rig, offered)
    live = await rig.deployment(place, selected)
    if names.SELECTOR_MANAGER not in (writers := managers(live, "status")):
        return Finding(f"{name} was written by {', '.join(sorted(writers))}", names.SELECTOR_MANAGER)
    change = [{"op": "add", "path": "/spec/provider", "value": {"name": name}}]
    await rig.api.json_patch(MODEL_DEPLOYMENTS, *place, change, manager=MANAGER)
    await rig.deployment(place, lambda obj: names.SELECTOR_MANAGER not in managers(obj, "status"))
    return None


async def check_capabilities(rig: Rig, offered: Offered) -> Finding | None:
    """Remove engine, serving mode and GPUs of the selected provider in turn, and expect another provider."""
    _, name = await create_selected(rig, offered)
    for change in ({"engines": ["sglang"]}, {"servingModes": ["disaggregated"]}, {"gpuSupport": False}):
        await offered.register(ready={}, capabilities={name: change})
        if await settle(rig, partial(ne, name)) == name:
            return Finding(f"{name} was selected, whose capabilities have {change}", "another provider")
    return None


CHECKS: Final = (
    *leading.CHECKS,
    of_rig(
        "SEL-2",
        "a ModelDeployment while core is away",
        offering(check_unvalidated_spec),
        "a selection once core is back",
    ),
    of_rig(
        "SEL-3",
        "an edit, a restart, and a provider that is not ready any more",
        offering(check_selection_is_kept),
        "a selection",
    ),
    of_rig(
        "SEL-4",
        "reselect while the selected one is not ready, once",
        offering(check_reselect),
        "another provider",
    ),
    of_rig("SEL-5", "the selected one refuses", offering(check_refusal), "another provider"),
    of_rig(
        "SEL-6", "one ready provider after another", offering(check_ready_providers), "the one that is ready"
    ),
    of_rig("SEL-6", "a provider that was deregistered", offering(check_registered_providers), "another one"),
    of_rig("SEL-6", "a provider whose heartbeat has stopped", offering(check_fresh_providers), "another one"),
    of_rig("SEL-7", "no ready provider", offering(check_no_provider), "ProviderSelected"),
    of_rig("SEL-8", "a paused ModelDeployment", offering(check_pause), "a selection once it is not paused"),
    of_rig("SEL-9", "the user names a provider", offering(check_release), "no field of provider-selector"),
    of_rig(
        "SEL-10", "a provider without the engine, the mode, GPUs", offering(check_capabilities), "another one"
    ),
)
