"""REN-7, WRI-9, REG-6: restarts with another default image, refused writes, and another holder of the Lease."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any, Final

from kubefoundry_conformance.check import Finding, Skipped
from kubefoundry_conformance.cluster.deployments import Place
from kubefoundry_conformance.cluster.refusing import CHANGES, refuse_writes
from kubefoundry_conformance.cluster.rig import Rig, of_rig
from kubefoundry_conformance.cluster.settings import MANAGER, QUIET, RESTARTED
from kubefoundry_conformance.cluster.waiting import NotSeen, condition
from kubefoundry_sdk._api.kinds import LEASES, PROVIDER_CONFIGS, Object
from kubefoundry_sdk._api.reasons import PROVIDER_COMPATIBLE, RESOURCE_CREATED
from kubefoundry_sdk._cluster.errors import ApiError
from kubefoundry_sdk._runtime.lease import RENEW

DEFAULT_IMAGE: Final = "KUBEFOUNDRY_DEFAULT_IMAGE"
IMAGES: Final = ("example.com/conformance:1", "example.com/conformance:2")
"""Default images of one release of the subject, and of the next."""

ANOTHER: Final = "another-replica"
MOST: Final = 3
"""Requests for one refused object within QUIET seconds after the report: a retry is due after minutes."""


async def check_kept_image(rig: Rig) -> Finding | None:
    """Restart the subject with another default image, and expect that a model keeps the image that serves.

    Raises:
        Skipped: The subject renders no default image.
    """
    spec = {key: value for key, value in rig.spec.items() if key != "image"}
    first, second = rig.place(), rig.place()
    engine = rig.spec["engine"]["type"]
    async with _default_image(rig, f"{engine}={IMAGES[0]}"):
        await rig.create(first, spec=spec)
        await _check_renders(rig, first)
        before = await rig.upstream(first)
        async with _default_image(rig, f"{engine}={IMAGES[1]}"):
            await rig.create(second, spec=spec)
            # The second model shows that the restarted subject uses the other image.
            await rig.upstream(second, lambda obj: IMAGES[1] in json.dumps(obj))
            await rig.annotate(first, "example.com/touched", "true")
            await rig.running(rig.place(), spec=spec)
            after = await rig.upstream(first)
    if after["metadata"]["uid"] != before["metadata"]["uid"] or IMAGES[1] in json.dumps(after):
        return Finding(
            f"the upstream object has {IMAGES[1]}, the default of the restarted subject", IMAGES[0]
        )
    return None


async def _check_renders(rig: Rig, place: Place) -> None:
    """Raise Skipped unless the upstream object has the default image."""

    def is_decided(obj: Object) -> bool:
        created, fits = condition(obj, RESOURCE_CREATED), condition(obj, PROVIDER_COMPATIBLE)
        return created.get("status") == "True" or fits.get("status") == "False"

    live = await rig.deployment(place, is_decided)
    if condition(live, PROVIDER_COMPATIBLE).get("status") == "False":
        raise Skipped("the subject has no default image: it refuses a spec without image")
    if IMAGES[0] not in json.dumps(await rig.upstream(place)):
        raise Skipped(f"the subject renders no default image of {DEFAULT_IMAGE}")


@asynccontextmanager
async def _default_image(rig: Rig, value: str) -> AsyncIterator[None]:
    """Restart the subject with a default image, and restore its environment at the end."""
    before = rig.subject.environment.get(DEFAULT_IMAGE)
    await _restart(rig, value)
    try:
        yield
    finally:
        await _restart(rig, before)


async def _restart(rig: Rig, default_image: str | None) -> None:
    await rig.stop()
    if default_image is None:
        rig.subject.environment.pop(DEFAULT_IMAGE, None)
    else:
        rig.subject.environment[DEFAULT_IMAGE] = default_image
    rig.subject.start()
    await asyncio.to_thread(rig.subject.wait_ready)


async def check_bounded_writes(rig: Rig) -> Finding | None:
    """Refuse the write of an edit, and expect that the subject does not repeat it in a stream.

    Raises:
        Skipped: The subject changes its object in place for no edit, or the audit log cannot be read.
    """
    place = rig.place()
    await rig.running(place)
    rig.requests()
    async with refuse_writes(rig, place, await rig.upstream(place)):
        for change in CHANGES:
            generation = (await rig.respec(place, change))["metadata"]["generation"]

            def is_reported(obj: Object, generation: int = generation) -> bool:
                fits = condition(obj, PROVIDER_COMPATIBLE)
                current = fits.get("observedGeneration") == generation
                refused = condition(obj, RESOURCE_CREATED).get("reason") == "ApplyRejected"
                return refused or (current and fits.get("status") == "False")

            live = await rig.deployment(place, is_reported)
            if condition(live, RESOURCE_CREATED).get("reason") != "ApplyRejected":
                await rig.replace(place, rig.spec)
                continue
            before = _attempts(rig, place)
            await asyncio.sleep(QUIET)
            attempts = _attempts(rig, place) - before
            if attempts > MOST:
                return Finding(
                    f"{attempts} requests in {QUIET:.0f} s for a refused object", f"{MOST} at most"
                )
            return None
    raise Skipped("the subject changes its upstream object in place for none of the edits")


def _attempts(rig: Rig, place: Place) -> int:
    """Return the number of the subject's writing requests for an upstream object, refused ones included."""
    return sum(
        entry["verb"] in ("create", "update", "patch", "delete")
        and entry.get("objectRef", {}).get("resource") == rig.kind.plural
        and entry["objectRef"].get("name") in (place.name, None)
        for entry in rig.requests()
    )


