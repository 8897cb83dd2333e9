"""WRI-4, WRI-5: the API server refuses what the subject wants to write."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

from kubefoundry_conformance.check import Finding, Skipped
from kubefoundry_conformance.cluster.rig import MANAGER, Place, Rig, of_rig
from kubefoundry_conformance.cluster.waiting import SECONDS, NotSeen, condition, phase
from kubefoundry_sdk.api.kinds import Kind, Object
from kubefoundry_sdk.api.reasons import PROVIDER_COMPATIBLE, RESOURCE_CREATED
from kubefoundry_sdk.cluster.errors import ApiError

ADMISSION: Final = "admissionregistration.k8s.io"
POLICIES: Final = Kind(
    ADMISSION, "v1", "validatingadmissionpolicies", "ValidatingAdmissionPolicy", namespaced=False
)
BINDINGS: Final = Kind(
    ADMISSION, "v1", "validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding", namespaced=False
)
WORDS: Final = "the conformance kit refuses this"
AGAIN: Final = 0.1
"""Seconds until the API server is asked again whether it knows the policy: nothing reports that."""

CHANGES: Final[tuple[dict[str, Any], ...]] = (
    {"scaling": {"replicas": 2}},
    {"engine": {"args": {"seed": "7"}}},
    {"env": [{"name": "CONFORMANCE", "value": "1"}]},
)
"""Edits that change an upstream object in place; a provider may refuse some."""

IDENTITY: Final[dict[str, Any]] = {"model": {"id": "org/another-model"}}


@asynccontextmanager
async def refused(rig: Rig, place: Place, upstream: Object) -> AsyncIterator[None]:
    """Meanwhile nothing may be written of the upstream object, nor of another for the same ModelDeployment.

    Raises Skipped where the API server is older than ValidatingAdmissionPolicies.
    """
    name = f"{MANAGER}-{place.name}"
    named = f"has(object.metadata.name) && object.metadata.name == '{place.name}'"
    owners = "has(object.metadata.ownerReferences) && object.metadata.ownerReferences"
    expression = f"!(({named}) || ({owners}.exists(one, one.name == '{place.name}')))"
    rule = {"apiGroups": [rig.kind.group], "apiVersions": ["*"], "resources": [rig.kind.plural]}
    policy = {
        "matchConstraints": {
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": place.namespace}},
            "resourceRules": [{**rule, "operations": ["CREATE", "UPDATE"]}],
        },
        "validations": [{"expression": expression, "message": WORDS}],
    }
    try:
        made = [(POLICIES, await rig.add(POLICIES, {"metadata": {"name": name}, "spec": policy}))]
    except ApiError as error:
        if error.not_found:
            raise Skipped("not run, because ValidatingAdmissionPolicy needs Kubernetes 1.30") from error
        raise
    try:
        binding = {"policyName": name, "validationActions": ["Deny"]}
        made.append((BINDINGS, await rig.add(BINDINGS, {"metadata": {"name": name}, "spec": binding})))
        await _known(rig, upstream)
        yield
    finally:
        for kind, one in reversed(made):
            await rig.api.delete(kind, name, None, uid=one["metadata"]["uid"])


async def _known(rig: Rig, upstream: Object) -> None:
    """Waits until the API server refuses. Raises NotSeen."""
    meta = upstream["metadata"]
    other = copy.deepcopy(upstream)
    other.pop("status", None)
    owner = {"ownerReferences": meta["ownerReferences"]} if meta.get("ownerReferences") else {}
    other["metadata"] = {"generateName": meta["name"], "namespace": meta["namespace"], **owner}
    try:
        async with asyncio.timeout(SECONDS):
            while True:
                try:
                    await rig.api.create(rig.kind, other, manager=MANAGER, dry_run=True)
                except ApiError as error:
                    if WORDS in str(error):
                        return
                    raise
                await asyncio.sleep(AGAIN)
    except TimeoutError:
        raise NotSeen("the API server knows nothing of the policy that refuses writes") from None


async def _answer(rig: Rig, place: Place, change: dict[str, Any]) -> Object:
    """The ModelDeployment once the subject has said what comes of the change."""
    asked = await rig.respec(place, change)

    def answered(obj: Object) -> bool:
        created, fits = condition(obj, RESOURCE_CREATED), condition(obj, PROVIDER_COMPATIBLE)
        current = fits.get("observedGeneration") == asked["metadata"]["generation"]
        return created.get("reason") == "ApplyRejected" or (current and fits.get("status") == "False")

    return await rig.deployment(place, answered)


async def keeps_running(rig: Rig) -> Finding | None:
    place = rig.place()
    await rig.running(place)
    upstream = await rig.upstream(place)
    async with refused(rig, place, upstream):
        for change in CHANGES:
            live = await _answer(rig, place, change)
            if condition(live, RESOURCE_CREATED).get("reason") != "ApplyRejected":
                await rig.replace(place, rig.spec)
                continue
            if phase(live) != "Running":
                return Finding(f"phase {phase(live)} after a refused apply", "Running: what serves goes on")
            return None
    raise Skipped(f"the subject refuses every change of {', '.join(next(iter(one)) for one in CHANGES)}")


async def tries_first(rig: Rig) -> Finding | None:
    place = rig.place()
    await rig.running(place)
    upstream = await rig.upstream(place)
    async with refused(rig, place, upstream):
        live = await _answer(rig, place, IDENTITY)
        if condition(live, RESOURCE_CREATED).get("reason") != "ApplyRejected":
            raise Skipped("the subject refuses every other model.id")
        there = [one for one in await rig.stored(place) if "deletionTimestamp" not in one["metadata"]]
        if [one["metadata"]["uid"] for one in there] != [upstream["metadata"]["uid"]]:
            return Finding(
                f"{rig.kind.kind} {place.name} was deleted, and the new one is refused",
                "a dry run of the new one before anything is deleted",
            )
    return None


CHECKS: Final = (
    of_rig("WRI-5", "an edit that the API server refuses", keeps_running, "ResourceCreated=ApplyRejected"),
    of_rig(
        "WRI-4", "another model that the API server refuses", tries_first, "ResourceCreated=ApplyRejected"
    ),
)