async def check_other_leader(rig: Rig) -> Finding | None:
    """Write another holder into the subject's Lease, and expect that it reports nothing until the Lease expires.

    Raises:
        Skipped: The subject holds no Lease.
    """
    lease = (f"kubefoundry-provider-{rig.provider}", rig.system)

    def holder(obj: Object) -> Any:
        return (obj.get("spec") or {}).get("holderIdentity")

    try:
        held = holder(await rig.api.get(LEASES, *lease))
    except ApiError as error:
        if not error.not_found:
            raise
        held = None
    if not held:
        raise Skipped("the subject holds no Lease: run one replica, with strategy Recreate")
    change = [{"op": "replace", "path": "/spec/holderIdentity", "value": ANOTHER}]
    await rig.api.json_patch(LEASES, *lease, change, manager=MANAGER)
    # A leader looks at its Lease when it renews it.
    await asyncio.sleep(RENEW + QUIET)
    heartbeat = await _heartbeat(rig)
    place = rig.place()
    await rig.create(place)
    with suppress(NotSeen):
        await rig.deployment(place, lambda obj: condition(obj, PROVIDER_COMPATIBLE), seconds=2 * QUIET)
        # The Lease of the other replica may have expired on a busy machine. Then the report is right.
        if holder(await rig.api.get(LEASES, *lease)) == ANOTHER:
            return Finding(
                "the subject reported on a model while another replica held its Lease", "no report"
            )
    if await _heartbeat(rig) != heartbeat and holder(await rig.api.get(LEASES, *lease)) == ANOTHER:
        return Finding("the subject sent a heartbeat while another replica held its Lease", "none")
    await rig.deployment(place, lambda obj: condition(obj, PROVIDER_COMPATIBLE), seconds=RESTARTED)
    return None


async def _heartbeat(rig: Rig) -> Any:
    config = await rig.api.get(PROVIDER_CONFIGS, rig.provider)
    return (config.get("status") or {}).get("lastHeartbeat")


CHECKS: Final = (
    of_rig("REN-7", "a restart with another default image", check_kept_image, "the image that serves"),
    of_rig("WRI-9", "an edit that the API server keeps refusing", check_bounded_writes, "ApplyRejected"),
    of_rig("REG-6", "its Lease, held by another replica", check_other_leader, "a report once it has expired"),
)
